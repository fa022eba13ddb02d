"""What results of a check mean, one by one."""

from typing import Any

import pytest

from hpcsite.deploy.plan import packages
from hpcsite.deploy.plan.collect import Collector
from hpcsite.deploy.plan.masking import Masker
from hpcsite.deploy.plan.model import AccountChange, DaemonChange, FileChange, Item, Unknown
from hpcsite.deploy.plan.results import Reader, Result, Skip


def result(
    module: str,
    *,
    host: str = "gpu01",
    role: str = "slurmd",
    changed: bool = True,
    **rest: Any,  # noqa: ANN401 - any field
) -> Result:
    return Result(
        host=host, layer="scheduler", role=role, task="T", module=module, changed=changed, **rest
    )


def written(path: str, before: str, after: str, host: str = "gpu01") -> Result:
    diff = [{"before": before, "after": after, "before_header": path}]
    return result("copy", values={"diff": diff}, about={"dest": path}, host=host)


def daemon(action: str, *, files: tuple[str, ...] = (), younger: tuple[str, ...] = ()) -> Result:
    return result(
        "daemon",
        changed=action != "none",
        values={"action": action, "younger": list(younger)},
        about={"name": "slurmd", "files": list(files)},
    )


def collected(*results: Result | Skip) -> list[Item]:
    collector = Collector(Masker())
    for one in results:
        collector.add(one)
    return [item for _, item in collector.findings.changes]


def daemons(*results: Result | Skip) -> list[tuple[str, tuple[str, ...]]]:
    items = [item for item in collected(*results) if isinstance(item, DaemonChange)]
    return [(item.action, item.because) for item in items]


def test_a_daemon_restarts_for_a_file_that_only_the_deploy_will_write() -> None:
    file = "/etc/default/slurmd"
    assert daemons(written(file, "a", "b"), daemon("none", files=(file, "/etc/other"))) == [
        ("restart", (file,))
    ]


def test_a_daemon_does_not_restart_for_files_that_it_does_not_read() -> None:
    other = written("/etc/hosts", "a", "b")
    elsewhere = written("/etc/default/slurmd", "a", "b", host="gpu02")
    assert daemons(other, elsewhere, daemon("none", files=("/etc/default/slurmd",))) == []


def test_a_restart_that_an_earlier_deploy_left_undone_names_the_file() -> None:
    assert daemons(daemon("restart", files=("/etc/a",), younger=("/etc/a",))) == [
        ("restart", ("/etc/a",))
    ]


def test_a_restart_without_a_file_of_its_own_names_the_files_of_its_role() -> None:
    assert daemons(written("/etc/slurm/slurm.conf", "a", "b"), daemon("restart")) == [
        ("restart", ("/etc/slurm/slurm.conf",))
    ]


