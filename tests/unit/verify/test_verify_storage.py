"""What checks of shared folders make of what hosts answered."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpcsite.site.model import NfsExport, Site
from hpcsite.verify.cluster import Target
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.findings import Tally
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.fio import FioRun
from hpcsite.verify.session import Crew, Session, step_id
from hpcsite.verify.suites.storage import CHECKS
from hpcsite.verify.suites.storage_coherence import ahead, judge_coherence, judge_locks
from hpcsite.verify.suites.storage_files import judge_files
from hpcsite.verify.suites.storage_fio import Load, read_run
from hpcsite.verify.suites.storage_load import bandwidths
from hpcsite.verify.suites.storage_mounts import Folder, Mounts, judge, mount_faults
from hpcsite.verify.suites.storage_patterns import fio_options
from hpcsite.verify.suites.storage_squash import find_root_squash, judge_squash, read_squash
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, context_for, fixture, make_site

MOUNTS, COHERENCE, LOCKS, SQUASH, FILES, THROUGHPUT, METADATA, _SCRATCH = CHECKS
SHARED = CHECKS[:-1]
EROFS = 30
NFS = {
    "flags": "rw,relatime",
    "type": "nfs4",
    "source": "head:/shared",
    "options": "rw,vers=4.2,rsize=262144,hard,proto=tcp,nconnect=2,local_lock=none",
}


def site_with(**export: Any) -> Site:  # noqa: ANN401 - keys of a model
    site = make_site()
    groups = {"head": "nfs_server", "login": "nfs_client"}
    hosts = {
        name: host.model_copy(update={"groups": host.groups | {groups.get(name, "nfs_client")}})
        for name, host in site.hosts.items()
    }
    given = NfsExport(**{"path": "/shared", **export})
    keys = site.keys.model_copy(update={"nfs_exports": (given,)})
    return site.model_copy(update={"hosts": hosts, "keys": keys})


def answered(**changes: object) -> dict[str, Any]:
    said: dict[str, Any] = {
        "mount": NFS,
        "stat_ms": 1.5,
        "blocks": [4096, 1000, 500, 100],
        "tried": {"/shared/alice": [2, "No such file or directory"]},
        "writable": "/shared",
    }
    return {**said, **changes}


def judged(site: Site, **said: dict[str, Any]) -> tuple[Mounts, Folder]:
    found = Mounts(Crew((), "login"))
    (export,) = site.keys.nfs_exports
    return found, judge(site, "alice", export, said, found)


@pytest.mark.parametrize("check", SHARED, ids=lambda check: check.name)
def test_a_site_without_exports_is_a_skip(run_check: Runner, check: object) -> None:
    result = run_check(check, FakeSlurm())
    assert (result.status, result.reason) == ("SKIP", "the site declares no site_nfs_exports")


def test_a_site_whose_nodes_mount_nothing_is_a_skip(run_check: Runner) -> None:
    site = make_site()
    keys = site.keys.model_copy(update={"nfs_exports": (NfsExport(path="/shared"),)})
    result = run_check(MOUNTS, FakeSlurm(), site.model_copy(update={"keys": keys}))
    assert (result.status, result.reason) == (
        "SKIP",
        "no compute node of the site is in nfs_client",
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"type": "ext4", "source": "/dev/vda"}, "is mounted as ext4 from /dev/vda, not by NFS"),
        (
            {"source": "other:/shared"},
            "is mounted from other:/shared, not from head:/shared",
        ),
        ({"source": "head:/old"}, "is mounted from head:/old, not from head:/shared"),
        ({"options": "rw,vers=3,hard"}, "is mounted as NFS 3, not 4.2"),
        ({"flags": "ro,relatime"}, "is mounted read-only"),
        ({"options": "ro,vers=4.2"}, "is mounted read-only"),
    ],
)
def test_a_mount_that_is_not_as_declared(changes: dict[str, str], said: str) -> None:
    site = site_with()
    assert mount_faults(site, site.keys.nfs_exports[0], "gpu01", {**NFS, **changes}) == [said]
    assert mount_faults(site, site.keys.nfs_exports[0], "gpu01", NFS) == []


def test_an_export_may_name_another_version() -> None:
    site = site_with(options=("vers=4.1",))
    mount = {**NFS, "options": "rw,vers=4.1"}
    assert mount_faults(site, site.keys.nfs_exports[0], "gpu01", mount) == []


def test_rdma_is_held_to_where_both_sides_have_it() -> None:
    site = site_with(rdma=True)
    (export,) = site.keys.nfs_exports
    assert mount_faults(site, export, "gpu01", NFS) == []
    hosts = {
        name: host.model_copy(update={"groups": host.groups | {"rdma"}})
        for name, host in site.hosts.items()
    }
    with_rdma = site.model_copy(update={"hosts": hosts})
    assert mount_faults(with_rdma, export, "gpu01", NFS) == ["is mounted over tcp, not rdma"]
    mount = {**NFS, "options": NFS["options"].replace("proto=tcp", "proto=rdma")}
    assert mount_faults(with_rdma, export, "gpu01", mount) == []


def test_a_healthy_folder_is_used_by_all() -> None:
    found = Mounts(Crew((), "login"))
    site = site_with()
    (export,) = site.keys.nfs_exports
    folder = judge(site, "alice", export, {"login": answered()}, found)
    assert (folder.hosts, folder.base) == (("login",), "/shared")
    assert found.tally == Tally()
    assert [(one.name, one.value, one.unit) for one in found.measured] == [
        ("statfs_max", 1.5, "ms")
    ]


def test_a_missing_mount_fails_and_names_the_node() -> None:
    found, folder = judged(site_with(), gpu02=answered(mount=None))
    assert found.tally.wrong == ["gpu02: /shared is not mounted"]
    assert folder.hosts == ()


def test_a_folder_that_hangs_fails_and_names_the_node() -> None:
    found, _ = judged(site_with(), gpu02={"slow": 15})
    assert found.tally.wrong == ["gpu02: /shared does not answer: no answer within 15 s"]


def test_an_export_that_was_made_read_only_fails() -> None:
    tried = {"/shared/alice": [2, "No such file"], "/shared": [EROFS, "Read-only file system"]}
    found, folder = judged(site_with(), gpu02=answered(tried=tried, writable=None))
    assert found.tally.wrong == ["gpu02: /shared cannot be written: Read-only file system"]
    assert folder.hosts == ()


def test_a_folder_without_a_place_for_the_user_is_unknown() -> None:
    tried = {"/shared": [13, "Permission denied"]}
    found, _ = judged(site_with(), gpu02=answered(tried=tried, writable=None))
    assert found.tally.wrong == []
    assert "no folder on /shared that alice may write" in found.tally.unknown[0]
    assert "make /shared/alice for it" in found.tally.unknown[0]


def test_a_read_only_folder_must_refuse() -> None:
    found, _ = judged(site_with(read_only=True), gpu02=answered())
    assert found.tally.wrong == ["gpu02: /shared can be written in /shared"]
    tried = {"/shared": [EROFS, "Read-only file system"]}
    found, _ = judged(site_with(read_only=True), gpu02=answered(tried=tried, writable=None))
    assert found.tally == Tally()


@pytest.mark.parametrize(
    "check", [COHERENCE, LOCKS, FILES, THROUGHPUT, METADATA], ids=lambda check: check.name
)
def test_a_site_with_read_only_folders_alone_is_a_skip(run_check: Runner, check: object) -> None:
    result = run_check(check, FakeSlurm(), site_with(read_only=True))
    assert (result.status, result.reason) == ("SKIP", "every shared folder is read-only")


def folder(*hosts: str) -> Folder:
    return Folder(NfsExport(path="/shared"), "head", hosts, hosts, "/shared", (4096, 1, 1, 1))


def session(**said: dict[str, dict[str, Any]]) -> Session:
    return Session({step_id("/shared", key.replace("_", " ")): of for key, of in said.items()})


PAIR = ("gpu01", "gpu02")
DONE: dict[str, dict[str, Any]] = {host: {} for host in PAIR}
SEEN: dict[str, dict[str, Any]] = {
    "gpu01": {"author": "gpu02", "tries": 1, "ms": 2.0},
    "gpu02": {"author": "gpu01", "tries": 1, "ms": 3.0},
}


def coherent(**changes: dict[str, dict[str, Any]]) -> Session:
    looks = dict.fromkeys(
        (
            "write_get_prev",
            "overwrite_get_prev",
            "append_get_prev",
            "rename_get_prev",
            "delete_gone_prev",
        ),
        SEEN,
    )
    writes = dict.fromkeys(("make", "write", "overwrite", "append", "rename", "delete"), DONE)
    return session(**{**writes, **looks, **changes})


def test_what_is_seen_at_once_passes_with_its_time() -> None:
    tally = Tally()
    measured = judge_coherence(folder(*PAIR), coherent(), tally)
    assert tally == Tally()
    assert {(one.value, one.at["nodes"]) for one in measured} == {(3.0, "gpu01,gpu02")}


def test_stale_content_fails_and_names_reader_and_writer() -> None:
    tally = Tally()
    late = {**SEEN, "gpu02": {**SEEN["gpu02"], "ms": 1234, "first": "its content differs"}}
    judge_coherence(folder(*PAIR), coherent(overwrite_get_prev=late), tally)
    assert tally.wrong == [
        (
            "gpu02: what gpu01 wrote over on /shared is not seen at once, but after 1234 ms: "
            "its content differs"
        )
    ]
    tally = Tally()
    never = {**late, "gpu02": {**late["gpu02"], "never": "No such file or directory"}}
    judge_coherence(folder(*PAIR), coherent(write_get_prev=never), tally)
    assert tally.wrong == [
        "gpu02: what gpu01 wrote on /shared is not seen within 5 s: No such file or directory"
    ]


def test_who_cannot_write_is_blamed_and_not_who_reads() -> None:
    tally = Tally()
    failed = {**DONE, "gpu01": {"error": "Read-only file system"}}
    judge_coherence(folder(*PAIR), coherent(write=failed), tally)
    assert tally.wrong == ["gpu01: cannot write on /shared: Read-only file system"]
    assert tally.unknown == []


def test_a_host_that_says_nothing_is_unknown() -> None:
    tally = Tally()
    judge_coherence(folder(*PAIR), coherent(append_get_prev={"gpu01": SEEN["gpu01"]}), tally)
    assert tally.wrong == []
    assert tally.unknown == ["gpu02: no answer to a look on /shared after append"]


def test_a_ring_has_two_neighbours() -> None:
    ring = ("a", "b", "c")
    assert [ahead(ring, host, "next") for host in ring] == ["b", "c", "a"]
    assert [ahead(ring, host, "prev") for host in ring] == ["c", "a", "b"]


def locked(**changes: dict[str, dict[str, Any]]) -> Session:
    kept = {host: {**said, "never": "locked"} for host, said in SEEN.items()}
    said: dict[str, dict[str, dict[str, Any]]] = {"make": DONE}
    for kind in ("fcntl", "flock"):
        for end in ("release", "kill"):
            said |= {
                f"{kind}_hold_{end}": DONE,
                f"{kind}_held_{end}_prev": kept,
                f"{kind}_{end}": DONE,
                f"{kind}_free_{end}": SEEN,
            }
    return session(**{**said, **changes})


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, []),
        (
            {"flock_held_release_prev": SEEN},
            [
                "gpu01: got the flock lock on /shared that gpu02 holds",
                "gpu02: got the flock lock on /shared that gpu01 holds",
            ],
        ),
        (
            {"fcntl_free_kill": {**SEEN, "gpu02": {**SEEN["gpu02"], "never": "locked"}}},
            [
                (
                    "gpu02: the fcntl lock on /shared is not free 5 s after its holder on gpu01 "
                    "was killed"
                )
            ],
        ),
    ],
)
def test_locks(changes: dict[str, dict[str, dict[str, Any]]], wrong: list[str]) -> None:
    tally = Tally()
    judge_locks(folder(*PAIR), locked(**changes), tally)
    assert sorted(tally.wrong) == wrong
    assert tally.unknown == []


def test_the_servers_own_flock_is_not_held_against_it() -> None:
    tally = Tally()
    both = ("gpu01", "head")
    done: dict[str, dict[str, Any]] = {host: {} for host in both}
    kept: dict[str, dict[str, Any]] = {host: {"never": "locked"} for host in both}
    said = {"make": done}
    for end in ("release", "kill"):
        said |= {f"fcntl_hold_{end}": done, f"fcntl_held_{end}_prev": kept}
        said |= {f"fcntl_{end}": done, f"fcntl_free_{end}": done}
    judge_locks(folder(*both), session(**said), tally)
    assert tally == Tally()


def test_files_that_are_missing_or_different() -> None:
    made = {"gpu01": {"count": 1000, "ms": 5000.0, "sum": "a"}}
    there = {"count": 1000, "ms": 4000.0, "sum": "a"}

    def wrong(found: dict[str, Any]) -> Tally:
        tally = Tally()
        said = session(make={"gpu01": {}}, fill=made, survey={"gpu02": found})
        measured = judge_files(folder(*PAIR), said, tally)
        assert (measured[0].name, measured[0].value) == ("files_made", 200.0)
        return tally

    assert wrong(there) == Tally()
    assert wrong({**there, "count": 998}).wrong == [
        "gpu02: /shared: sees 998 of 1000 files that gpu01 made"
    ]
    assert wrong({**there, "sum": "b"}).wrong == [
        "gpu02: /shared: files that gpu01 made have another content"
    ]
    assert wrong({"count": 10, "ms": 30000, "unfinished": True}).unknown == [
        "gpu02: /shared: read 10 files in 30 s, not all"
    ]


SQUASHED = (
    "root\n"
    "@ /home 2 file: 3: cannot create /home/.hpcsite-run-root-gpu01: Permission denied \n"
    "@ /shared 0 owner=65534 \n"
)


@pytest.mark.parametrize(
    ("text", "wrong", "unknown"),
    [
        (SQUASHED, 0, 0),
        (SQUASHED.replace("65534", "0"), 1, 0),
        (SQUASHED.replace("Permission denied", "Read-only file system"), 0, 1),
        (SQUASHED.replace("@ /shared 0 owner=65534", "@ /shared 137"), 0, 1),
    ],
)
def test_root_is_squashed(text: str, wrong: int, unknown: int) -> None:
    tally = Tally()
    judge_squash("gpu01", ["/home", "/shared"], read_squash(text), tally)
    assert (len(tally.wrong), len(tally.unknown)) == (wrong, unknown)


def test_root_that_nobody_was_asked_of_is_no_pass(tmp_path: Path) -> None:
    context = context_for(tmp_path, FakeSlurm(), site_with())
    known = Mounts(crew(), (folder("head"),))
    context.core.values["storage-mounts"] = (known, Evidence(tmp_path, "mounts"))
    found = find_root_squash(context)
    assert found.status == "SKIP"
    assert "no compute node mounts such a folder" in found.reason


def test_options_of_fio_are_in_order() -> None:
    argv = fio_options(Load(16, 2, 50, 400))
    assert argv.index("--direct=1") < argv.index("--name=sequential_write")
    assert argv.count("--stonewall") == 4


def test_a_run_of_fio_is_read() -> None:
    job = {"jobname": "x", "read": {"bw_bytes": 1, "total_ios": 1, "iops": 1}}
    text = json.dumps({"fio version": "fio-3.39", "jobs": [job]})
    assert read_run({"rc": 0, "stdout": text, "stderr": ""}).version == "fio-3.39"


def test_a_run_of_fio_that_failed_in_silence_is_none() -> None:
    job = {"jobname": "x", "read": {"bw_bytes": 1, "total_ios": 1, "iops": 1}}
    with pytest.raises(UnreadableError, match="fio ended with 1"):
        read_run({"rc": 1, "stdout": json.dumps({"jobs": [job]}), "stderr": ""})


def test_a_run_that_lacks_a_job_is_not_measured() -> None:
    tally = Tally()
    runs = {"gpu01": FioRun("fio-3.39", {})}
    assert bandwidths(folder("gpu01"), ["gpu01"], runs, Load(16, 2, 50, 400), tally) == []
    assert tally.unknown[0] == "gpu01: /shared: fio tells nothing of sequential_write"


RING = ("gpu01", "gpu02", "head")


def recorded(name: str) -> Session:
    """What two virtual machines and their server answered (Debian 13, NFS 4.2, ext4)."""
    session = Session()
    for line in fixture(name).splitlines():
        said = json.loads(line)
        if "host" in said:
            session.answers.setdefault(said["id"], {}).setdefault(said["host"], said)
    return session


def crew() -> Crew:
    return Crew(tuple(Target(node, "gpu", "gpu", 0, 2) for node in PAIR), "head")


def test_a_real_export_that_was_made_read_only() -> None:
    site = site_with()
    (export,) = site.keys.nfs_exports
    found = Mounts(crew())
    said = recorded("storage-mounts-read-only.jsonl").of("mounts /shared")
    folder = judge(site, "alice", export, said, found)
    assert sorted(found.tally.wrong) == [
        f"{node}: /shared cannot be written: Read-only file system" for node in PAIR
    ]
    assert folder.hosts == ("head",)


def test_a_real_mount_is_as_declared() -> None:
    site = site_with()
    (export,) = site.keys.nfs_exports
    found = Mounts(crew())
    said = recorded("storage-mounts.jsonl").of("mounts /shared")
    folder = judge(site, "alice", export, said, found)
    assert found.tally == Tally()
    # The server counts in blocks of 4096, its clients in larger ones.
    assert folder.blocks[0] == 262144


def test_real_locks_keep_out_and_are_released() -> None:
    tally = Tally()
    judge_locks(folder(*RING), recorded("storage-locks.jsonl"), tally)
    assert tally == Tally()


def test_a_real_client_sees_what_others_did() -> None:
    tally = Tally()
    measured = judge_coherence(folder(*RING), recorded("storage-coherence.jsonl"), tally)
    assert tally == Tally()
    assert len(measured) == 5


def test_bandwidth_of_a_real_run() -> None:
    run = read_run({"rc": 0, "stdout": fixture("fio-3.39.json"), "stderr": ""})
    tally = Tally()
    measured = bandwidths(folder(*RING), ["gpu01"], {"gpu01": run}, Load(16, 2, 50, 400), tally)
    assert tally == Tally()
    assert [(one.name, one.unit) for one in measured] == [
        ("sequential_write", "MB/s"),
        ("sequential_read", "MB/s"),
        ("random_write", "IOPS"),
        ("random_read", "IOPS"),
    ]
    job = run.jobs["sequential_write"]
    assert measured[0].value == round(job.bytes_per_s / 1e6, 3)
    assert all(one.value > 0 for one in measured)
