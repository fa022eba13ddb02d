"""Racks: what stands where, and what feeds it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from hpcsite.site.model.base import CatalogueName, Frozen, Hostlist, Name, one_of, require_one


class RackFeed(Frozen):
    """A power feed of a rack."""

    kw: float = Field(gt=0, description="power in kW that may be drawn from it", examples=[17.2])


class RackItem(Frozen):
    """Hosts that stack upward from a unit, or a switch."""

    model_config = one_of("hosts", "switch")

    hosts: Hostlist | None = Field(
        None,
        description="hosts of one kind, in the order of their names, the first lowest",
        examples=["gpu[001-004]"],
    )
    switch: Name | None = Field(None, description="in place of hosts: one of site_switches")
    profile: CatalogueName | None = Field(
        None,
        description="profile of the hardware catalogue; not set: that of the hosts' node group, or "
        "of the switch",
        examples=["generic-cpu"],
    )
    u: int = Field(ge=1, description="lowest unit, counted from 1 at the bottom", examples=[3])
    feeds: dict[Name, Annotated[int, Field(ge=1)]] = Field(
        {},
        description="power supplies of each host or switch that hang on a feed, by its name",
        examples=[{"a": 3, "b": 3}],
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        require_one(self, "hosts", "switch")
        return self


class Rack(Frozen):
    """A rack, by its name."""

    units: int = Field(ge=1, description="height in U", examples=[42])
    depth_mm: int | None = Field(
        None, ge=1, description="usable depth in mm; not set: it is not checked"
    )
    max_weight_kg: float | None = Field(
        None, gt=0, description="what it carries in kg; not set: it is not checked"
    )
    feeds: dict[Name, RackFeed] = Field({}, description="power feeds, by name")
    contents: tuple[RackItem, ...] = Field((), description="what stands in it")
