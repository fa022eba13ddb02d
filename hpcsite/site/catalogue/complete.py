"""Give every figure of a raw entry its source, so that it fits the models."""

from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

from hpcsite.errors import Location
from hpcsite.site.catalogue.models import Sourced
from hpcsite.site.catalogue.raw import Raw
from hpcsite.site.names import did_you_mean


class Unsourced(Exception):  # noqa: N818 - no error of a user's by itself
    """A figure of hpcsite's own without a source that exists."""

    def __init__(self, message: str, where: Location, hint: str) -> None:
        super().__init__(message)
        self.where = where
        self.hint = hint


def complete(raw: Raw, model: type[BaseModel], sources: dict[str, Raw]) -> dict[str, Any]:
    """Give the plain values of an entry; the fields of `model` say which are figures."""
    values: dict[str, Any] = raw.plain()
    for name, below in raw.value.items():
        if name in model.model_fields:
            values[name] = _value(below, model.model_fields[name].annotation, sources)
    return values


def _value(raw: Raw, annotation: Any, sources: dict[str, Raw]) -> Any:  # noqa: ANN401
    kind = _model_in(annotation)
    if kind is None or raw.value is None:
        return raw.plain()
    if isinstance(raw.value, list):
        return [_value(item, kind, sources) for item in raw.value]
    if issubclass(kind, Sourced):
        return _figure(raw, kind, sources)
    return complete(raw, kind, sources) if isinstance(raw.value, dict) else raw.plain()


def _figure(raw: Raw, kind: type[Sourced], sources: dict[str, Raw]) -> dict[str, Any]:
    if not isinstance(raw.value, dict):
        if not raw.site or "value" not in kind.model_fields:
            raise Unsourced(
                f"the value {raw.value} has no source", raw.where, "write {value: …, source: …}"
            )
        return {"value": raw.value, "source": _line(raw)}
    values: dict[str, Any] = raw.plain()
    source = raw.get("source")
    if source is None:
        if not raw.site:
            raise Unsourced("a figure has no source", raw.where, "add source: …")
        values["source"] = _line(raw)
    elif isinstance(source.value, str):
        values["source"] = _named(source, sources)
    return values


def _named(source: Raw, sources: dict[str, Raw]) -> dict[str, Any]:
    """Resolve the name of a source; a site may also say in its own words where a figure is from."""
    if source.value in sources:
        plain: dict[str, Any] = sources[source.value].plain()
        return plain
    if source.site:
        return {"title": source.value}
    raise Unsourced(
        f"there is no source {source.value}",
        source.where,
        did_you_mean(source.value, sources, "add it to the section sources"),
    )


def _line(raw: Raw) -> dict[str, Any]:
    path = raw.where.path
    return {"title": f"{path.parent.name}/{path.name}, line {raw.where.line}"}


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """Find the model in `Model | None` or `tuple[Model, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is Annotated:
        return _model_in(get_args(annotation)[0])
    for argument in get_args(annotation):
        if (found := _model_in(argument)) is not None:
            return found
    return None
