"""Rules about Slurm: free parameters, partitions, QOS, limits, and controllers that stand by."""

import pytest
import yaml

from hpcsite.errors import Problem
from hpcsite.paths import content_dir
from hpcsite.site.rules.backup import DEFAULT_STATE_DIR
from tests.unit.site.mini import SiteFolder

FILE, HOSTS = "group_vars/all/slurm.yml", "hosts.yml"
MORE = "group_vars/all/more.yml"


def found(folder: SiteFolder) -> list[Problem]:
    """Give mistakes, or the warnings of a site without any."""
    return folder.problems() or list(folder.load().warnings)


def of_slurm(problems: list[Problem]) -> list[Problem]:
    """Leave out what other rules say of these sites, e.g. of versions and of users."""
    return [problem for problem in problems if problem.code[:5] in ("HPC10", "HPC12")]


def described(folder: SiteFolder, text: str) -> list[Problem]:
    """Give what is found with further keys; `site_partitions[0]` gets what is below PARTITION."""
    text, _, partition = text.partition("PARTITION\n")
    if partition:
        folder.edit(FILE, "    default: true\n", f"    default: true\n{partition}")
    if text:
        folder.write(MORE, text)
    return found(folder)


PIN, NEW_PIN = (f"site_software: {{slurm: {version}}}\n" for version in ("24.11.5", "25.05.8"))
TWO = "site_qos: [{name: a, preempt: [b]}, {name: b, preempt_mode: SUSPEND}]\n"

GOOD = (
    "site_slurm_parameters: {KillWait: 60, SchedulerParameters: 'bf_continue,bf_window=1440'}\n",
    "site_slurm_parameters: {PriorityMaxAge: 7-0, DefMemPerCPU: 2048, killwait: '0x10'}\n",
    "site_slurm_parameters: {DisableRootJobs: true, DebugFlags: null, DownNodes: gpu01}\n",
    f"{NEW_PIN}site_slurm_cgroup_parameters: {{EnableExtraControllers: all}}\n",
    "PARTITION\n    parameters: {LLN: true, DefMemPerCPU: 1024, GraceTime: 120}\n",
    "PARTITION\n    qos: normal\n    allow_qos: [normal]\n    allow_accounts: [root]\n",
    "site_qos: [{name: high}]\nPARTITION\n    qos: high\n    allow_qos: [high]\n",
    "site_accounts: [{name: physics}]\nPARTITION\n    allow_accounts: [physics]\n",
    "PARTITION\n    allow_groups: [research]\n",
    "site_qos: [{name: a, max_wall: 2-0}, {name: b, max_wall: '90'}, {name: c}]\n",
    "site_qos: [{name: a, preempt: [b, normal]}, {name: b, preempt: [c]}, {name: c}]\n",
    "site_qos: [{name: a, preempt: [b], preempt_mode: 'OFF'}, {name: b, preempt_mode: CANCEL}]\n",
    "site_qos: [{name: a, max_tres_per_user: {gres/gpu: 8, cpu: 4, mem: 8G}}]\n",
    "site_qos: [{name: a, grp_tres: {license/ansys: 4}}]\n",
    "PARTITION\n    preempt_mode: GANG\n",
    "PARTITION\n    preempt_mode: SUSPEND\n",
    "site_slurm_parameters: {PreemptType: preempt/qos, PreemptMode: 'SUSPEND,GANG'}\n",
    "site_slurm_parameters: {PreemptMode: GANG}\n",
    "site_slurm_parameters: {EnforcePartLimits: NO, PriorityMaxAge: '12:00:00'}\n",
)


@pytest.mark.parametrize("text", GOOD)
def test_good(folder: SiteFolder, text: str) -> None:
    folder.edit("group_vars/all/site.yml", "site_verify_user: alice\n", "")
    assert of_slurm(described(folder, text)) == []


