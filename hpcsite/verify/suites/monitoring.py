"""Suite `monitoring`: what Prometheus sees, and whether somebody is told when it sees something."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from hpcsite.site.model import Host
from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, Tag
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.parsers.prometheus import (
    Rule,
    Sample,
    ScrapeTarget,
    read_alertmanagers,
    read_rules,
    read_targets,
    read_vector,
)
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Direction, Measurement
from hpcsite.verify.suites.monitoring_alerts import find_alert, find_firing
from hpcsite.verify.suites.monitoring_http import NoAnswerError, Request, ask, host_of, query

# A rule is evaluated at each interval of its group; it is late when it missed several.
_LATE_INTERVALS, _LATE_S = 3, 60
# By what a host is known to be measured (node_exporter), and its GPUs (dcgm-exporter).
_NODE, _GPUS = "node_uname_info", "count by (instance, Hostname) (DCGM_FI_DEV_GPU_TEMP)"
_SLURM = 'count({__name__=~"slurm_.+"})'


def in_group(group: str) -> Callable[[Context], str]:
    """Need: a host in a group."""

    def need(context: Context) -> str:
        hosts = context.site.in_group(group)
        return "" if hosts else f"no host of the site is in the group {group}"

    return need


def find_targets(context: Context) -> Finding:
    """Every target is up, and each host of the site is one."""
    tally, measured, down = Tally(), [], dict[str, str]()
    for host in context.site.in_group("prometheus"):
        try:
            replies = ask(
                context,
                host,
                "prometheus",
                [Request("targets", "/api/v1/targets?state=active")],
            )
            targets = replies.read("targets", read_targets)
        except NoAnswerError as error:
            tally.wrong.append(str(error))
            continue
        down |= judge_targets(context, host, targets, tally)
        measured.append(_count("targets_up", sum(t.health == "up" for t in targets), host))
    return tally.finding(
        sorted({*down} | {host.name for host in context.site.in_group("prometheus")}),
        measurements=measured,
        culprits=_culprits(down),
        remedy="look at the exporter on the host: `systemctl status`, its port, a firewall",
    )


def judge_targets(
    context: Context, host: Host, targets: Sequence[ScrapeTarget], tally: Tally
) -> dict[str, str]:
    """Say which targets are down, and which hosts are none; the hosts that are down, with why."""
    site, down = context.site, dict[str, str]()
    if not targets:
        tally.wrong.append(f"Prometheus on {host.name} has no target")
        return down
    covered = set()
    for one in targets:
        of = host_of(site, one.address, host.name) or host_of(site, one.instance, host.name)
        covered.add(of)
        if one.health == "up":
            continue
        what = f"target {one.job} of {of or one.instance or one.address}"
        if one.health != "down" or one.scraped is None:
            tally.unknown.append(f"{what} was not looked at yet")
            continue
        tally.wrong.append(f"{what} is down: {one.error}")
        if of:
            down[of] = f"Prometheus on {host.name}: {what} is down: {one.error}"
    if missing := [name for name in site.hosts if name not in covered]:
        tally.wrong.append(f"Prometheus on {host.name} has no target on {fold(missing)}")
    return down


def find_series(context: Context) -> Finding:
    """Each host's own measurements are there, and those of each GPU."""
    tally, measured, notes = Tally(), [], []
    for host in context.site.in_group("prometheus"):
        asked = [
            Request("node", query(_NODE)),
            Request("gpus", query(_GPUS)),
            Request("slurm", query(_SLURM)),
        ]
        try:
            replies = ask(context, host, "prometheus", asked)
            nodes = replies.read("node", read_vector)
            gpus = replies.read("gpus", read_vector)
            slurm = replies.read("slurm", read_vector)
        except NoAnswerError as error:
            raise NotMeasuredError(str(error)) from error
        judge_series(context, host, nodes, gpus, tally)
        measured.append(_count("hosts_measured", len(nodes), host))
        if not slurm:
            notes.append(f"Prometheus on {host.name} has no series of Slurm (slurm_*)")
    return tally.finding(
        [host.name for host in context.site.in_group("prometheus")],
        reason="; ".join(notes),
        measurements=measured,
    )


def judge_series(
    context: Context, host: Host, nodes: Sequence[Sample], gpus: Sequence[Sample], tally: Tally
) -> None:
    """Say which hosts and GPUs have no measurements."""
    site = context.site
    seen = {_host_of_sample(context, host, one, "nodename") for one in nodes}
    if missing := [name for name in site.hosts if name not in seen]:
        tally.wrong.append(f"Prometheus on {host.name} has no {_NODE} of {fold(missing)}")
    counted: dict[str, float] = {}
    for one in gpus:
        name = _host_of_sample(context, host, one, "Hostname")
        counted[name] = counted.get(name, 0) + one.value
    for name, declared in _real_gpus(context).items():
        if counted.get(name, 0) < declared:
            tally.wrong.append(
                f"{name}: {counted.get(name, 0):.0f} of {declared} GPUs have series of DCGM"
            )


