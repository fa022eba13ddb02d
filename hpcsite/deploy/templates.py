"""Files of roles rendered without Ansible: for what a site's files will be before there are hosts.

A role's own template, defaults, variables and filters are used, so that nothing is said twice. What
a role asks a running host for (facts, registered results) is not there, and is an error.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import jinja2
import yaml
from jinja2.nativetypes import NativeEnvironment
from jinja2.runtime import Context

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import content_dir

Variables = Mapping[str, Any]
MASK = "***"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def render_template(role: str, template: str, variables: Variables, *, secret: str = MASK) -> str:
    """Render a template of a role; `secret` stands for whatever it would read from a file.

    `variables` go before the role's defaults. Their values may be templates themselves.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(content_dir() / "roles" / role / "templates"),
        # As Ansible's template module sets it up.
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - these are configuration files
    )
    _equip(environment, secret)
    with _told_of(f"{template} of the role {role}"):
        return environment.get_template(template).render(role_variables(role) | dict(variables))


def role_value(role: str, name: str, variables: Variables) -> Any:  # noqa: ANN401 - any variable
    """Give the value of a variable of a role."""
    known = role_variables(role) | dict(variables)
    with _told_of(name):
        return _evaluated(known[name], known, MASK)


@cache
def role_variables(role: str) -> dict[str, Any]:
    """Read a role's defaults, and over them its variables, as they stand."""
    found: dict[str, Any] = {}
    for part in ("defaults", "vars"):
        path = content_dir() / "roles" / role / part / "main.yml"
        if path.is_file():
            with path.open(encoding="utf-8") as stream:
                # A SafeLoader either way; its C twin is ten times as fast.
                found |= yaml.load(stream, Loader=_LOADER) or {}  # noqa: S506
    return found


@cache
def filters() -> dict[str, Any]:
    """Load the filters that hpcsite's roles have besides Ansible's."""
    found: dict[str, Any] = {}
    for path in sorted((content_dir() / "plugins/filter").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= module.FilterModule().filters()
    return found


@contextmanager
def _told_of(what: str) -> Iterator[None]:
    try:
        yield
    except jinja2.TemplateError as error:
        raise CouldNotRunError(
            f"{what} cannot be rendered without a host: {error.message}",
            hint="a variable of the inventory asks for what only a host can tell, or for a filter "
            "of Ansible's; write its value instead",
        ) from error


def _equip(environment: jinja2.Environment, secret: str) -> None:
    """Give an environment what Ansible has: filters, lookups, values that are templates."""

    class Lazy(Context):
        """Variables are evaluated when they are used: many need what only a host can tell."""

        def resolve_or_missing(self, key: str) -> Any:  # noqa: ANN401 - any variable
            return _evaluated(super().resolve_or_missing(key), self.parent, secret)

    environment.filters |= filters()
    environment.globals["lookup"] = lambda *_: secret
    environment.context_class = Lazy


def _evaluated(value: Any, variables: Variables, secret: str) -> Any:  # noqa: ANN401 - any variable
    if not (isinstance(value, str) and ("{{" in value or "{%" in value)):
        return value
    environment = NativeEnvironment(
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    _equip(environment, secret)
    return environment.from_string(value).render(variables)
