from dataclasses import replace

import pytest

from hpcsite.errors import InvalidSiteError
from hpcsite.site.model import SiteKeys
from hpcsite.slurm.cluster import Controller, Paths
from hpcsite.slurm.conf import parse_slurm_conf
from hpcsite.slurm.configuration import Configuration, choose_tracking, configure
from hpcsite.slurm.hardware import NEEDED_CONTROLLERS, Candidate, Evidence

CONTROLLER = Controller("head", "10.0.0.10", "head")
PATHS = Paths("/var/spool/slurmctld", "/var/spool/slurmd")
FOUND = Evidence(
    cpus=64,
    sockets=2,
    cores_per_socket=32,
    threads_per_core=1,
    memory_mib=515_000,
    gpu_devices=tuple(f"/dev/nvidia{number}" for number in range(8)),
    cgroup_controllers=NEEDED_CONTROLLERS,
)
NO_CGROUP = replace(FOUND, cgroup_controllers=frozenset())


def keys(**more: object) -> SiteKeys:
    return SiteKeys.model_validate(
        {
            "name": "lab",
            "node_groups": {"gpu": {"gpus": {"count": 8}}},
            "partitions": [{"name": "gpu", "node_groups": ["gpu"], "default": True}],
            **more,
        }
    )


def nodes(*found: Evidence | None) -> list[Candidate]:
    return [
        Candidate(f"gpu{number:02}", f"10.0.0.{20 + number}", "gpu", evidence)
        for number, evidence in enumerate(found, 1)
    ]


def run(site: SiteKeys, candidates: list[Candidate], standing: str = "") -> Configuration:
    return configure(site, CONTROLLER, PATHS, candidates, standing)


def test_equal_nodes_share_a_line_and_addresses_fold_along() -> None:
    lines = run(keys(), nodes(FOUND, FOUND, FOUND)).slurm_conf.splitlines()
    line = next(line for line in lines if line.startswith("NodeName"))
    assert line.startswith("NodeName=gpu[01-03] NodeAddr=10.0.0.[21-23] CPUs=64 Sockets=2 ")
    assert "PartitionName=gpu Nodes=gpu[01-03] Default=YES MaxTime=UNLIMITED State=UP" in lines


def test_addresses_in_another_order_than_the_names_stay_right() -> None:
    first, second = nodes(FOUND, FOUND)
    swapped = [replace(first, address="10.0.0.9"), replace(second, address="10.0.0.8")]
    conf = parse_slurm_conf(run(keys(), swapped).slurm_conf)
    assert conf.nodes["gpu01"]["nodeaddr"] == "10.0.0.9"
    assert conf.nodes["gpu02"]["nodeaddr"] == "10.0.0.8"


def test_a_second_run_with_a_few_mib_less_changes_nothing() -> None:
    first = run(keys(), nodes(FOUND, FOUND))
    less = replace(FOUND, memory_mib=FOUND.memory_mib - 7)
    second = run(keys(), nodes(less, FOUND), first.slurm_conf)
    assert second == replace(first, standing_state_dir=PATHS.state_dir)


def test_a_run_over_a_new_node_keeps_the_others_lines() -> None:
    before = run(keys(), nodes(FOUND, FOUND))
    after = run(keys(), nodes(None, None, FOUND), before.slurm_conf)
    conf = parse_slurm_conf(after.slurm_conf)
    assert set(conf.nodes) == {"gpu01", "gpu02", "gpu03"}
    assert conf.nodes["gpu01"] | {"nodeaddr": ""} == (
        parse_slurm_conf(before.slurm_conf).nodes["gpu01"] | {"nodeaddr": ""}
    )
    assert after.problems == {}
    assert after.sound == ("gpu03",)


def test_a_new_node_that_breaks_its_contract_is_left_out() -> None:
    result = run(keys(), nodes(FOUND, replace(FOUND, gpu_devices=("/dev/nvidia0",))))
    assert "gpu02" not in result.slurm_conf
    assert "/dev/nvidia* has 1" in result.problems["gpu02"]
    assert result.drain == ()
    assert result.sound == ("gpu01",)


def test_a_known_node_that_breaks_its_contract_keeps_its_line_and_is_drained() -> None:
    before = run(keys(), nodes(FOUND, FOUND))
    nine = keys(node_groups={"gpu": {"gpus": {"count": 9}}})
    result = run(nine, nodes(FOUND, FOUND), before.slurm_conf)
    assert parse_slurm_conf(result.slurm_conf).nodes["gpu01"]["gres"] == "gpu:8"
    assert "File=/dev/nvidia[0-7]" in result.gres_conf
    assert result.drain == ("gpu01", "gpu02")
    assert result.sound == ()


