"""What the racks of a site description hold, as far as it is valid."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from hpcsite.site.catalogue import Catalogue
from hpcsite.site.draft import Draft
from hpcsite.site.model import Rack, RackItem
from hpcsite.site.names import unfold
from hpcsite.site.racks import Device, Profile, stacked
from hpcsite.site.sources import KeyPath

KEY = "site_racks"


@dataclass(frozen=True)
class Item:
    """An entry in the contents of a rack.

    `own` is the profile that the site gives a host by its node group, or a switch by itself.
    """

    rack: str
    number: int
    entry: RackItem
    names: tuple[str, ...]
    own: dict[str, str]
    catalogue: Catalogue

    @property
    def path(self) -> KeyPath:
        """Where it stands in the inventory."""
        return (KEY, self.rack, "contents", self.number)

    def profiles(self) -> dict[str, Profile | None]:
        """Profile of each of its hosts, or of its switch."""
        known = self.catalogue.nodes if self.entry.hosts else self.catalogue.switches
        named = {name: self.entry.profile or self.own.get(name, "") for name in self.names}
        return {name: known.get(profile) for name, profile in named.items()}


@dataclass(frozen=True)
class Standing:
    """A rack, all of which is valid, and the devices in it; `unknown` are no hosts or switches."""

    name: str
    rack: Rack
    devices: tuple[Device, ...]
    unknown: frozenset[str]

    @property
    def path(self) -> KeyPath:
        """Where it stands in the inventory."""
        return (KEY, self.name)

    def by_item(self, devices: Iterable[Device]) -> Iterator[tuple[int, list[Device]]]:
        """Group devices that are alike by the entry that they are of."""
        for (number, *_), found in groupby(devices, key=lambda d: (d.item, d.depth_mm, d.supplies)):
            yield number, list(found)


def items(draft: Draft) -> Iterator[Item]:
    """Give all entries of all racks that are valid by themselves."""
    if not draft.keys.racks:
        return
    broken = {path[1:4:2] for path in draft.invalid if path[0] == KEY and len(path) > 3}
    catalogue = draft.catalogue
    own = _own_profiles(draft)
    switches = {name: each.profile for name, each in draft.keys.switches.items() if each.profile}
    for name, rack in draft.keys.racks.items():
        for number, entry in draft.numbered((KEY, name, "contents"), rack.contents):
            if (name, number) in broken:
                continue
            if entry.hosts:
                yield Item(name, number, entry, unfold(entry.hosts) or (), own, catalogue)
            else:
                yield Item(name, number, entry, (entry.switch,), switches, catalogue)


def _own_profiles(draft: Draft) -> dict[str, str]:
    """Profile of each compute node, by its node group."""
    return {
        host: group.hardware_profile
        for name, group in draft.keys.node_groups.items()
        if group.hardware_profile
        for host in draft.inventory.groups.get(name, ())
    }


def _devices(item: Item) -> Iterator[Device]:
    entry = item.entry
    return stacked(item.names, item.number, entry.u, item.profiles(), entry.feeds)


def standings(draft: Draft) -> Iterator[Standing]:
    """Put up the racks of which nothing is wrong in itself."""
    broken = {path[1] for path in draft.invalid if path[0] == KEY and len(path) > 1}
    known = {*draft.inventory.hosts, *(draft.names("switches") or [])}
    for name, found in groupby(items(draft), key=lambda item: item.rack):
        if name in broken:
            continue
        devices = tuple(device for item in found for device in _devices(item))
        unknown = frozenset(device.name for device in devices) - known
        yield Standing(name, draft.keys.racks[name], devices, unknown)