@pytest.mark.parametrize(
    ("action", "changed", "expected"),
    [
        ("start", True, [("start", ("it does not run",))]),
        ("none", True, [("enable", ())]),
        ("none", False, []),
    ],
)
def test_other_actions_of_daemons(
    action: str, changed: bool, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    one = result(
        "daemon", changed=changed, values={"action": action}, about={"name": "slurmd", "files": []}
    )
    assert daemons(one) == expected


def test_own_records_are_no_files_of_the_site() -> None:
    assert collected(written("/var/lib/hpcsite/slurmctld-applied.json", "{}", "{1}")) == []


@pytest.mark.parametrize(
    ("path", "reboot"),
    [
        ("/etc/modprobe.d/nvidia.conf", True),
        ("/etc/default/grub.d/a.cfg", True),
        ("/etc/hosts", False),
    ],
)
def test_files_that_only_a_reboot_applies(path: str, reboot: bool) -> None:
    collector = Collector(Masker())
    collector.add(written(path, "a", "b"))
    assert collector.findings.reboots == ({"gpu01": [f"{path} changes"]} if reboot else {})


@pytest.mark.parametrize(
    ("before", "after", "dangers"),
    [
        ("SlurmdSpoolDir=/a\n", "SlurmdSpoolDir=/b\n", 1),
        ("StateSaveLocation=/a\n", "StateSaveLocation=/b\nSlurmdSpoolDir=/c\n", 2),
        ("PartitionName=a Nodes=n1\n", "PartitionName=b Nodes=n1\n", 0),
        ("", "SlurmdSpoolDir=/b\n", 0),
    ],
)
def test_changes_of_slurm_conf_that_end_jobs(before: str, after: str, dangers: int) -> None:
    collector = Collector(Masker())
    collector.add(written("/etc/slurm/slurm.conf", before, after, host="head"))
    assert len(collector.findings.job_dangers) == dangers


def test_accounts_of_slurm_are_read_from_any_diff() -> None:
    diff = [
        {
            "before": {"physics": {"fairshare": 10}},
            "after": {"physics": {"fairshare": 20}, "bio": {"parent": "root"}},
        },
        {"prepared": "Removing account chem"},
    ]
    (item,) = collected(result("slurm_accounts", values={"diff": diff}))
    assert isinstance(item, AccountChange)
    assert item.system == "slurm"
    assert "-  fairshare: 10" in item.diff
    assert "+  fairshare: 20" in item.diff
    assert "+bio:" in item.diff
    assert item.diff.endswith("Removing account chem")


def test_users_whose_keys_change_are_named() -> None:
    results = [{"item": "alice", "changed": True}, {"item": "bob", "changed": False}]
    (item,) = collected(result("ssh_keys", values={"results": results}))
    assert item.label == "T: alice"


def test_a_diff_that_ansible_does_not_make_is_said() -> None:
    entry = {"dst_larger": 104448, "src_larger": 104448}
    (item,) = collected(result("copy", values={"diff": [entry]}, about={"dest": "/etc/hosts"}))
    assert isinstance(item, FileChange)
    assert (item.change, item.diff, item.note) == ("content", "", "too large to show")


def test_hardware_that_cannot_be_measured_yet_is_unknown() -> None:
    skip = Skip("gpu01", "scheduler", "slurm_evidence", "T", "slurmd_evidence", "", "no slurmd")
    (item,) = collected(skip)
    assert isinstance(item, Unknown)
    assert item.until == "slurmd is installed"


def test_of_a_loop_the_items_count_and_not_their_summary() -> None:
    reader = Reader()
    data = {"host": "a", "task_uuid": "1", "task": "T", "resolved_action": "ansible.builtin.copy"}
    item = {**data, "res": {"item": "x"}, "hpcsite": {"changed": True, "dest": "/x"}}
    summary = {
        **data,
        "res": {"results": [{}]},
        "hpcsite": {"changed": True, "dest": "/{{ item }}"},
    }
    first = reader.read({"event": "runner_item_on_ok", "event_data": item})
    assert isinstance(first, Result)
    assert (first.path, first.item, first.module, first.changed) == ("/x", "x", "copy", True)
    assert reader.read({"event": "runner_on_ok", "event_data": summary}) is None
    other = {**summary, "host": "b"}
    assert reader.read({"event": "runner_on_ok", "event_data": other}) is not None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"missing": ["munge", "slurmd"]}, {"install": ("munge", "slurmd")}),
        (
            {"stdout": "Inst libc6 [2.36-9] (2.36-10 Debian)\nInst new (1.0)\nRemv old [1.0]\n"},
            {"upgrade": ("libc6",), "install": ("new",), "remove": ("old",)},
        ),
        (
            {"results": ["Installed: a-1.el9", "Removed: b-1.el9"]},
            {"install": ("a-1.el9",), "remove": ("b-1.el9",)},
        ),
        ({"changed": True}, {}),
    ],
)
def test_packages_by_action(values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert packages.read(values) == expected