def _host_of_sample(context: Context, host: Host, sample: Sample, label: str) -> str:
    """Return whose a sample is: by its instance, else by a label with the host's own name."""
    found = host_of(context.site, sample.labels.get("instance", ""), host.name)
    return found or host_of(context.site, sample.labels.get(label, ""), "")


def _real_gpus(context: Context) -> Mapping[str, int]:
    """Return how many GPUs nodes have that can be measured: those of virtual nodes cannot."""
    found = {}
    for name in context.cluster.gpu_declared:
        _, group = context.cluster.group_of(name)
        if group.gpus and not group.virtual:
            found[name] = group.gpus.count
    return found


def find_rules(context: Context) -> Finding:
    """Rules are loaded and evaluated without errors, and alerts have where to go."""
    tally, measured = Tally(), []
    for host in context.site.in_group("prometheus"):
        asked = [
            Request("rules", "/api/v1/rules"),
            Request("alertmanagers", "/api/v1/alertmanagers"),
            Request("time", query("vector(time())")),
        ]
        try:
            replies = ask(context, host, "prometheus", asked)
            rules = replies.read("rules", read_rules)
            urls = replies.read("alertmanagers", read_alertmanagers)
            now = replies.read("time", read_vector)
        except NoAnswerError as error:
            raise NotMeasuredError(str(error)) from error
        judge_rules(host, rules, now[0].value if now else None, tally)
        used = {host_of(context.site, url, host.name) for url in urls}
        for other in context.site.in_group("alertmanager"):
            if other.name not in used:
                tally.wrong.append(
                    f"Prometheus on {host.name} sends no alert to Alertmanager on {other.name}"
                )
        measured.append(_count("alert_rules", sum(rule.alerting for rule in rules), host))
    return tally.finding(
        [host.name for host in context.site.in_group("prometheus")],
        measurements=measured,
        remedy="`promtool check rules` on the files of `rule_files`, and Prometheus's own log",
    )


def judge_rules(host: Host, rules: Sequence[Rule], now: float | None, tally: Tally) -> None:
    """Say which rules are broken or late; `now` is Prometheus's own clock."""
    if not any(rule.alerting for rule in rules):
        loaded = f"{len(rules)} rules, none of which alerts" if rules else "no rules loaded"
        tally.wrong.append(f"Prometheus on {host.name} has {loaded}")
    for rule in rules:
        name = f"rule {rule.name} of {rule.group} on {host.name}"
        if rule.health == "err":
            tally.wrong.append(f"{name}: {rule.error}")
        elif rule.evaluated is None or rule.health != "ok":
            tally.unknown.append(f"{name} was not evaluated yet")
        elif now is not None:
            late = now - rule.evaluated
            if late > _LATE_INTERVALS * rule.interval_s + _LATE_S:
                tally.wrong.append(f"{name} was not evaluated for {late:.0f} s")


def _count(name: str, value: int, host: Host) -> Measurement:
    return Measurement(
        name=name, value=value, unit="", direction=Direction.HIGHER, at={"prometheus": host.name}
    )


def _culprits(down: Mapping[str, str]) -> Iterable[Culprit]:
    return [
        Culprit(
            kind=CulpritKind.NODE, name=name, nodes=name, certainty=Certainty.LIKELY, because=why
        )
        for name, why in down.items()
    ]


_ONE = (in_group("prometheus"),)
_BOTH = (*_ONE, in_group("alertmanager"))
CHECKS = (
    Check(
        "monitoring",
        "targets",
        "Prometheus has a target on each host of the site, and each is up.",
        find_targets,
        _ONE,
    ),
    Check(
        "monitoring",
        "series",
        "What hosts and GPUs measure is in Prometheus.",
        find_series,
        _ONE,
    ),
    Check(
        "monitoring",
        "rules",
        "Rules are loaded, evaluated in time and without errors, and alerts have where to go.",
        find_rules,
        _ONE,
    ),
    Check(
        "monitoring",
        "firing",
        "An alert that fires in Prometheus is in Alertmanager.",
        find_firing,
        _BOTH,
    ),
    Check(
        "monitoring",
        "alert",
        "A test alert is routed to a receiver, and its notification is sent.",
        find_alert,
        _BOTH[1:],
        tags=frozenset((Tag.ACCEPTANCE,)),
    ),
)