# Keys of the site; code, key, message, hint.
BAD = (
    (
        "site_slurm_parameters: {KilWait: 60}\n",
        *("HPC1219", "site_slurm_parameters.KilWait", "knows no key KilWait", "KillWait?"),
    ),
    (
        f"{PIN}site_slurm_parameters: {{KilWait: 60}}\n",
        *("HPC1219", "site_slurm_parameters.KilWait", "Slurm 24.11 knows no key", "KillWait?"),
    ),
    (
        "site_slurm_parameters: {ConstrainCores: yes}\n",
        *("HPC1219", "site_slurm_parameters.ConstrainCores", "knows no key", "cgroup.conf"),
    ),
    (
        "PARTITION\n    parameters: {GraceTim: 1}\n",
        *(
            "HPC1219",
            "site_partitions[0].parameters.GraceTim",
            "on the PartitionName lines",
            "GraceTime?",
        ),
    ),
    (
        "site_slurm_parameters: {ExtSensorsType: x}\n",
        *(
            "HPC1220",
            "site_slurm_parameters.ExtSensorsType",
            "is defunct since Slurm 23.11 or",
            "remove",
        ),
    ),
    (
        f"{PIN}site_slurm_parameters: {{CoreSpecPlugin: x}}\n",
        *("HPC1220", "site_slurm_parameters.CoreSpecPlugin", "defunct since", "remove"),
    ),
    (
        f"{PIN}site_slurm_cgroup_parameters: {{EnableExtraControllers: all}}\n",
        "HPC1221",
        "site_slurm_cgroup_parameters.EnableExtraControllers",
        "is known to Slurm only since 25.05",
        "use Slurm 25.05 or later",
    ),
    (
        f"{PIN}PARTITION\n    parameters: {{Topology: default}}\n",
        *("HPC1221", "site_partitions[0].parameters.Topology", "only since 25.05", "remove"),
    ),
    (
        "site_slurm_parameters: {KillWait: 1m}\n",
        *("HPC1222", "site_slurm_parameters.KillWait", "is a whole number", "slurm.conf(5)"),
    ),
    (
        "site_slurm_parameters: {DefMemPerCPU: 2G}\n",
        *("HPC1222", "site_slurm_parameters.DefMemPerCPU", "without a suffix", "slurm.conf(5)"),
    ),
    (
        "PARTITION\n    parameters: {LLN: maybe}\n",
        *("HPC1222", "site_partitions[0].parameters.LLN", "is yes or no", "slurm.conf(5)"),
    ),
    (
        "site_slurm_parameters: {PriorityMaxAge: 7d}\n",
        *("HPC1209", "site_slurm_parameters.PriorityMaxAge", "7d is no time limit", "as Slurm"),
    ),
    (
        "site_slurm_parameters: {PriorityMaxAge: 12:00:00}\n",
        *("HPC1238", "site_slurm_parameters.PriorityMaxAge", "as 43200", '"12:00:00"'),
    ),
    (
        "site_slurm_parameters: {PreemptMode: OFF}\n",
        *("HPC1238", "site_slurm_parameters.PreemptMode", "YAML reads OFF", '"OFF"'),
    ),
    (
        "site_slurm_parameters: {SchedulerParameters: 'bf_continue, bf_window=1440'}\n",
        "HPC1223",
        "site_slurm_parameters.SchedulerParameters",
        "blanks between them",
        "bf_continue,bf_window=1440",
    ),
    (
        "site_slurm_parameters: {Prolog: '/a,/b'}\n",
        *("HPC1223", "site_slurm_parameters.Prolog", "one value on each line", "one program"),
    ),
    (
        "site_slurm_parameters: {DownNodes: gpu01 State=FAIL}\n",
        *("HPC1223", "site_slurm_parameters.DownNodes", "begins a line", "remove it"),
    ),
    (
        "site_slurm_parameters: {TopologyPlugin: topology/tree}\n",
        *("HPC1212", "site_slurm_parameters.TopologyPlugin", "hpcsite itself", "slurm_topology"),
    ),
    *(
        (
            f"PARTITION\n    parameters: {{{key}: {value}}}\n",
            *("HPC1212", f"site_partitions[0].parameters.{key}", "hpcsite itself", field),
        )
        for key, value, field in (
            ("QOS", "high", "use qos"),
            ("AllowQos", "high", "use allow_qos"),
            ("AllowAccounts", "a", "use allow_accounts"),
            ("AllowGroups", "a", "use allow_groups"),
            ("PriorityTier", "2", "use priority_tier"),
            ("MaxNodes", "2", "use max_nodes"),
            ("OverSubscribe", "EXCLUSIVE", "use oversubscribe"),
            ("PreemptMode", "REQUEUE", "use preempt_mode"),
        )
    ),
    (
        "site_qos: [{name: high}]\nPARTITION\n    qos: hihg\n",
        *("HPC1224", "site_partitions[0].qos", "an unknown QOS hihg", "did you mean high?"),
    ),
    (
        "PARTITION\n    allow_qos: [normal, low]\n",
        *("HPC1224", "site_partitions[0].allow_qos[1]", "an unknown QOS low", "site_qos"),
    ),
    (
        "PARTITION\n    allow_accounts: [physik]\n",
        *("HPC1225", "site_partitions[0].allow_accounts[0]", "account physik", "site_accounts"),
    ),
    (
        "PARTITION\n    allow_groups: [reserach]\n",
        *("HPC1226", "site_partitions[0].allow_groups[0]", "reserach", "did you mean research?"),
    ),
    (
        "site_qos: [{name: a, max_wall: 2h}]\n",
        *("HPC1209", "site_qos[0].max_wall", "2h is no time limit", "as Slurm writes it"),
    ),
    (
        "site_associations: [{user: a, account: a, max_wall: 1d}]\n",
        *("HPC1209", "site_associations[0].max_wall", "1d is no time limit", "as Slurm writes it"),
    ),
    (
        "site_qos: [{name: a, grp_tres: {gres/gpus: 8}}]\n",
        *("HPC1227", "site_qos[0].grp_tres.gres/gpus", "the GRES gpus", "did you mean gpu?"),
    ),
    (
        "site_qos: [{name: a, grp_tres: {'gres/gpu:h200': 8}}]\n",
        *("HPC1227", "site_qos[0].grp_tres.gres/gpu:h200", "of type h200", "here: none"),
    ),
    (
        "site_qos: [{name: a, max_tres_per_job: {gres/shard: 8}}]\n",
        *("HPC1227", "site_qos[0].max_tres_per_job.gres/shard", "GRES shard", "set shards"),
    ),
    (
        "site_qos: [{name: a}, {name: a}]\n",
        *("HPC1228", "site_qos[1].name", "the QOS a is described twice", "remove one"),
    ),
    (
        "site_qos: [{name: high, preempt: [lwo]}, {name: low}]\n",
        *("HPC1229", "site_qos[0].preempt[0]", "preempts an unknown QOS lwo", "did you mean low?"),
    ),
    (
        "site_qos: [{name: a, preempt: [b]}, {name: b, preempt: [c]}, {name: c, preempt: [a]}]\n",
        *("HPC1230", "site_qos[0].preempt", "a → b → c → a", "keep one direction"),
    ),
    (
        "site_qos: [{name: a, preempt: [a]}]\n",
        *("HPC1230", "site_qos[0].preempt", "a → a", "keep one direction"),
    ),
    (
        f"{TWO}site_slurm_parameters: {{PreemptType: preempt/partition_prio}}\n",
        *("HPC1231", "site_qos[0].preempt", "PreemptType is preempt/partition_prio", "preempt/qos"),
    ),
    (
        "site_qos: [{name: a, preempt_mode: CANCEL}]\n",
        *("HPC1231", "site_qos[0].preempt_mode", "nothing preempts here", "remove preempt_mode"),
    ),
    (
        f"{TWO}PARTITION\n    preempt_mode: CANCEL\n",
        *("HPC1231", "site_partitions[0].preempt_mode", "by QOS here", "preempt/partition_prio"),
    ),
    (
        "site_slurm_parameters: {PreemptMode: REQUEUE}\n",
        *("HPC1232", "site_slurm_parameters.PreemptMode", "nothing preempts", "set PreemptType"),
    ),
    (
        "site_slurm_parameters: {PreemptMode: 'OFF', preempttype: preempt/qos}\n",
        *("HPC1232", "site_slurm_parameters.PreemptMode", "does not start so", "REQUEUE"),
    ),
    (
        "site_slurm_parameters: {PreemptMode: SUSPEND, PreemptType: preempt/qos}\n",
        *("HPC1232", "site_slurm_parameters.PreemptMode", "without GANG", "SUSPEND,GANG"),
    ),
    (
        f"{TWO}site_slurm_parameters: {{PreemptMode: CANCEL}}\n",
        *("HPC1232", "site_slurm_parameters.PreemptMode", "the QOS b is to suspend", "CANCEL,GANG"),
    ),
)


