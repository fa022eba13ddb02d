"""Bandwidth against message size as an SVG: a logarithmic axis of sizes, a linear one of rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hpcsite.report.words import number, size
from hpcsite.verify.results import Measurement, Run

WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 34, 44
_TICKS = 5


@dataclass(frozen=True)
class Curve:
    """One line of a chart: its title and its points, by message size in bytes."""

    title: str
    unit: str
    points: tuple[tuple[int, float], ...]


def curves(run: Run) -> list[Curve]:
    """Every series of a run that was measured at more than one message size."""
    series: dict[tuple[str, str, str], list[Measurement]] = {}
    for result in run.results:
        for measured in result.measurements:
            if int(measured.at.get("message_bytes", 0)) > 0:
                nodes = str(measured.at.get("nodes", result.nodes))
                title = f"{result.suite} {measured.name}"
                series.setdefault((title, measured.unit, nodes), []).append(measured)
    return [
        Curve(f"{title}, {nodes.replace(',', ' to ')}", unit, _points(found))
        for (title, unit, nodes), found in series.items()
        if len(found) > 1
    ]


def _points(found: Sequence[Measurement]) -> tuple[tuple[int, float], ...]:
    return tuple(sorted((int(one.at["message_bytes"]), one.value) for one in found))


def svg(curve: Curve) -> str:
    """Draw a curve; colours come from the page's style, so that it follows dark and light."""
    top = _round_up(max(rate for _, rate in curve.points))
    smallest, largest = curve.points[0][0], curve.points[-1][0]

    def x(message: int) -> float:
        part = math.log(message / smallest) / math.log(largest / smallest)
        return _LEFT + part * (WIDTH - _LEFT - _RIGHT)

    def y(rate: float) -> float:
        return HEIGHT - _BOTTOM - rate / top * (HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(curve.title)}">',
    ]
    for tick in range(_TICKS + 1):
        rate = top * tick / _TICKS
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(rate):.1f}" '
            f'y2="{y(rate):.1f}"/><text class="tick" text-anchor="end" x="{_LEFT - 8}" '
            f'y="{y(rate) + 4:.1f}">{number(rate)}</text>'
        )
    for message, _ in curve.points:
        parts.append(
            f'<text class="tick" text-anchor="middle" x="{x(message):.1f}" '
            f'y="{HEIGHT - _BOTTOM + 20}">{size(message)}</text>'
        )
    line = " ".join(f"{x(message):.1f},{y(rate):.1f}" for message, rate in curve.points)
    base = f"{x(largest):.1f},{y(0):.1f} {x(smallest):.1f},{y(0):.1f}"
    parts.append(f'<polygon class="area" points="{line} {base}"/>')
    parts.append(f'<polyline class="line" points="{line}"/>')
    for message, rate in curve.points:
        parts.append(
            f'<circle class="dot" cx="{x(message):.1f}" cy="{y(rate):.1f}" r="4">'
            f"<title>{size(message)}: {number(rate)} {escape(curve.unit)}</title></circle>"
        )
    best = max(curve.points, key=lambda point: point[1])
    anchor = "end" if x(best[0]) > WIDTH / 2 else "start"
    parts.append(
        f'<text class="best" text-anchor="{anchor}" x="{x(best[0]):.1f}" '
        f'y="{y(best[1]) - 9:.1f}">{number(best[1])} {escape(curve.unit)}</text>'
        f'<text class="axis" x="{_LEFT}" y="{HEIGHT - 6}">message size</text>'
        f'<text class="axis" text-anchor="end" x="{_LEFT - 8}" y="14">{escape(curve.unit)}</text>'
    )
    return "".join([*parts, "</svg>"])


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5, 10 times a power of ten that leaves room above a value."""
    wanted = value * 1.1 or 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= wanted)
