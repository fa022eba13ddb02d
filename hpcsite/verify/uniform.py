"""Whether hosts that should be alike are: what each says of one thing, held against pin and peers.

Pure. A pin decides where there is one. Else the value that most have is taken for the right one,
and where no value is had by more than half, nobody is told apart: every holder is possible.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hpcsite.site.compatibility.versions import leading_numbers, read_package
from hpcsite.site.names import fold
from hpcsite.verify.parsers.facts import UNKNOWN
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Property, Variant

NOT_THERE = "not there"


@dataclass(frozen=True)
class Odd:
    """A host that is not as the others, or not as pinned."""

    host: str
    name: str
    value: str
    wanted: str
    certainty: Certainty

    @property
    def because(self) -> str:
        """What was seen, for a person."""
        return f"{self.name} is {self.value}, {self.wanted}"


@dataclass(frozen=True)
class Judged:
    """One thing over hosts. `said` has a sentence for each way in which it is wrong."""

    prop: Property | None = None
    odd: tuple[Odd, ...] = ()
    said: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass
class Uniformity:
    """Several things over hosts."""

    properties: list[Property] = field(default_factory=list)
    odd: list[Odd] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)

    def add(self, name: str, judged: Judged) -> None:
        """Count what was found of one thing."""
        if judged.prop is None:
            self.not_read.append(name)
            return
        self.properties.append(judged.prop)
        self.odd += judged.odd
        self.said += judged.said
        self.unknown += judged.unknown


def judge(
    name: str,
    values: Mapping[str, str],
    *,
    pin: str = "",
    exact: bool = False,
    required: bool = False,
) -> Judged:
    """Judge one thing. `values` is what each host said; empty for one that does not have it.

    With `exact` a pin is the whole word, else a version that a tool may tell longer or shorter.

    What no host has is not judged, unless it is pinned or `required`. A host that has it and
    cannot tell its version is unknown; where it is required, it is wrong.
    """
    missing = UNKNOWN if required else NOT_THERE
    said = {host: value or missing for host, value in values.items()}
    if not said or not (pin or required or any(values.values())):
        return Judged()
    prop = _property(name, said)
    cannot = [host for host, value in said.items() if value == UNKNOWN]
    told = {host: value for host, value in said.items() if value != UNKNOWN}
    lacks = (f"{fold(cannot)} cannot tell its version of {name}",) if cannot else ()
    odd = [Odd(h, name, UNKNOWN, "others tell it", Certainty.CERTAIN) for h in cannot if required]
    found = _against_pin(name, told, pin, exact=exact) if pin else Judged()
    if not found.odd and not found.unknown:
        found = _against_peers(name, told)
    return Judged(
        prop,
        (*odd, *found.odd),
        (*(lacks if required else ()), *found.said),
        (*(() if required else lacks), *found.unknown),
    )


def matches(value: str, pin: str) -> bool | None:
    """Say whether a version that a tool tells is a pinned one; None if it says too little for that.

    A pin may have a package's revision, which tools do not tell: `2.27.7-1+cuda13.0` is 2.27.7.
    """
    if value == pin:
        return True
    package = read_package(pin)
    wanted = leading_numbers(package.upstream) if package else None
    # `Open MPI 5.0.8` is 5.0.8.
    found = leading_numbers(value.rpartition(" ")[2])
    if wanted is None or found is None:
        return False
    shared = min(len(wanted), len(found))
    if wanted[:shared] != found[:shared]:
        return False
    return True if len(found) >= len(wanted) else None


def blamed(odd: Iterable[Odd]) -> tuple[Culprit, ...]:
    """Name each odd host once, with all in which it is odd; the surest first."""
    by_host: dict[str, list[Odd]] = {}
    for one in odd:
        by_host.setdefault(one.host, []).append(one)
    order = list(Certainty)
    found = [
        Culprit(
            kind=CulpritKind.NODE,
            name=host,
            nodes=host,
            certainty=min((one.certainty for one in ones), key=order.index),
            because="; ".join(dict.fromkeys(one.because for one in ones)),
        )
        for host, ones in by_host.items()
    ]
    return tuple(sorted(found, key=lambda each: order.index(each.certainty)))


def _property(name: str, said: Mapping[str, str]) -> Property:
    ordered = [value for value, _ in Counter(said.values()).most_common()]
    variants = [Variant(value=value, nodes=_having(said, value)) for value in ordered]
    return Property(name=name, variants=tuple(variants))


def _having(said: Mapping[str, str], value: str) -> str:
    return fold(host for host in said if said[host] == value)


def _against_peers(name: str, said: Mapping[str, str]) -> Judged:
    (most, count), *others = Counter(said.values()).most_common() or [("", 0)]
    if not others:
        return Judged()
    majority = 2 * count > len(said)
    odd: list[Odd] = []
    for host, value in said.items():
        if majority and value != most:
            # Of three hosts, two that went wrong together would be the most.
            sure = Certainty.CERTAIN if count > 2 else Certainty.LIKELY
            odd.append(Odd(host, name, value, f"most have {most}", sure))
        elif not majority:
            rest = " or ".join(dict.fromkeys(v for v in said.values() if v != value))
            odd.append(Odd(host, name, value, f"others have {rest}", Certainty.POSSIBLE))
    differs = ", ".join(f"{value} on {_having(said, value)}" for value, _ in others)
    return Judged(odd=tuple(odd), said=(f"{name}: {differs}, but {most} on {_having(said, most)}",))


def _against_pin(name: str, said: Mapping[str, str], pin: str, *, exact: bool) -> Judged:
    values = dict.fromkeys(said.values())
    held = {value: value == pin if exact else matches(value, pin) for value in values}
    wrong = [value for value, good in held.items() if good is False]
    unclear = [value for value, good in held.items() if good is None]
    return Judged(
        odd=tuple(
            Odd(host, name, value, f"{pin} is pinned", Certainty.CERTAIN)
            for host, value in said.items()
            if value in wrong
        ),
        said=_each(name, said, wrong, f"but {pin} is pinned"),
        unknown=_each(name, said, unclear, f"which may or may not be {pin}, which is pinned"),
    )


def _each(name: str, said: Mapping[str, str], values: Sequence[str], end: str) -> tuple[str, ...]:
    if not values:
        return ()
    listed = ", ".join(f"{value} on {_having(said, value)}" for value in values)
    return (f"{name}: {listed}, {end}",)