@pytest.mark.parametrize(("text", "code", "key", "says", "hint"), BAD)
def test_bad(folder: SiteFolder, text: str, code: str, key: str, says: str, hint: str) -> None:
    folder.edit("group_vars/all/site.yml", "site_verify_user: alice\n", "")
    (problem,) = of_slurm(described(folder, text))
    assert (problem.code, problem.key) == (code, key)
    assert says in problem.message
    assert hint in problem.hint
    assert problem.where
    name = "slurm.yml" if key.startswith("site_partitions") else "more.yml"
    assert problem.where.path.name == name
    assert problem.where.line > 0


def test_partitions_that_preempt_have_tiers(folder: SiteFolder) -> None:
    both = "    preempt_mode: REQUEUE\n  - name: urgent\n    node_groups: [gpu]\n"
    (problem,) = described(folder, f"PARTITION\n{both}")
    assert (problem.code, problem.key) == ("HPC1233", "site_partitions")
    folder.edit(FILE, "- name: urgent\n", "- name: urgent\n    priority_tier: 2\n")
    assert found(folder) == []


def test_limits_of_gpus_by_type(folder: SiteFolder) -> None:
    folder.edit(FILE, "      count: 8\n", "      count: 8\n      type: h100\n    shards: 8\n")
    limits = "{'gres/gpu:h100': 8, gres/shard: 4, 'gres/gpu:h200': 1, 'gres/shard:h100': 1}"
    first, second = described(folder, f"site_qos: [{{name: a, grp_tres: {limits}}}]\n")
    assert first.hint == "types of GPUs here: h100"
    assert second.hint == "write gres/shard: shares have no types"


