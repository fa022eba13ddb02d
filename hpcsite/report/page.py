"""A run as one HTML file that needs nothing else: no network, no script."""

from collections.abc import Iterable
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from hpcsite.report import chart, words
from hpcsite.verify.results import Measurement, Property, Result, Run

_TEMPLATE = "run.html.j2"


def html(run: Run, raw_base: str = "") -> str:
    """Render a run; raw output is linked below `raw_base`, the run's own folder by default."""
    source = (files("hpcsite.report") / "templates" / _TEMPLATE).read_text(encoding="utf-8")
    environment = Environment(
        loader=DictLoader({_TEMPLATE: source}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(
        run=run,
        words=words,
        headline=words.headline(run),
        troubles=words.troubles(run),
        suites=[(name, _of_suite(run, name)) for name in run.suites],
        charts=[(curve, Markup(chart.svg(curve))) for curve in chart.curves(run)],  # noqa: S704 - escaped in svg
        measurements=list(_measurements(run)),
        properties=list(_properties(run)),
        raw_base=raw_base,
    )


def _of_suite(run: Run, name: str) -> list[Result]:
    return [result for result in run.results if result.suite == name]


def _measurements(run: Run) -> Iterable[tuple[Result, Measurement]]:
    for result in run.results:
        for measured in result.measurements:
            yield result, measured


def _properties(run: Run) -> Iterable[Property]:
    for result in run.results:
        yield from result.properties