def test_a_node_that_nobody_knows_is_left_out_and_named() -> None:
    result = run(keys(), nodes(FOUND, None))
    assert "neither declared" in result.problems["gpu02"]
    assert result.outside == ("gpu02",)
    assert "gpu02" not in result.slurm_conf


def test_a_node_of_no_group_is_left_out_and_named() -> None:
    stray = Candidate("cpu01", "10.0.0.30", "", FOUND)
    result = run(keys(), [*nodes(FOUND), stray])
    assert "no node group" in result.problems["cpu01"]
    assert "cpu01" not in result.slurm_conf


def test_a_removed_node_loses_its_line_and_is_named() -> None:
    before = run(keys(), nodes(FOUND, FOUND))
    after = run(keys(), nodes(FOUND), before.slurm_conf)
    assert "gpu02" not in after.slurm_conf
    assert after.removed == ("gpu02",)
    assert run(keys(), nodes(FOUND, FOUND), before.slurm_conf).removed == ()


def test_a_renamed_node_is_removed_under_its_old_name() -> None:
    before = run(keys(), nodes(FOUND))
    renamed = [replace(node, name="big01") for node in nodes(FOUND)]
    assert run(keys(), renamed, before.slurm_conf).removed == ("gpu01",)


def test_without_compute_nodes_there_is_still_a_configuration() -> None:
    before = run(keys(), nodes(FOUND))
    empty = run(keys(), [], before.slurm_conf)
    assert "NodeName" not in empty.slurm_conf
    assert empty.removed == ("gpu01",)


@pytest.mark.parametrize(
    "line",
    [
        "NodeName=gpu[01-02] CPUs=64 RealMemory=500000",
        "NodeName=DEFAULT CPUs=64 CoresPerSocket=32\nNodeName=gpu[01-02] RealMemory=500000",
    ],
)
def test_a_foreign_file_s_nodes_keep_their_lines(line: str) -> None:
    result = run(keys(), nodes(FOUND, None), line)
    kept = parse_slurm_conf(result.slurm_conf).nodes["gpu02"]
    assert (kept["cpus"], kept["realmemory"]) == ("64", "500000")
    assert result.problems == {}


def test_a_line_that_cannot_be_kept_stops_everything() -> None:
    line = "NodeName=gpu[01-03] CPUs=64"
    with pytest.raises(InvalidSiteError) as caught:
        run(keys(), nodes(FOUND, None, None), line)
    assert "gpu[02-03] would lose the line" in str(caught.value.problems[0])
    assert run(keys(), nodes(FOUND, FOUND, FOUND), line).problems == {}


def test_lines_in_other_files_stop_everything() -> None:
    with pytest.raises(InvalidSiteError) as caught:
        run(keys(), nodes(FOUND), "include nodes.conf\n")
    assert "includes nodes.conf" in str(caught.value.problems[0])


@pytest.mark.parametrize(
    ("version", "tracking"),
    [("slurm-wlm 21.08.5", "linuxproc"), ("slurm-wlm 22.05.8", "cgroup"), ("", "cgroup")],
)
def test_auto_takes_cgroups_only_from_a_release_that_has_version_2(
    version: str, tracking: str
) -> None:
    site = keys(slurm_process_tracking="auto")
    assert choose_tracking(site, nodes(FOUND), parse_slurm_conf(""), version) == tracking


def test_cgroups_of_a_release_without_version_2_are_refused() -> None:
    with pytest.raises(InvalidSiteError) as caught:
        configure(keys(), CONTROLLER, PATHS, nodes(FOUND), version="slurm-wlm 21.08.5")
    assert "21.08.5 has no cgroup v2" in str(caught.value.problems[0])


@pytest.mark.parametrize(
    ("found", "standing", "tracking"),
    [
        ([FOUND, FOUND], "", "cgroup"),
        ([FOUND, NO_CGROUP], "", "linuxproc"),
        ([None, None], "", "linuxproc"),
        ([FOUND, FOUND], "ProctrackType=proctrack/linuxproc", "cgroup"),
        ([FOUND, None], "ProctrackType=proctrack/linuxproc", "linuxproc"),
        ([NO_CGROUP, None], "ProctrackType=proctrack/cgroup", "cgroup"),
    ],
)
def test_auto_takes_what_every_node_can(
    found: list[Evidence | None], standing: str, tracking: str
) -> None:
    site = keys(slurm_process_tracking="auto")
    assert choose_tracking(site, nodes(*found), parse_slurm_conf(standing)) == tracking