def test_limits_of_instances(folder: SiteFolder) -> None:
    mig = "    mig: [{profiles: {1g.10gb: 7}}]\n"
    folder.edit(FILE, "      count: 8\n", f"      count: 8\n      type: h100\n{mig}")
    assert described(folder, "site_qos: [{name: a, grp_tres: {'gres/gpu:1g.10gb': 7}}]\n") == []


@pytest.mark.parametrize("limit", ["max_wall: '60'", "grp_tres: {cpu: 8}", "max_jobs_per_user: 2"])
def test_limits_that_are_not_enforced(folder: SiteFolder, limit: str) -> None:
    folder.edit("group_vars/all/site.yml", "site_verify_user: alice\n", "")
    enforce = "site_slurm_parameters: {accountingstorageenforce: 'associations,qos'}\n"
    (problem,) = described(folder, f"{enforce}site_qos: [{{name: a, {limit}}}]\n")
    assert (problem.code, problem.key) == (
        "HPC1237",
        "site_slurm_parameters.accountingstorageenforce",
    )
    assert f"e.g. site_qos[0].{limit.partition(':')[0]}" in problem.message
    folder.edit(MORE, "associations,qos", "limits")
    assert found(folder) == []


BACKUP = """\
    slurm_backup_controller:
      hosts:
        head2:
          ansible_host: 10.9.0.12
"""
SHARED = """\
    nfs_server:
      hosts:
        store:
          ansible_host: 10.9.0.13
    nfs_client:
      hosts:
        head:
        head2:
"""
EXPORT = "site_nfs_exports: [{path: /srv/state, mount: /shared}]\n"
STATE = "slurmctld_state_dir: /shared/slurmctld\n"


def test_controllers_that_share_their_state(folder: SiteFolder) -> None:
    folder.edit(HOSTS, "", BACKUP + SHARED)
    assert of_slurm(described(folder, EXPORT + STATE)) == []


def test_a_single_controller_needs_no_shared_state(folder: SiteFolder) -> None:
    assert found(folder) == []


@pytest.mark.parametrize(
    ("hosts", "keys", "code", "says"),
    [
        (BACKUP, "", "HPC1234", f"{DEFAULT_STATE_DIR} is on no shared file system"),
        (BACKUP + SHARED, EXPORT, "HPC1234", "is on no shared file system"),
        (
            BACKUP + SHARED.replace("        head2:\n", ""),
            EXPORT + STATE,
            "HPC1234",
            "head2 cannot write to /shared",
        ),
        (
            BACKUP + SHARED,
            EXPORT.replace("}", ", read_only: true}") + STATE,
            "HPC1234",
            "cannot write to /shared",
        ),
        (
            BACKUP + SHARED.replace("store:\n          ansible_host: 10.9.0.13", "head:"),
            EXPORT + STATE,
            "HPC1236",
            "head is a controller and shares Slurm's state itself",
        ),
    ],
)
def test_controllers_that_do_not(
    folder: SiteFolder, hosts: str, keys: str, code: str, says: str
) -> None:
    folder.edit(HOSTS, "", hosts)
    (problem,) = of_slurm(described(folder, keys))
    assert problem.code == code
    assert problem.where
    assert says in problem.message


def test_controllers_with_different_folders(folder: SiteFolder) -> None:
    folder.edit(HOSTS, "", BACKUP + SHARED)
    folder.write("host_vars/head2/main.yml", "slurmctld_state_dir: /shared/other\n")
    (problem,) = described(folder, EXPORT + STATE)
    assert problem.code == "HPC1235"
    assert problem.where
    assert problem.where.path.name == "main.yml"
    assert (
        "head2 would keep Slurm's state in /shared/other, and head in /shared/" in problem.message
    )


def test_default_of_the_role() -> None:
    text = (content_dir() / "roles/slurmctld/defaults/main.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["slurmctld_state_dir"] == DEFAULT_STATE_DIR
