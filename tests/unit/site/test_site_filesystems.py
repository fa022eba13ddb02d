"""Rules of BeeGFS, Lustre, scratch and homes: each bad case where it stands, and good ones."""

import time

import pytest

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.draft import Draft
from hpcsite.site.explain import check_keys
from hpcsite.site.load import read_sources
from hpcsite.site.model import SiteKeys
from hpcsite.site.rules.storage import RULES
from tests.unit.site.mini import HOSTS as MINI_HOSTS
from tests.unit.site.mini import SiteFolder, resolve

HOSTS, SITE, STORAGE = "hosts.yml", "group_vars/all/site.yml", "group_vars/all/storage.yml"
Edit = tuple[str, str, str]
GROUPS = """\
    nfs_server:
      hosts:
        head:
    nfs_client:
      children:
        slurm_compute:
        slurm_login:
    beegfs_mgmtd:
      hosts:
        head:
    beegfs_meta:
      hosts:
        sto1:
          ansible_host: 10.9.0.31
    beegfs_storage:
      hosts:
        sto1:
        sto2:
          ansible_host: 10.9.0.32
    beegfs_client:
      children:
        slurm_compute:
        slurm_login:
    lustre_mgs:
      hosts:
        mds1:
          ansible_host: 10.9.0.41
    lustre_mds:
      hosts:
        mds1:
    lustre_oss:
      hosts:
        oss1:
          ansible_host: 10.9.0.42
    lustre_client:
      children:
        slurm_compute:
"""
FILE_SYSTEMS = """\
site_nfs_exports:
  - path: /srv/home
    mount: /home
site_beegfs:
  - name: work
    mount: /bulk
    meta:
      - {host: sto1, device: /dev/sda}
    storage:
      - {host: sto1, devices: [/dev/sdb]}
      - {host: sto2, paths: [/data/one, /data/two]}
site_lustre:
  - name: fast
    mount: /fast
    mgs: mds1
    mdts: [{host: mds1, device: /dev/mapper/mdt0}]
    osts:
      - {host: oss1, device: /dev/mapper/ost0}
      - {host: oss1, device: /dev/mapper/ost1}
site_scratch:
  - groups: [gpu]
    path: /local
    devices: [/dev/nvme0n1, /dev/nvme1n1]
    raid: 0
"""
# Groups of features that a version does not set up are refused for that; here is what is held
# besides.
NOT_SET_UP = "HPC1111"


