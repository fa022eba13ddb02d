"""What is made of nodes' own disks."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hpcsite.site.model import Site
from hpcsite.site.model.storage import Scratch
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Tally
from hpcsite.verify.results import Certainty
from hpcsite.verify.session import Crew, Said, Session
from hpcsite.verify.suites import storage_scratch
from hpcsite.verify.suites.storage import CHECKS
from hpcsite.verify.suites.storage_disks import Disk, Place, judge_place
from hpcsite.verify.suites.storage_peers import FLOOR, LAB_FLOOR, slow_nodes
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, make_site

SCRATCH = next(check for check in CHECKS if check.name == "scratch")
LOCAL = Scratch(groups=("gpu",), path="/local", devices=("/dev/nvme1n1",))
PLACE = Place("/local", ("gpu01", "gpu02"), LOCAL)
XFS = {"flags": "rw,noatime", "type": "xfs", "source": "/dev/nvme1n1", "options": "rw,attr2"}
PAIR = ("gpu01", "gpu02")


def answer(**changes: Any) -> Said:  # noqa: ANN401 - anything that a node may say
    said = {
        "mount": XFS,
        "below": XFS,
        "stat_ms": 0.1,
        "blocks": [4096, 10_000_000, 9_000_000, 1000],
        "tried": {"/local/alice": [2, "No such file or directory"]},
        "writable": "/local",
    }
    return {**said, **changes}


def judged(place: Place = PLACE, **said: Said) -> tuple[dict[str, Disk], Tally, list[str]]:
    tally, without = Tally(), list[str]()
    return judge_place(place, list(said), said, "alice", tally, without), tally, without


def test_scratch_as_it_is_declared() -> None:
    disks, tally, without = judged(gpu01=answer())
    assert disks == {"gpu01": Disk("/local", "xfs", 40_960_000_000, 36_864_000_000)}
    assert (tally, without) == (Tally(), [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mount": None}, "is not mounted"),
        ({"mount": {**XFS, "type": "ext4"}}, "is ext4, not xfs"),
        ({"mount": {**XFS, "options": "ro,attr2"}}, "is mounted read-only"),
    ],
)
def test_scratch_that_is_not_as_declared_names_the_node(changes: Said, said: str) -> None:
    _, tally, _ = judged(gpu01=answer(), gpu02=answer(**changes))
    assert tally.wrong == [f"gpu02: /local {said}"]


def test_scratch_that_lacks_a_disk_is_smaller_than_its_peers() -> None:
    half = [4096, 5_000_000, 4_000_000, 1000]
    _, tally, _ = judged(gpu01=answer(), gpu02=answer(), gpu03=answer(blocks=half), gpu04=answer())
    assert tally.wrong == ["gpu03: /local has 19 GiB, less than its peers"]


def test_what_cannot_be_asked_or_written_is_unknown() -> None:
    tried = {"/local": [13, "Permission denied"]}
    disks, tally, _ = judged(
        gpu01={"silent": True}, gpu02=answer(writable=None, tried=tried), gpu03={"slow": 15}
    )
    assert disks == {}
    assert tally.unknown == [
        "gpu01: no answer about /local",
        "gpu02: no folder on /local that alice may write: /local (Permission denied)",
    ]
    assert tally.wrong == ["gpu03: /local does not answer: no answer within 15 s"]


def test_a_node_without_a_disk_is_set_aside_where_nothing_is_declared() -> None:
    memory = {**XFS, "type": "tmpfs"}
    disks, tally, without = judged(Place("/var/tmp", ("gpu01",)), gpu01=answer(below=memory))
    assert (disks, tally) == ({}, Tally())
    assert without == ["gpu01: /var/tmp is tmpfs"]


def test_a_slow_disk_is_named_from_three_nodes_on() -> None:
    even = {"gpu01": 1000.0, "gpu02": 980.0, "gpu03": 1010.0}
    assert slow_nodes({"random_read": even}, "/local", floor=FLOOR, sure=True) == ()
    slow = {**even, "gpu02": 300.0}
    (one,) = slow_nodes({"random_read": slow}, "/local", floor=FLOOR, sure=True)
    assert (one.name, one.certainty) == ("gpu02", Certainty.LIKELY)
    assert one.because == "/local: random_read 300 IOPS, its peers 1,005"
    both = {"random_read": slow, "sequential_read": slow}
    (one,) = slow_nodes(both, "/local", floor=FLOOR, sure=True)
    assert one.certainty is Certainty.CERTAIN
    assert (
        slow_nodes({"random_read": {**even, "gpu02": 700.0}}, "/l", floor=LAB_FLOOR, sure=True)
        == ()
    )


def test_of_two_nodes_one_must_be_far_behind() -> None:
    def named(least: float, floor: float) -> list[str]:
        values = {"sequential_read": {"gpu01": 1000.0, "gpu02": least}}
        found = slow_nodes(values, "/local", floor=floor, sure=True)
        assert all(one.certainty is Certainty.LIKELY for one in found)
        return [one.name for one in found]

    assert named(400, FLOOR) == []
    assert named(300, FLOOR) == ["gpu02"]
    assert named(300, LAB_FLOOR) == []
    assert named(150, LAB_FLOOR) == ["gpu02"]


Answers = Callable[[Said, str], Said]


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answers], None]:
    """Have hosts answer by a function of step and host."""

    def use(answers: Answers) -> None:
        def lead(_context: Context, crew: Crew, steps: Sequence[Said], **_: object) -> Session:
            session = Session({"hello": {host: {} for host in crew.hosts}})
            for one in steps:
                of = session.answers.setdefault(one["id"], {})
                of.update({host: answers(one, host) for host in one["ring"]})
            return session

        monkeypatch.setattr(storage_scratch, "lead", lead)

    return use


def fio(megabytes: float) -> Said:
    side = {"bw_bytes": megabytes * 1e6, "iops": megabytes * 100, "total_ios": 9, "runtime": 9}
    names = ("sequential_write", "sequential_read", "random_write", "random_read")
    jobs = [{"jobname": name, "error": 0, "read": side} for name in names]
    return {"rc": 0, "stdout": json.dumps({"jobs": jobs}), "stderr": ""}


def with_scratch() -> Site:
    site = make_site()
    return site.model_copy(update={"keys": site.keys.model_copy(update={"scratch": (LOCAL,)})})


def healthy(one: Said, host: str) -> Said:
    return {"mounts": answer(), "make": {}, "run": fio(100 if host == "gpu02" else 1000)}[one["op"]]


def test_disks_are_measured_and_the_slow_one_is_named(
    run_check: Runner, led: Callable[[Answers], None]
) -> None:
    led(healthy)
    result = run_check(SCRATCH, FakeSlurm(), with_scratch())
    assert result.status == "FAIL"
    assert result.reason.startswith(
        "gpu02 is slower than its peers on /local: sequential_write 100 MB/s, its peers 1,000"
    )
    assert [one.name for one in result.culprits] == ["gpu02"]
    assert "smartctl" in result.remedy
    assert {(m.at["path"], m.at["nodes"]) for m in result.measurements} == {
        ("/local", node) for node in PAIR
    }


def test_a_site_that_declares_no_scratch_has_var_tmp_measured(
    run_check: Runner, led: Callable[[Answers], None]
) -> None:
    asked = set[str]()

    def answers(one: Said, host: str) -> Said:
        asked.add(one["path"])
        return {"mounts": answer(writable="/var/tmp"), "make": {}, "run": fio(900)}[one["op"]]

    led(answers)
    result = run_check(SCRATCH, FakeSlurm())
    assert (result.status, asked) == ("PASS", {"/var/tmp"})
    assert len(result.measurements) == 8


def test_nodes_without_disks_are_a_skip_that_says_so(
    run_check: Runner, led: Callable[[Answers], None]
) -> None:
    led(lambda _one, _host: answer(below={**XFS, "type": "nfs4"}))
    result = run_check(SCRATCH, FakeSlurm())
    assert result.status == "SKIP"
    assert result.reason == "no node has a disk of its own: gpu01: /var/tmp is nfs4"


def test_fio_that_is_missing_is_an_error(run_check: Runner, led: Callable[[Answers], None]) -> None:
    def answers(one: Said, host: str) -> Said:
        return {"mounts": answer(), "make": {}, "run": {"missing": "sh"}}[one["op"]]

    led(answers)
    result = run_check(SCRATCH, FakeSlurm())
    assert result.status == "ERROR"
    assert "fio is not installed" in result.reason
    assert result.measurements == ()
