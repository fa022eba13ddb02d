"""Whether a stored plan still holds: the description and the machines as they were, in hashes.

The description is hashed as it was loaded, so that comments and the order of files do not count.
The machines are hashed by what a check finds on them. What is right on them already is in no plan,
and when it ceases to be right the check finds that too.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from hpcsite import __version__
from hpcsite.deploy.plan.collect import HostState
from hpcsite.deploy.plan.model import Fingerprint, Item, Plan
from hpcsite.site.model import Host, Site
from hpcsite.site.names import fold

_MAX_NAMED = 5


def fingerprint(
    site: Site, changes: Iterable[tuple[str, Item]], states: Mapping[str, HostState]
) -> Fingerprint:
    """Hash all that a plan of this site rests on, with what a check has found."""
    found: dict[str, list[str]] = {host: [json.dumps(s.facts)] for host, s in states.items()}
    hashes: dict[Item, str] = {}  # many hosts have the same ones
    for host, item in changes:
        if item not in hashes:
            hashes[item] = _sha256([type(item).__name__, item.model_dump(mode="json")])
        found.setdefault(host, []).append(hashes[item])
    return Fingerprint(
        hpcsite=__version__,
        keys={
            f"site_{name}": _sha256(value)
            for name, value in site.keys.model_dump(mode="json").items()
        },
        hosts={host.name: _sha256(_described(host)) for host in site.hosts.values()},
        machines={host: _sha256(sorted(texts)) for host, texts in found.items()},
    )


def moved(old: Plan, new: Plan) -> list[str]:
    """Say what is not as it was when the plan was made; nothing where the plan holds."""
    before, after = old.fingerprint, new.fingerprint
    said = []
    if before.hpcsite != after.hpcsite:
        said.append(f"hpcsite is {after.hpcsite}, the plan was made by {before.hpcsite}")
    if keys := _differing(before.keys, after.keys):
        said.append(f"the description has changed: {', '.join(keys)}")
    # A key of the whole site stands among the variables of each host: said once.
    if (hosts := _differing(before.hosts, after.hosts)) and not keys:
        said.append(f"the description has changed: variables or groups of {fold(hosts)}")
    alike: dict[str, list[str]] = {}
    for host in _differing(before.machines, after.machines):
        alike.setdefault(_how(old, new, host), []).append(host)
    said += [f"{fold(names)}: not as planned{how}" for how, names in alike.items()]
    known = {job.id for job in old.jobs_at_risk}
    if risky := [job for job in new.jobs_at_risk if job.id not in known]:
        jobs = ", ".join(f"{job.id} of {job.user}" for job in risky)
        said.append(f"jobs are at risk that the plan does not name: {jobs}")
    return said


def _described(host: Host) -> dict[str, object]:
    return {"groups": sorted(host.groups), "address": host.address, "vars": host.vars}


def _sha256(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {**before, **after} if before.get(name) != after.get(name))


def _how(old: Plan, new: Plan, host: str) -> str:
    """Name what a check finds now and did not then, or the other way round."""
    before, after = _of_host(old, host), _of_host(new, host)
    labels = sorted({label for label, _ in before ^ after})
    more = f" and {len(labels) - _MAX_NAMED} more" if len(labels) > _MAX_NAMED else ""
    return f": {', '.join(labels[:_MAX_NAMED])}{more}" if labels else ""


def _of_host(plan: Plan, host: str) -> set[tuple[str, str]]:
    return {
        (item.label, item.model_dump_json(exclude={"nodes", "hosts"}))
        for item in plan.items
        if host in item.hosts
    }