@pytest.fixture
def stored(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with a file system of each kind."""
    folder.edit(HOSTS, "", GROUPS)
    folder.write(STORAGE, FILE_SYSTEMS)
    return folder


def found(folder: SiteFolder) -> list[Problem]:
    """Mistakes and warnings."""
    try:
        every = list(folder.load().warnings)
    except InvalidSiteError as error:
        every = [*error.problems, *error.warnings]
    return [problem for problem in every if problem.code != NOT_SET_UP]


def put(old: str, new: str) -> Edit:
    return (STORAGE, old, new)


SECOND_BEEGFS = """\
  - name: {name}
    mount: {mount}
    mgmtd: head
    meta: [{{host: sto1, device: /dev/sdx}}]
    storage: [{{host: sto2, devices: [/dev/sdx]}}]
site_lustre:
"""
NO_CLIENT = "    lustre_client:\n      children:\n        slurm_compute:\n"
BAD = (
    (
        "Lustre over BeeGFS",
        put("mount: /fast", "mount: /bulk"),
        "mount: /bulk",
        "the BeeGFS work and the Lustre fast are both mounted on /bulk of gpu[01-02]",
        "HPC1413",
    ),
    (
        "scratch over NFS",
        put("path: /local", "path: /home"),
        "path: /home",
        "the export /srv/home and site_scratch[0] are both mounted on /home of gpu[01-02]",
        "HPC1413",
    ),
    (
        "two of a kind at one place",
        put("site_lustre:\n", SECOND_BEEGFS.format(name="more", mount="/bulk")),
        "mount: /bulk",
        "the BeeGFS work and the BeeGFS more are both mounted on /bulk",
        "HPC1413",
    ),
    (
        "scratch inside of BeeGFS",
        put("path: /local", "path: /bulk/a/local"),
        "path: /bulk/a/local",
        "mounted on /bulk/a/local, inside of the BeeGFS work",
        "HPC1414",
    ),
    (
        "Lustre over a system folder",
        put("mount: /fast", "mount: /usr/lib"),
        "mount: /usr/lib",
        "/usr/lib cannot be mounted over: /usr is the system's own",
        "HPC1408",
    ),
    (
        "BeeGFS over /tmp",
        put("mount: /bulk", "mount: /tmp"),
        "mount: /tmp",
        "/tmp cannot be mounted over",
        "HPC1408",
    ),
    (
        "scratch below /var",
        put("path: /local", "path: /var/lib"),
        "path: /var/lib",
        "/var is the system's own",
        "HPC1408",
    ),
    (
        "home as the server has it",
        (SITE, "    uid: 2002\n", "    uid: 2002\n    home: /srv/home/bob\n"),
        "home: /srv/home/bob",
        "the hosts see that on /home",
        "HPC1415",
    ),
    (
        "home outside of what is shared",
        (SITE, "    uid: 2002\n", "    uid: 2002\n    home: /people/bob\n"),
        "home: /people/bob",
        "the home folder of bob is below /people on the own disk of each of gpu[01-02],login",
        "HPC1416",
    ),
    (
        "home on scratch",
        (SITE, "    uid: 2002\n", "    uid: 2002\n    home: /local/bob\n"),
        "home: /local/bob",
        "the home folder of bob is below /local",
        "HPC1416",
    ),
    (
        "no shared home",
        put("mount: /home", "mount: /shared"),
        "name: alice",
        "the home folders of alice, bob are below /home on the own disk of each of",
        "HPC1416",
    ),
    (
        "login node without homes",
        (HOSTS, "        slurm_login:\n    beegfs_mgmtd", "    beegfs_mgmtd"),
        "name: alice",
        "on the own disk of each of login",
        "HPC1416",
    ),
    (
        "state where nothing is mounted",
        (HOSTS, "10.9.0.10\n", "10.9.0.10\n          slurmctld_state_dir: /bulk/slurm\n"),
        "slurmctld_state_dir",
        "head has nothing mounted on /bulk",
        "HPC1417",
    ),
    (
        "disk of two targets",
        put("devices: [/dev/sdb]", "devices: [/dev/sda]"),
        "devices: [/dev/sda]",
        "/dev/sda of sto1 is used twice",
        "HPC1420",
    ),
    (
        "disk twice in one list",
        put("[/dev/nvme0n1, /dev/nvme1n1]", "[/dev/nvme0n1, /dev/nvme0n1]"),
        "devices: [/dev/nvme0n1",
        "/dev/nvme0n1 of gpu[01-02] is used twice",
        "HPC1420",
    ),
    (
        "partition of a whole disk",
        put("/dev/nvme1n1]", "/dev/nvme0n1p2]"),
        "/dev/nvme0n1p2",
        "/dev/nvme0n1p2 of gpu[01-02], as part of /dev/nvme0n1, is used twice",
        "HPC1420",
    ),
    (
        "scratch on a target",
        put(
            "groups: [gpu]\n    path: /local\n    devices: [/dev/nvme0n1, /dev/nvme1n1]\n"
            "    raid: 0\n",
            "groups: [lustre_oss]\n    path: /local\n    devices: [/dev/mapper/ost1]\n",
        ),
        "devices: [/dev/mapper/ost1]",
        "/dev/mapper/ost1 of oss1 is used twice: the Lustre fast has it too",
        "HPC1420",
    ),
    (
        "target inside of a mount",
        put("host: sto2, paths: [/data/one, /data/two]", "host: head, paths: [/home/target]"),
        "paths: [/home/target]",
        "/home/target of head is no place for a target: the export /srv/home",
        "HPC1421",
    ),
    (
        "RAID of one disk",
        put("[/dev/nvme0n1, /dev/nvme1n1]", "[/dev/nvme0n1]"),
        "raid: 0",
        "site_scratch[0] is a RAID of one disk",
        "HPC1422",
    ),
    (
        "disks without RAID",
        put("    raid: 0\n", ""),
        "devices: [/dev/nvme0n1, /dev/nvme1n1]",
        "has 2 disks, and does not say how they become one",
        "HPC1423",
    ),
    (
        "scratch for an unknown group",
        put("groups: [gpu]", "groups: [gpus]"),
        "groups: [gpus]",
        "unknown group gpus",
        "HPC1424",
    ),
    (
        "servers of nothing",
        put(FILE_SYSTEMS[FILE_SYSTEMS.index("site_lustre") : FILE_SYSTEMS.index("site_scr")], ""),
        "lustre_oss:",
        "lustre_oss has hosts, and there is no Lustre for them to serve",
        "HPC1425",
    ),
    (
        "nobody mounts it",
        (HOSTS, NO_CLIENT, ""),
        "site_lustre:",
        "site_lustre describes a Lustre, and no host mounts it",
        "HPC1426",
    ),
    (
        "two of one name",
        put("site_lustre:\n", SECOND_BEEGFS.format(name="work", mount="/more")),
        "name: work",
        "there is a BeeGFS work already",
        "HPC1427",
    ),
    (
        "server outside of its group",
        put("mgs: mds1", "mgs: oss1"),
        "mgs: oss1",
        "the Lustre fast: oss1 is not in lustre_mgs",
        "HPC1428",
    ),
    (
        "unknown server",
        put("{host: oss1, device: /dev/mapper/ost1}", "{host: os1, device: /dev/mapper/ost1}"),
        "host: os1",
        "os1 is no host of the inventory",
        "HPC1428",
    ),
    (
        "idle server",
        put("      - {host: sto2, paths: [/data/one, /data/two]}\n", ""),
        "beegfs_storage:",
        "beegfs_storage has hosts that no BeeGFS of site_beegfs names: sto2",
        "HPC1429",
    ),
    (
        "several hosts of mgmtd",
        (
            HOSTS,
            "    beegfs_mgmtd:\n      hosts:\n",
            "    beegfs_mgmtd:\n      hosts:\n        sto2:\n",
        ),
        "name: work",
        "the BeeGFS work does not say which of head,sto2 has its mgmtd",
        "HPC1430",
    ),
    (
        "long name of a Lustre",
        put("name: fast", "name: scratchfs"),
        "name: scratchfs",
        "at most 8 letters",
        "HPC1040",
    ),
    (
        "Lustre without OST",
        put(
            "    osts:\n      - {host: oss1, device: /dev/mapper/ost0}\n"
            "      - {host: oss1, device: /dev/mapper/ost1}\n",
            "",
        ),
        "name: fast",
        "site_lustre[0] has no osts",
        "HPC1036",
    ),
    (
        "BeeGFS without metadata",
        put("    meta:\n      - {host: sto1, device: /dev/sda}\n", "    meta: []\n"),
        "meta: []",
        "a list of at least 1",
        "HPC1042",
    ),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[0].replace(" ", "-"))
def test_mistake_is_found_where_it_stands(
    stored: SiteFolder, bad: tuple[str, Edit, str, str, str]
) -> None:
    _, edit, at, says, code = bad
    stored.edit(*edit)
    problems = [problem for problem in found(stored) if says in problem.message]
    assert len(problems) == 1
    problem = problems[0]
    assert problem.code == code
    assert problem.hint
    assert problem.where is not None
    line = problem.where.path.read_text().splitlines()[problem.where.line - 1]
    assert at in line


GOOD = (
    ("as it is", put("", "")),
    ("scratch on /tmp", put("path: /local", "path: /tmp")),
    (
        "the same place on other hosts",
        put(
            "site_scratch:\n",
            "site_scratch:\n  - {groups: [slurm_login], path: /local, devices: [/dev/sda]}\n",
        ),
    ),
    ("a place of which another is only the beginning", put("path: /local", "path: /workspace")),
    (
        "the same disk of another host",
        put("sto2, paths: [/data/one, /data/two]", "sto2, devices: [/dev/sda]"),
    ),
    ("two partitions", put("[/dev/nvme0n1, /dev/nvme1n1]", "[/dev/nvme0n1p1, /dev/nvme0n1p2]")),
    (
        "state on its own disk",
        (HOSTS, "10.9.0.10\n", "10.9.0.10\n          slurmctld_state_dir: /var/x\n"),
    ),
    (
        "state on a share of its own",
        (HOSTS, "10.9.0.10\n", "10.9.0.10\n          slurmctld_state_dir: /home/x\n"),
    ),
    (
        "state by a template",
        (HOSTS, "10.9.0.10\n", '10.9.0.10\n          slurmctld_state_dir: "{{ x }}"\n'),
    ),
    ("mgmtd named", put("    mount: /bulk\n", "    mount: /bulk\n    mgmtd: head\n")),
    ("home on BeeGFS", (SITE, "    uid: 2002\n", "    uid: 2002\n    home: /bulk/bob\n")),
    (
        "home of one who has left",
        (SITE, "    uid: 2002\n", "    uid: 2002\n    home: /x/bob\n    state: absent\n"),
    ),
)


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good[0].replace(" ", "-"))
def test_what_must_be_allowed_is(stored: SiteFolder, good: tuple[str, Edit]) -> None:
    stored.edit(*good[1])
    assert found(stored) == []


def test_a_lab_of_containers_is_not_asked_to_share_homes(stored: SiteFolder) -> None:
    stored.edit(STORAGE, "mount: /home", "mount: /shared")
    stored.edit(SITE, "", "site_lab: {network: 10.9.0.0/24}\n")
    assert "HPC1416" not in [problem.code for problem in found(stored)]


def test_homes_are_not_doubted_while_a_mount_is_unknown(stored: SiteFolder) -> None:
    stored.edit(STORAGE, "mount: /home", "mount: home")
    assert [problem.code for problem in found(stored)] == ["HPC1040"]


def test_hosts_of_one_doubt_are_folded_and_so_are_users(stored: SiteFolder) -> None:
    users = "".join(f"  - name: u{n}\n    uid: {3000 + n}\n" for n in range(20))
    stored.edit(SITE, "  - name: alice", users + "  - name: alice")
    stored.edit(STORAGE, "mount: /home", "mount: /shared")
    (problem,) = found(stored)
    assert "home folders of u0, u1, u2 and 19 more are below /home" in problem.message


def test_storage_of_two_thousand_nodes_is_held_in_seconds(stored: SiteFolder) -> None:
    nodes = "".join(f"            n{n:04}:\n" for n in range(2000))
    stored.write(
        HOSTS, MINI_HOSTS.replace("            gpu01:\n", nodes + "            gpu01:\n") + GROUPS
    )
    stored.edit(STORAGE, "/dev/nvme1n1]", "/dev/nvme0n1p1]")
    draft = Draft(
        stored.path, resolve(stored.path), read_sources(stored.path), SiteKeys(name="stored")
    )
    assert list(check_keys(draft)) == []

    start = time.monotonic()
    codes = {problem.code for rule in RULES for problem in rule(draft)}
    assert codes == {"HPC1420"}
    assert time.monotonic() - start < 5
