"""What slurmdbd holds of QOS, accounts and users: the fields, their values, and a text of it all.

A value stands in one form whoever wrote it, the site or slurmdbd, so that equal ones are equal
texts: names sorted, times as `1-00:00:00`, memory in MiB, empty for what is not set. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hpcsite.slurm.tres import read_count, read_tres

Kind = Literal["number", "float", "time", "tres", "names", "words", "text"]
Values = dict[str, str]
"""A field's option → its value."""

ROOT, NORMAL = "root", "normal"
# sacctmgr(1): all of Slurm's words for "no limit" besides the numbers below zero.
_UNSET = frozenset({"", "none", "unlimited", "infinite", str(2**32 - 1), str(2**32 - 2)})
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")
_UNITS = ((1024**2, "T"), (1024, "G"), (1, "M"))


@dataclass(frozen=True)
class Field:
    """One thing that slurmdbd keeps, under sacctmgr's name of it and the site's."""

    option: str
    label: str
    kind: Kind
    unset: str = ""
    """Its value where nobody set it."""
    lift: str = "-1"
    """What sacctmgr takes to set it so again."""
    column: str = ""
    """Name in `format=`, where that is another one."""

    def canonical(self, raw: object) -> str:
        """Bring a value into its one form."""
        text = " ".join(str(raw).split())
        if self.kind == "tres":
            return _tres_text(text) or self.unset
        if self.kind == "names":
            return ",".join(sorted(filter(None, text.split(",")))) or self.unset
        if self.kind == "text":
            return text.lower()  # as sacctmgr stores it
        if text.lower() in _UNSET or text.startswith("-"):
            return self.unset
        if self.kind == "words":
            words = {word.strip().lower() for word in text.split(",")}
            return ",".join(sorted(words - {"cluster", "off"})) or self.unset
        if self.kind == "float":
            return format(float(text), "g")
        return _time_text(text) if self.kind == "time" else text

    def shown(self, value: str) -> str:
        """Write a value for people."""
        if self.kind == "tres" and value:
            return ",".join(
                f"{name}={_size(count) if name in ('mem', 'vmem') else count}"
                for name, count in tres_counts(value).items()
            )
        return value or "none"

    def setting(self, new: str, old: str) -> str:
        """Write sacctmgr's argument that turns the old value into the new one."""
        if self.kind == "tres":
            before, after = tres_counts(old), tres_counts(new)
            changed = {name: n for name, n in after.items() if before.get(name) != n}
            lifted = {name: -1 for name in before if name not in after}
            return f"{self.option}={_join({**changed, **lifted})}"
        return f"{self.option}={self.lift if new == self.unset else new}"


QOS_FIELDS = (
    Field("Priority", "priority", "number", unset="0", lift="0"),
    Field("MaxWallDurationPerJob", "max_wall", "time"),
    Field("MaxJobsPerUser", "max_jobs_per_user", "number"),
    Field("MaxSubmitJobsPerUser", "max_submit_per_user", "number"),
    Field("MaxTRESPerUser", "max_tres_per_user", "tres"),
    Field("MaxTRESPerJob", "max_tres_per_job", "tres"),
    Field("GrpTRES", "grp_tres", "tres"),
    Field("Preempt", "preempt", "names", lift=""),
    Field("PreemptMode", "preempt_mode", "words", lift="cluster"),
    Field("Flags", "flags", "words"),
    Field("UsageFactor", "usage_factor", "float", unset="1", lift="1"),
    Field("UsageThreshold", "usage_threshold", "float"),
)
_LIMITS = (
    Field("FairShare", "fairshare", "number", unset="1", lift="1"),
    Field("MaxJobs", "max_jobs", "number"),
    Field("MaxWallDurationPerJob", "max_wall", "time"),
    Field("GrpTRES", "grp_tres", "tres"),
    Field("MaxTRESPerJob", "max_tres_per_job", "tres"),
    Field("QosLevel", "qos", "names", lift="", column="QOS"),
    Field("DefaultQOS", "default_qos", "text"),
)
ASSOCIATION_FIELDS = _LIMITS
ACCOUNT_FIELDS = (
    Field("Parent", "parent", "text", unset=ROOT, lift=ROOT, column="ParentName"),
    *_LIMITS,
)
# Of the account itself, whatever the cluster. Not compared where the site says nothing.
WORD_FIELDS = (
    Field("Description", "description", "text"),
    Field("Organization", "organization", "text"),
)


