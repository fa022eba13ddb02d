"""Whatever stands in the part about Slurm and nodes, a site loads or is refused: nothing else."""

import copy
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcsite.errors import InvalidSiteError
from hpcsite.site import load
from hpcsite.site.draft import PREFIX
from hpcsite.site.model import SiteKeys
from tests.unit.site.mini import SLURM, SiteFolder

FILE = "group_vars/all/slurm.yml"
# Everything that the rules about Slurm and hardware look at is there.
FULL = {
    **yaml.safe_load(SLURM),
    "site_node_groups": {
        "gpu": {
            "hardware_profile": "dgx-h100",
            "hardware": {"sockets": 2, "cores_per_socket": 8, "memory_mib": 4096},
            "gpus": {"count": 8, "type": "h100"},
            "mig": [
                {"nodes": "gpu01", "gpus": "0-3", "profiles": {"1g.10gb": 7}},
                {"nodes": "gpu[02]", "profiles": {"3g.40gb": 2}},
            ],
            "features": ["h100"],
            "weight": 2,
        },
    },
    "site_slurm_parameters": {
        "KillWait": 60,
        "SchedulerParameters": "bf_continue",
        "PreemptType": "preempt/qos",
        "PreemptMode": "SUSPEND,GANG",
        "PriorityMaxAge": "7-0",
    },
    "site_slurm_cgroup_parameters": {"ConstrainCores": True},
    "site_software": {"slurm": "25.05.8"},
    "site_qos": [
        {"name": "high", "preempt": ["low"], "preempt_mode": "REQUEUE", "max_wall": "1-0"},
        {"name": "low", "grp_tres": {"gres/gpu:h100": 8, "mem": "100G"}},
    ],
    "site_accounts": [{"name": "physics", "max_wall": "12:00:00", "grp_tres": {"cpu": 100}}],
    "site_partitions": [
        {
            "name": "batch",
            "node_groups": ["gpu"],
            "default": True,
            "qos": "high",
            "allow_qos": ["high", "low"],
            "allow_accounts": ["physics"],
            "allow_groups": ["research"],
            "preempt_mode": "GANG",
            "priority_tier": 3,
            "parameters": {"LLN": True},
        },
        {"name": "small", "node_groups": ["gpu"], "max_time": "30", "default_time": "10"},
    ],
}
# Values that look like something, those that are nearly right, and those of another kind.
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [
            *("", "gpu[01-", "gpu[1-999999999]", "gpu01,gpu01", "0-99999999999", "3-1", "1g.10gb"),
            *("gres/gpu:", "gres/", "/", "1-", "-1", "²", "1e9", "preempt/none", "a" * 200, "a,b"),
            *("9" * 5000, "gpu[" + "9" * 5000 + "-1]", "0-" + "9" * 5000, "a[1-9],b[1-9]"),
            *("normal", "low", "small", "gpu", "h200", "dgx-h200", "lab-vm", "24.11", "99.99.9"),
            *(0, -1, 1, 2**31, 2**64, 1.5, float("inf"), True, None),
        ]
    ),
    st.text(max_size=8),
    st.integers(),
    st.lists(st.sampled_from(["high", "low", 1, None, "0-3"]), max_size=3),
    st.dictionaries(
        st.sampled_from(["name", "nodes", "gpus", "profiles", "cpu", "1g.10gb", "KillWait"]),
        st.sampled_from([1, "x", None, {}, [], "9g.9gb"]),
        max_size=3,
    ),
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all that stands in a value."""
    found: list[tuple[Any, ...]] = []
    if not isinstance(value, dict | list):
        return found
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
        found += [(*path, key), *places(entry, (*path, key))]
    return found


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """Change, remove or add something, a few times."""
    site = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(1, 4))):
        *above, last = draw(st.sampled_from(places(site)))
        holder: Any = site
        for step in above:
            holder = holder[step]
        match draw(st.sampled_from(["change", "remove", "add", "rename"])):
            case "change":
                holder[last] = draw(VALUES)
            case "remove" if len(site) > 1:
                del holder[last]
            case "add" if isinstance(holder, list):
                holder.append(copy.deepcopy(draw(st.sampled_from(holder))))
            case _ if isinstance(holder, dict) and holder is not site:
                names = [*SiteKeys.model_fields, "mig", "shards", "mps", "virtual", "nodes"]
                holder[draw(st.sampled_from(names))] = draw(VALUES)
    return {key: value for key, value in site.items() if key.startswith(PREFIX)}


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(site=mutated())
def test_a_mutated_site_is_refused_or_loads(folder: SiteFolder, site: dict[str, Any]) -> None:
    folder.write(FILE, yaml.safe_dump(site, allow_unicode=True))
    try:
        said = list(load.load_site(folder.path).warnings)
    except InvalidSiteError as error:
        said = error.problems
    assert all(problem.code and problem.hint for problem in said)


def test_the_site_that_is_mutated_is_good(folder: SiteFolder) -> None:
    """Else no mutation would ever reach the rules that look at what is right."""
    folder.write(FILE, yaml.safe_dump(FULL))
    assert [problem for problem in folder.problems() if problem.code[:5] != "HPC16"] == []
