"""What is valid of the site's keys when not all is: field by field, item by item."""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from hpcsite.site.model import SiteKeys
from hpcsite.site.names import nearest
from hpcsite.site.sources import KeyPath

_INVALID = object()


@dataclass
class Partial:
    """Builds `SiteKeys` of raw values, and remembers what it had to leave out.

    A field that is not valid has its default, or None if it must be set, and stands in `invalid`;
    so does one that a mistyped name was probably meant to be. Lists and mappings keep their valid
    items; `kept` has the numbers that these have in the inventory.
    """

    prefix: str
    invalid: set[KeyPath] = field(default_factory=set)
    kept: dict[KeyPath, list[int]] = field(default_factory=dict)

    def keys(self, raw: dict[str, Any]) -> SiteKeys:
        """Build the site's keys; `raw` has their names less the prefix."""
        return SiteKeys.model_construct(**self._fields(SiteKeys, raw, ()))

    def _fields(self, model: type[BaseModel], raw: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        required = [name for name, known in model.model_fields.items() if known.is_required()]
        values: dict[str, Any] = dict.fromkeys(required)
        for name in raw:
            meant = name if name in model.model_fields else nearest(name, model.model_fields)
            if meant and meant not in raw:
                self.invalid.add(self._below(path, meant))
        self.invalid |= {self._below(path, name) for name in required if name not in raw}
        for name in raw.keys() & model.model_fields.keys():
            below = self._below(path, name)
            annotation = _annotation(model, name)
            if (value := self._value(annotation, raw[name], below)) is not _INVALID:
                values[name] = value
        return values

    def _below(self, path: KeyPath, name: str) -> KeyPath:
        return (*path, name) if path else (self.prefix + name,)

    def _value(self, annotation: Any, raw: object, path: KeyPath) -> Any:  # noqa: ANN401 - any type
        """Validate one value; of one that is not valid as a whole, take the parts that are."""
        before = len(self.invalid)
        try:
            return _adapter(annotation).validate_json(json.dumps(raw), strict=True)
        except ValidationError:
            part = self._part(annotation, raw, path)
        # Parts that are all valid do not make a whole: names, or what goes together, are wrong.
        if part is _INVALID or len(self.invalid) == before:
            self.invalid.add(path)
        return part

    def _part(self, annotation: Any, raw: object, path: KeyPath) -> Any:  # noqa: ANN401 - any type
        plain = plain_type(annotation)
        origin, arguments = get_origin(plain), get_args(plain)
        if isinstance(raw, list) and origin is tuple and raw:
            items = [self._value(arguments[0], item, (*path, n)) for n, item in enumerate(raw)]
            self.kept[path] = [n for n, item in enumerate(items) if item is not _INVALID]
            return tuple(item for item in items if item is not _INVALID)
        if isinstance(raw, dict) and origin is dict:
            entries = {
                name: self._value(arguments[1], entry, (*path, name)) for name, entry in raw.items()
            }
            return {name: entry for name, entry in entries.items() if entry is not _INVALID}
        if isinstance(raw, dict) and isinstance(plain, type) and issubclass(plain, BaseModel):
            return plain.model_construct(**self._fields(plain, raw, path))
        return _INVALID


def _annotation(model: type[BaseModel], name: str) -> Any:  # noqa: ANN401 - annotations have no type
    known = model.model_fields[name]
    return Annotated[known.annotation, *known.metadata] if known.metadata else known.annotation


def plain_type(annotation: Any) -> Any:  # noqa: ANN401 - annotations have no type
    """Take `Annotated` and `| None` off an annotation."""
    if get_origin(annotation) is Annotated:
        return plain_type(get_args(annotation)[0])
    members = [member for member in get_args(annotation) if member is not type(None)]
    if type(None) in get_args(annotation) and len(members) == 1:
        return plain_type(members[0])
    return annotation


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - annotations have no type
    return TypeAdapter(annotation)