class Membership(NamedTuple):
    """A user in an account, in one partition or in all."""

    user: str
    account: str
    partition: str = ""

    @property
    def key(self) -> str:
        """What it is called in the record of what hpcsite made."""
        return " ".join(["association", *filter(None, self)])

    def __str__(self) -> str:
        where = f", partition {self.partition}" if self.partition else ""
        return f"{self.user} in {self.account}{where}"


@dataclass(frozen=True)
class AccountState:
    """QOS, accounts and users, as the site wants them or as slurmdbd has them."""

    qos: Mapping[str, Values] = field(default_factory=dict)
    accounts: Mapping[str, Values] = field(default_factory=dict)
    memberships: Mapping[Membership, Values] = field(default_factory=dict)
    default_accounts: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[Membership, str] = field(default_factory=dict)
    """slurmdbd's number of each membership; the site knows none."""
    words: Mapping[str, Values] = field(default_factory=dict)
    """Description and organization of all accounts, also of those that are in no cluster."""
    elsewhere: frozenset[str] = frozenset()
    """Accounts that other clusters of the same slurmdbd have too."""


def qos_key(name: str) -> str:
    """Name a QOS in the record of what hpcsite made."""
    return f"qos {name}"


def account_key(name: str) -> str:
    """Name an account in the record of what hpcsite made."""
    return f"account {name}"


def state_text(state: AccountState) -> str:
    """Write a state, a line a thing; the same state gives the same text."""
    lines = [f"QOS {name}{_details(QOS_FIELDS, v)}" for name, v in sorted(state.qos.items())]
    for name, values in sorted(state.accounts.items()):
        words = [f"{f.label} {values[f.option]}" for f in WORD_FIELDS if values.get(f.option)]
        below = f"account {name}: below {values.get('Parent', ROOT)}"
        lines.append(", ".join([below, *described(_LIMITS, values), *words]))
    lines += [
        f"user {name}: default_account {account}"
        for name, account in sorted(state.default_accounts.items())
    ]
    lines += [
        f"association {member}{_details(ASSOCIATION_FIELDS, values)}"
        for member, values in sorted(state.memberships.items())
    ]
    return "".join(f"{line}\n" for line in lines)


def described(fields: Iterable[Field], values: Values) -> Iterator[str]:
    """Say what is set."""
    for each in fields:
        value = values.get(each.option, each.unset)
        if value != each.unset:
            yield f"{each.label} {each.shown(value)}"


def tres_counts(text: str) -> dict[str, int]:
    """Read `cpu=4,mem=1024`, as `canonical` writes it."""
    return {name: int(count) for name, _, count in (pair.partition("=") for pair in _items(text))}


def _details(fields: Iterable[Field], values: Values) -> str:
    return "".join([": ", ", ".join(found)]) if (found := [*described(fields, values)]) else ""


def _items(text: str) -> list[str]:
    return [pair for pair in text.split(",") if pair]


def _join(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _tres_text(text: str) -> str:
    counts = {}
    for pair in _items(text):
        name, _, count = pair.partition("=")
        number = _number(name, count)
        # What cannot be read is a TRES of a later release; it is none of the site's.
        if number is not None and number >= 0:
            counts[name] = number
    return _join(dict(sorted(counts.items())))


def _number(name: str, count: str) -> int | None:
    if re.fullmatch(r"-?\d+", count):
        return int(count)
    # sacctmgr writes 1536 MiB as 1.50G, where that is exact.
    if fraction := re.fullmatch(r"(\d+\.\d+)([GTP])", count):
        return int(float(fraction[1]) * (1 << 10 * "MGTP".index(fraction[2])))
    tres = read_tres(name)
    return read_count(tres, count) if tres else None


def _size(mib: int) -> str:
    for unit, letter in _UNITS:
        if mib and mib % unit == 0:
            return f"{mib // unit}{letter}"
    return str(mib)


def _time_text(text: str) -> str:
    """Write a time limit as sacctmgr shows it, in whole minutes, rounded up as it does."""
    found = _TIME.fullmatch(text)
    if not found:
        return text
    numbers = [int(number) for number in found["clock"].split(":")]
    if found["days"] is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) < 3:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    else:
        hours, minutes, seconds = numbers
    total = int(found["days"] or 0) * 1440 + hours * 60 + minutes + (seconds + 59) // 60
    days, rest = divmod(total, 1440)
    clock = f"{rest // 60:02}:{rest % 60:02}:00"
    return f"{days}-{clock}" if days else clock