def test_linuxproc_leaves_cgroups_alone() -> None:
    result = run(keys(slurm_process_tracking="linuxproc"), nodes(FOUND))
    assert "CgroupPlugin=disabled" in result.cgroup_conf
    assert "TaskPlugin=task/affinity\n" in result.slurm_conf


def test_a_site_s_parameters_add_replace_and_take_away() -> None:
    parameters = {
        "slurmctldparameters": "enable_configless,idle_on_node_suspend",
        "ReturnToService": 1,
        "DefMemPerCPU": None,
        "RebootProgram": "/sbin/shutdown -r now",
    }
    conf = parse_slurm_conf(run(keys(slurm_parameters=parameters), nodes(FOUND)).slurm_conf).keys
    assert conf["slurmctldparameters"] == "enable_configless,idle_on_node_suspend"
    assert conf["returntoservice"] == "1"
    assert "defmempercpu" not in conf
    assert conf["rebootprogram"] == "/sbin/shutdown -r now"


def test_jobs_may_lock_what_slurmd_may_unless_the_site_says_how_limits_go() -> None:
    assert "PropagateResourceLimitsExcept=MEMLOCK\n" in run(keys(), nodes(FOUND)).slurm_conf
    site = keys(slurm_parameters={"PropagateResourceLimits": "NONE"})
    conf = run(site, nodes(FOUND)).slurm_conf
    assert "PropagateResourceLimits=NONE\n" in conf
    assert "Except" not in conf


def test_config_overrides_only_with_a_virtual_group() -> None:
    assert "config_overrides" not in run(keys(), nodes(FOUND)).slurm_conf
    virtual = keys(node_groups={"gpu": {"gpus": {"count": 8}, "virtual": True}})
    assert "SlurmdParameters=config_overrides\n" in run(virtual, nodes(FOUND)).slurm_conf


def test_without_slurmdbd_there_is_no_accounting() -> None:
    result = configure(keys(), Controller("head", "head"), PATHS, nodes(FOUND))
    assert "AccountingStorage" not in result.slurm_conf
    assert "SlurmctldHost=head\n" in result.slurm_conf


def test_a_partition_without_nodes_is_still_there() -> None:
    result = run(keys(), nodes(None))
    assert "PartitionName=gpu Default=YES" in result.slurm_conf
    assert result.gres_conf.count("NodeName") == 0


def test_an_old_release_gets_no_plugin_that_it_lacks() -> None:
    site = keys(slurm_process_tracking="linuxproc")
    result = configure(site, CONTROLLER, PATHS, nodes(FOUND), version="slurm-wlm 22.05.8")
    assert "CgroupPlugin" not in result.cgroup_conf


def cgroup_conf(version: str = "", **parameters: object) -> list[str]:
    site = keys(slurm_process_tracking="cgroup", slurm_cgroup_parameters=parameters)
    text = configure(site, CONTROLLER, PATHS, nodes(FOUND), version=version).cgroup_conf
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_jobs_are_constrained_and_the_site_may_say_otherwise() -> None:
    assert cgroup_conf() == [
        "ConstrainCores=yes",
        "ConstrainDevices=yes",
        "ConstrainRAMSpace=yes",
        "ConstrainSwapSpace=yes",
        "SystemdTimeout=20000",
    ]
    changed = cgroup_conf(constraindevices=False, AllowedSwapSpace=10, ConstrainCores=None)
    assert changed[0] == "ConstrainDevices=NO"
    assert changed[-1] == "AllowedSwapSpace=10"
    assert not [line for line in changed if line.startswith("ConstrainCores")]


def test_memory_that_is_not_constrained_is_not_so_by_its_swap() -> None:
    """ConstrainSwapSpace alone limits the memory too: cgroup.conf(5)."""
    lines = cgroup_conf(ConstrainRAMSpace=False)
    assert not [line for line in lines if line.startswith("ConstrainSwapSpace")]
    lines = cgroup_conf(ConstrainRAMSpace=False, ConstrainSwapSpace=True)
    assert "ConstrainSwapSpace=YES" in lines


def test_a_release_without_the_wait_for_the_scope_gets_no_key_for_it() -> None:
    assert "SystemdTimeout=20000" not in cgroup_conf("slurm-wlm 22.05.8")
