"""Power of a rack: what its feeds carry, and what goes on when one of them is lost."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean, fold
from hpcsite.site.racks import Device, Load, Running, loads
from hpcsite.site.rules.rack_contents import Standing
from hpcsite.site.sources import KeyPath


def power_is_there(draft: Draft, rack: Standing) -> Iterator[Problem]:
    """Check feeds, power supplies and loads of one rack."""
    yield from _feeds_are_known(draft, rack)
    yield from _supplies_are_there(draft, rack)
    yield from _devices_keep_running(draft, rack)
    yield from _feeds_are_several(draft, rack)
    yield from _feeds_carry(draft, rack)


def _feeds_are_known(draft: Draft, rack: Standing) -> Iterator[Problem]:
    known = rack.rack.feeds
    for item, devices in rack.by_item(rack.devices):
        for feed, _ in devices[0].feeds:
            if feed not in known:
                yield draft.problem(
                    f"the rack {rack.name} has no feed {feed}",
                    (*_path(rack, item), feed),
                    did_you_mean(feed, known, f"its feeds are {', '.join(known) or 'not given'}"),
                    code="HPC1911",
                )


def _supplies_are_there(draft: Draft, rack: Standing) -> Iterator[Problem]:
    more = [d for d in rack.devices if d.connected > (d.supplies.count or d.connected)]
    for item, devices in rack.by_item(more):
        yield draft.problem(
            f"{_each(devices)} {devices[0].supplies.count} power supplies, and "
            f"{devices[0].connected} hang on the feeds",
            _path(rack, item),
            "`feeds` says how many supplies of each device hang on which feed",
            code="HPC1912",
        )


def _devices_keep_running(draft: Draft, rack: Standing) -> Iterator[Problem]:
    """Say of each entry the worst that happens to it, and when."""
    for item, devices in rack.by_item(d for d in rack.devices if d.feeds):
        device = devices[0]
        names = fold(d.name for d in devices)
        # With all on one feed, all is lost with it: that is said by itself.
        lost = [feed for feed, _ in device.feeds] if len(device.feeds) > 1 else []
        off = next((f for f in (None, *lost) if device.running(f) is Running.OFF), "")
        reduced = next((f for f in (None, *lost) if device.running(f) is Running.REDUCED), "")
        if off != "":
            yield draft.problem(
                f"{names}: {_left(device, off)}, and it does not run with fewer than "
                f"{device.supplies.needed_degraded}",
                _path(rack, item),
                "spread the power supplies over more feeds, so that enough are left of each loss",
                code="HPC1913",
            )
        elif reduced != "":
            yield draft.problem(
                f"{names}: {_left(device, reduced)}, and full power needs "
                f"{device.supplies.needed_full}",
                _path(rack, item),
                "spread the power supplies over more feeds, or accept that jobs are slower then",
                code="HPC1914",
            )


def _left(device: Device, lost: str | None) -> str:
    left = device.left(lost)
    if lost is None:
        return f"{left} of its power supplies {'hangs' if left == 1 else 'hang'} on feeds"
    return f"{left} of its power supplies {'is' if left == 1 else 'are'} left without feed {lost}"


def _feeds_are_several(draft: Draft, rack: Standing) -> Iterator[Problem]:
    """Say once a rack what has spare power supplies, and all of them on one feed."""
    alone = [d for d in rack.devices if len(d.feeds) == 1 and d.has_spare_supplies]
    if alone:
        yield draft.problem(
            f"all power supplies of {fold(d.name for d in alone)} hang on one feed, with which "
            "they are lost",
            _path(rack, alone[0].item),
            "spread the power supplies over the feeds of the rack",
            code="HPC1915",
        )


def _feeds_carry(draft: Draft, rack: Standing) -> Iterator[Problem]:
    for load in loads(rack.devices, rack.rack.feeds):
        kw = rack.rack.feeds[load.feed].kw
        found = _overload(rack, load, kw)
        if found:
            message, code = found
            yield draft.problem(
                message,
                (*rack.path, "feeds", load.feed, "kw"),
                "move something to another rack or feed, or have a stronger circuit",
                code=code,
            )


def _overload(rack: Standing, load: Load, kw: float) -> tuple[str, str] | None:
    """Say what is too much for a feed, and the code of that."""
    # A watt is below what anybody measures, and above what sums of fractions lose.
    limit = kw * 1000 + 1
    if load.normal_w > limit:
        drawn = f"{load.normal_w / 1000:.1f} kW hang on it"
        return f"feed {load.feed} of the rack {rack.name} gives {kw:g} kW, and {drawn}", "HPC1916"
    if load.lost and load.lost_w > limit:
        drawn = f"{load.lost_w / 1000:.1f} kW hang on it without feed {load.lost}"
        return f"feed {load.feed} of the rack {rack.name} gives {kw:g} kW, and {drawn}", "HPC1917"
    return None


def _each(devices: list[Device]) -> str:
    names = fold(d.name for d in devices)
    return f"{names} has" if len(devices) == 1 else f"each of {names} has"


def _path(rack: Standing, item: int) -> KeyPath:
    return (*rack.path, "contents", item, "feeds")
