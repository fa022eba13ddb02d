"""Rules of shared storage: each bad case with file and line, beside what must be allowed."""

from pathlib import Path

import pytest
import yaml

from hpcsite.paths import content_dir
from hpcsite.site.rules.storage import _OWNED
from tests.unit.site.mini import SiteFolder

HOSTS, SITE, NFS = "hosts.yml", "group_vars/all/site.yml", "group_vars/all/nfs.yml"
GROUPS = """\
    nfs_server:
      hosts:
        head:
    nfs_client:
      children:
        slurm_compute:
    rdma:
      hosts:
        head:
        gpu01:
"""
EXPORTS = """\
site_nfs_exports:
  - path: /srv/home
    mount: /home
  - path: /shared
    group: research
    mode: "2775"
"""


@pytest.fixture
def shared(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with two exports."""
    folder.edit(HOSTS, "", GROUPS)
    folder.write(NFS, EXPORTS)
    folder.write("group_vars/rdma/rdma.yml", "rdma_mode: infiniband\n")
    return folder


def add(*lines: str) -> tuple[str, str, str]:
    return (NFS, "", "".join(f"{line}\n" for line in lines))


TWO_SERVERS = (
    HOSTS,
    "    nfs_server:\n      hosts:\n",
    "    nfs_server:\n      hosts:\n        login:\n",
)
BAD = (
    (
        "clients without exports",
        (NFS, EXPORTS, "site_nfs_exports: []\n"),
        HOSTS,
        "nfs_",
        "nothing for them to",
        "HPC1401",
    ),
    (
        "no server",
        (HOSTS, "    nfs_server:\n      hosts:\n        head:\n", ""),
        HOSTS,
        "nfs_client:",
        "nfs_client needs nfs_server",
        "HPC1119",
    ),
    (
        "no client",
        (HOSTS, "    nfs_client:\n      children:\n        slurm_compute:\n", ""),
        NFS,
        "site_nfs_exports:",
        "no host mounts them",
        "HPC1402",
    ),
    ("several servers", TWO_SERVERS, NFS, "path: /", "does not say which of head,login", "HPC1403"),
    (
        "server of another group",
        (NFS, "  - path: /shared\n", "  - path: /shared\n    server: gpu01\n"),
        NFS,
        "server: gpu01",
        "gpu01 is not in nfs_server",
        "HPC1404",
    ),
    (
        "path twice",
        add("  - path: /shared", "    mount: /x"),
        NFS,
        "path: /shared",
        "/shared is exported twice",
        "HPC1405",
    ),
    (
        "mount twice",
        add("  - path: /srv/x", "    mount: /home"),
        NFS,
        "mount: /home",
        "two exports are mounted on /home",
        "HPC1406",
    ),
    (
        "hidden export",
        add("  - path: /home/x", "    mount: /x"),
        NFS,
        "path: /home/x",
        "/srv/home is mounted there on /home",
        "HPC1407",
    ),
    (
        "system folder",
        add("  - path: /srv/x", "    mount: /usr"),
        NFS,
        "mount: /usr",
        "/usr cannot be mounted over",
        "HPC1408",
    ),
    (
        "below a system folder",
        add("  - path: /var/lib/x"),
        NFS,
        "path: /var/lib/x",
        "/var is the system's own",
        "HPC1408",
    ),
    ("root folder", add("  - path: /"), NFS, "path: /", "an absolute path of letters", "HPC1040"),
    ("trailing slash", add("  - path: /x/"), NFS, "path: /x/", "without a / at its end", "HPC1040"),
    ("dots", add("  - path: /srv/../etc"), NFS, "path: /srv/..", "begins with a dot", "HPC1040"),
    (
        "two options",
        add('    options: ["noatime,ro"]'),
        NFS,
        "noatime,ro",
        "one option of nfs(5)",
        "HPC1040",
    ),
    (
        "owned option",
        add("    options: [noatime, vers=3]"),
        NFS,
        "vers=3",
        "hpcsite itself sets the option vers",
        "HPC1409",
    ),
    (
        "option of systemd",
        add("    options: [x-systemd.automount]"),
        NFS,
        "x-systemd",
        "itself sets",
        "HPC1409",
    ),
    ("mode", (NFS, '"2775"', '"rwx"'), NFS, "rwx", "four octal digits", "HPC1040"),
    (
        "group",
        (NFS, "group: research", "group: resarch"),
        NFS,
        "resarch",
        "unknown group resarch",
        "HPC1411",
    ),
    (
        "home is a mount",
        (SITE, "    uid: 2002", "    uid: 2002\n    home: /shared"),
        SITE,
        "home: /shared",
        "bob is a shared folder itself",
        "HPC1412",
    ),
    (
        "lab of containers",
        (SITE, "", "site_lab: {network: 10.9.0.0/24}\n"),
        NFS,
        "site_nfs_exports:",
        "a lab of containers has no NFS",
        "HPC2007",
    ),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[0].replace(" ", "-"))
def test_mistake_is_found_where_it_stands(
    shared: SiteFolder, bad: tuple[str, tuple[str, str, str], str, str, str, str]
) -> None:
    _, edit, file, at, says, code = bad
    shared.edit(*edit)
    problems = [problem for problem in shared.problems() if says in problem.message]
    assert problems
    for problem in problems:
        assert problem.hint
        assert problem.code == code
        assert problem.where is not None
        assert problem.where.path == shared.path / file
        line = (shared.path / file).read_text().splitlines()[problem.where.line - 1]
        assert at in line


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ("    rdma:\n      hosts:\n        login:\n", "not its server is in the group rdma"),
        ("    rdma:\n      hosts:\n        head:\n", "none of its clients is in the group rdma"),
        ("", "no host is in the group rdma"),
    ],
)
def test_rdma_needs_both_ends(folder: SiteFolder, members: str, says: str) -> None:
    folder.edit(HOSTS, "", GROUPS.partition("    rdma:")[0] + members)
    folder.write(NFS, EXPORTS + "    rdma: true\n")
    (problem,) = folder.problems()
    assert says in problem.message
    assert problem.code == "HPC1410"


GOOD = (
    ("over RDMA", add("    rdma: true")),
    ("automount", add("    automount: true")),
    ("options of its own", add("    options: [noatime, rsize=1048576, lookupcache=positive]")),
    ("inside of another", add("  - path: /shared/scratch")),
    ("inside of another, from elsewhere", add("  - path: /srv/fast", "    mount: /shared/fast")),
    ("local programs", add("  - path: /srv/sw", "    mount: /usr/local/sw")),
    ("hyphen", add("  - path: /data-1/a.b_c")),
    ("server named", add("    server: head")),
    ("no exports at all", (NFS, EXPORTS, "local_x: 1\n")),
)


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good[0].replace(" ", "-"))
def test_what_must_be_allowed_is(
    shared: SiteFolder, good: tuple[str, tuple[str, str, str]]
) -> None:
    if good[0] == "no exports at all":
        text = (shared.path / HOSTS).read_text()
        begin, _, rest = text.partition("    nfs_server:")
        shared.write(HOSTS, begin + "    rdma:" + rest.partition("    rdma:")[2])
    shared.edit(*good[1])
    assert shared.problems() == []


def test_each_owned_option_says_what_to_do() -> None:
    assert all(hint for hint in _OWNED.values())


def test_the_server_of_an_export_is_found(shared: SiteFolder) -> None:
    site = shared.load()
    assert [site.nfs_server_of(export) for export in site.keys.nfs_exports] == ["head", "head"]


def test_options_that_the_template_writes_are_owned() -> None:
    """What the mount units set themselves, no inventory may set a second time."""
    path = Path(content_dir() / "roles/nfs_client/templates/nfs.mount.j2")
    written = ("ro", "rw", "nfsvers", "proto", "port", "nconnect", "hard", "retry", "_netdev")
    text = path.read_text()
    for name in (*written, "nofail"):
        assert name in text
        assert name in _OWNED
    assert yaml.safe_load(EXPORTS)
