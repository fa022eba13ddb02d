"""How far the hosts' clocks are apart, measured with the round trip taken into account.

The login node asks each compute node for its time through a job whose input and output it holds,
and this computer asks the other hosts over ssh. As in NTP, an answer is taken to have been given
in the middle between question and answer; half the round trip is what that can be wrong by, so
the quickest of several exchanges counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.results import (
    Certainty,
    Culprit,
    CulpritKind,
    Direction,
    Measurement,
    Reference,
)
from hpcsite.verify.spread import spread
from hpcsite.verify.suites import needs
from hpcsite.verify.transport import Answer, UnreachableError

LIMIT = Reference(
    value=0.5,
    unit="s",
    source="hpcsite: with more, logs and accounting of one job are out of order",
)
_EXCHANGES = 5
_TIME = ["date", "+%s.%N"]
_REMOTE = "while read -r _; do date +%s.%N; done"
_DRIVER = f"""
coproc JOB {{ "$@"; }}
for i in $(seq {_EXCHANGES + 1}); do
  asked=$(date +%s.%N)
  echo >&"${{JOB[1]}}" || exit
  read -r answer <&"${{JOB[0]}}" || exit
  echo "$asked $answer $(date +%s.%N)"
done
exec {{JOB[1]}}>&-
wait
"""


@dataclass(frozen=True)
class Offset:
    """A clock against the reference clock; `error_s` is what `seconds` can be wrong by."""

    seconds: float
    error_s: float

    def __sub__(self, other: "Offset") -> "Offset":
        return Offset(self.seconds - other.seconds, self.error_s + other.error_s)


def offset(asked: float, answer: float, received: float) -> Offset:
    """One exchange: the answering clock against the asking one."""
    return Offset(answer - (asked + received) / 2, (received - asked) / 2)


def best(offsets: Iterable[Offset]) -> Offset:
    """Return the most exact one; raises `ValueError` for none."""
    return min(offsets, key=lambda one: one.error_s)


def read_exchanges(text: str) -> Offset:
    """Read lines `asked answer received`; raises `NotMeasuredError` if there is none."""
    found = []
    for line in text.splitlines():
        words = line.split()
        try:
            asked, answer, received = (float(word) for word in words)
        except ValueError:
            continue
        found.append(offset(asked, answer, received))
    if not found:
        raise NotMeasuredError("it did not tell its time")
    return best(found)


def read_answers(answers: Iterable[Answer]) -> Offset:
    """Read `date +%s.%N` as answered over ssh, against this computer's clock."""
    text = "\n".join(
        f"{answer.started} {answer.stdout.strip()} {answer.started + answer.seconds}"
        for answer in answers
        if answer.ok
    )
    return read_exchanges(text)


def find_clocks(context: Context) -> Finding:
    """Largest difference between any two clocks."""
    tally = Tally(unknown=list(context.cluster.blocked))
    offsets = _nodes(context, tally) | _others(context, tally)
    measured = judge(offsets, tally)
    blamed = clock_culprits(offsets)
    named = ",".join(culprit.name for culprit in blamed)
    return tally.finding(
        offsets,
        measurements=[measured] if measured else [],
        culprits=blamed,
        remedy=f"`chronyc tracking` and `chronyc sources` on {named}: does it reach its servers?",
    )


def clock_culprits(offsets: Mapping[str, Offset]) -> tuple[Culprit, ...]:
    """Name the clocks that are off the middle one by more than half the limit, the worst first.

    Of two clocks none is the right one, nor of many that do not agree.
    """
    if len(offsets) < 2:
        return ()
    middle = median(clock.seconds for clock in offsets.values())
    off = {
        name: clock.seconds - middle
        for name, clock in offsets.items()
        if abs(clock.seconds - middle) - clock.error_s > LIMIT.value / 2
    }
    agree = len(offsets) - len(off)
    sure = Certainty.CERTAIN if 2 * agree > len(offsets) and agree > 1 else Certainty.POSSIBLE
    return tuple(
        Culprit(
            kind=CulpritKind.NODE,
            name=name,
            nodes=name,
            certainty=sure,
            because=f"its clock is off by {off[name]:+.3f} s from the middle of all",
        )
        for name in sorted(off, key=lambda each: -abs(off[each]))
    )


def judge(offsets: dict[str, Offset], tally: Tally) -> Measurement | None:
    """Hold the two clocks that are farthest apart against the limit."""
    if len(offsets) < 2:
        tally.unknown.append("fewer than two clocks could be read")
        return None
    one, two = (most(offsets, key=lambda name: offsets[name].seconds) for most in (max, min))
    apart = offsets[one] - offsets[two]
    measured = Measurement(
        name="clock_difference_max",
        value=round(abs(apart.seconds), 6),
        unit="s",
        direction=Direction.LOWER,
        at={"nodes": f"{one},{two}", "error_s": round(apart.error_s, 6)},
        reference=LIMIT,
    )
    if abs(apart.seconds) - apart.error_s > LIMIT.value:
        middle = median(clock.seconds for clock in offsets.values())
        odd = max((one, two), key=lambda name: abs(offsets[name].seconds - middle))
        tally.wrong.append(
            f"the clocks of {one} and {two} are {abs(apart.seconds):.3f} s apart, at most "
            f"{LIMIT.value} s is allowed; {odd} is off by {offsets[odd].seconds - middle:+.3f} s"
        )
    elif abs(apart.seconds) + apart.error_s > LIMIT.value:
        tally.unknown.append(
            f"the clocks of {one} and {two} are {abs(apart.seconds):.3f} s apart, but that can "
            f"be wrong by {apart.error_s:.3f} s: the answers took too long"
        )
    return measured


def _nodes(context: Context, tally: Tally) -> dict[str, Offset]:
    """Compute nodes against the submit host."""
    targets = context.cluster.targets
    if not targets:
        return {}
    driver = ["bash", "-c", _DRIVER, "clocks"]
    found = {}
    argv = ["bash", "-c", _REMOTE]
    for node, answer in spread(context, targets, argv, name="clocks", driver=driver).items():
        try:
            found[node] = read_exchanges(answer.stdout)
        except NotMeasuredError:
            tally.unknown.append(answer.not_started or f"{node}: {answer.complaint}")
    return found


def _others(context: Context, tally: Tally) -> dict[str, Offset]:
    """Hosts that run no jobs against the submit host, by way of this computer's clock."""
    submit = context.core.host
    found = {}
    for host in context.site.hosts.values():
        if "slurm_compute" in host.groups and host.name != submit.name:
            continue
        try:
            name = f"clock-{host.name}"
            answers = [context.admin(host, _TIME, name) for _ in range(_EXCHANGES)]
            found[host.name] = read_answers(answers)
        except UnreachableError as error:
            tally.unknown.append(f"cannot reach {error}")
        except NotMeasuredError as error:
            tally.unknown.append(f"{host.name}: {error}")
    here = found.pop(submit.name, None)
    if here is None:
        return {}
    return {name: clock - here for name, clock in found.items()} | {submit.name: Offset(0, 0)}


def _light(context: Context) -> Claim:
    return Claim(frozenset(context.cluster.declared), Mode.LIGHT)


CLOCKS = Check(
    "node",
    "clocks",
    "No two clocks of the site are more than 0.5 s apart.",
    find_clocks,
    (needs.compute_nodes(1),),
    _light,
)
