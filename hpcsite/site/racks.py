"""What stands at which unit of a rack, what it weighs, and what its feeds carry.

Pure. A figure that the catalogue does not know is None. The power supplies of a device share its
load evenly, and those that are left share it when a feed is lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from hpcsite.site.catalogue import NodeProfile, SwitchProfile, power_w

Profile = NodeProfile | SwitchProfile


@dataclass(frozen=True)
class Supplies:
    """How many power supplies a device has, and how many it needs; None is unknown."""

    count: int | None = None
    needed_full: int | None = None
    needed_degraded: int | None = None


_UNKNOWN = Supplies()


class Running(Enum):
    """What a device does with the power supplies that it has left."""

    FULL = "full"
    REDUCED = "reduced"
    OFF = "off"


@dataclass(frozen=True)
class Device:
    """A host or a switch in a rack.

    `item` is the number of its entry in the rack's contents. `feeds` is how many of its power
    supplies hang on which feed.
    """

    name: str
    item: int
    u: int
    units: int | None = None
    depth_mm: float | None = None
    weight_kg: float | None = None
    power_w: float | None = None
    supplies: Supplies = _UNKNOWN
    feeds: tuple[tuple[str, int], ...] = ()

    @property
    def top(self) -> int:
        """Its highest unit. Of unknown height, it takes one unit at least."""
        return self.u + (self.units or 1) - 1

    @property
    def connected(self) -> int:
        """Power supplies that hang on some feed."""
        return sum(count for _, count in self.feeds)

    @property
    def has_spare_supplies(self) -> bool:
        """Whether it can lose a power supply; of unknown need, if several are connected."""
        count = self.supplies.count
        needed, degraded = self.supplies.needed_full, self.supplies.needed_degraded
        least = degraded or needed
        return self.connected > 1 if count is None or least is None else count > least

    def left(self, lost: str | None) -> int:
        """Power supplies that have power when a feed is lost, or none."""
        return sum(count for feed, count in self.feeds if feed != lost)

    def running(self, lost: str | None) -> Running:
        """Say what it does when a feed is lost, as far as its need is known."""
        left = self.left(lost)
        if left < max(self.supplies.needed_degraded or 0, 1):
            return Running.OFF
        return Running.REDUCED if left < (self.supplies.needed_full or 0) else Running.FULL

    def draws_w(self, feed: str, lost: str | None) -> float:
        """Most that it draws from a feed while another one, or none, is lost.

        With fewer supplies than it needs for full power it draws less, by how much nobody says.
        """
        if feed == lost or self.running(lost) is Running.OFF:
            return 0.0
        here = sum(count for name, count in self.feeds if name == feed)
        return (self.power_w or 0.0) * here / self.left(lost)


class Load(NamedTuple):
    """What a feed carries; `lost` is the feed whose loss asks most of it, if any asks more."""

    feed: str
    normal_w: float
    lost: str | None
    lost_w: float


class Clash(NamedTuple):
    """Two devices in one unit."""

    lower: Device
    upper: Device


def stacked(
    names: Iterable[str],
    item: int,
    u: int,
    profiles: Mapping[str, Profile | None],
    feeds: Mapping[str, int],
) -> Iterator[Device]:
    """Put devices upon each other, from a unit on."""
    for name in names:
        device = _device(name, item, u, profiles.get(name), tuple(feeds.items()))
        yield device
        u = device.top + 1


def _device(
    name: str, item: int, u: int, profile: Profile | None, feeds: tuple[tuple[str, int], ...]
) -> Device:
    if profile is None:
        return Device(name, item, u, feeds=feeds)
    psu = profile.psu if isinstance(profile, NodeProfile) else None
    return Device(
        name,
        item,
        u,
        units=profile.rack_units.value if profile.rack_units else None,
        depth_mm=profile.depth_mm.value if profile.depth_mm else None,
        weight_kg=profile.weight_kg.value if profile.weight_kg else None,
        power_w=power_w(profile),
        supplies=Supplies(
            *(
                figure.value if figure else None
                for figure in (psu.count, psu.needed_full, psu.needed_degraded)
            )
        )
        if psu
        else _UNKNOWN,
        feeds=feeds,
    )


def clashes(devices: Iterable[Device]) -> Iterator[Clash]:
    """Find devices that stand in one unit; each with the one that reaches highest below it."""
    highest: Device | None = None
    for device in sorted(devices, key=lambda d: (d.u, d.item)):
        if highest and device.u <= highest.top:
            yield Clash(highest, device)
        if highest is None or device.top > highest.top:
            highest = device


def weight_kg(devices: Iterable[Device]) -> float:
    """Weight of all whose weight is known."""
    return sum(device.weight_kg or 0.0 for device in devices)


def loads(devices: Sequence[Device], feeds: Iterable[str]) -> Iterator[Load]:
    """Give what each feed carries, normally and with the worst other one lost."""
    names = tuple(feeds)
    for feed in names:
        normal = _sum_w(devices, feed, None)
        worst, lost = max(
            ((_sum_w(devices, feed, other), other) for other in names if other != feed),
            default=(0.0, None),
        )
        yield Load(feed, normal, lost if worst > normal else None, max(worst, normal))


def _sum_w(devices: Iterable[Device], feed: str, lost: str | None) -> float:
    return sum(device.draws_w(feed, lost) for device in devices)
