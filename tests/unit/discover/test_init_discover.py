"""`hpcsite init --discover` as a whole, with an ssh that answers with what was recorded."""

import os
import sys
from pathlib import Path

import pytest
import yaml

from hpcsite import cli
from hpcsite.errors import ExitCode
from hpcsite.site.load import load_site
from tests.unit.discover.samples import recorded

SSH = """\
#!/bin/sh
# Answers with what was recorded of the host that stands before the remote command.
echo "$@" >>{folder}/calls
while [ $# -gt 2 ]; do shift; done
cat >{folder}/program.$1
[ "$2" = sh ] || exit 99
[ -r {folder}/$1 ] && exec cat {folder}/$1
echo "ssh: connect to host $1 port 22: No route to host" >&2
exit 255
"""


class Hosts:
    """What the hosts of a test answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        tool = folder / "ssh"
        tool.write_text(SSH.format(folder=folder))
        tool.chmod(0o755)

    def add(self, target: str, like: str, name: str, address: str, *edits: tuple[str, str]) -> None:
        text = recorded(like).replace("@@hpcsite hostname\n" + like, f"@@hpcsite hostname\n{name}")
        for old, new in (
            ("10.20.1.1" if like == "dgx01" else "10.20.2.1", address),
            *edits,
        ):
            assert old in text
            text = text.replace(old, new)
        (self.folder / target).write_text(text)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    made = Hosts(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{made.folder}:{os.environ['PATH']}")
    made.add("head", "cpu01", "head", "10.20.0.10")
    made.add("login", "cpu01", "login", "10.20.0.11")
    for number in range(1, 5):
        less = [("MemTotal:       2113400240", "MemTotal:       2113390000")] if number == 3 else []
        made.add(f"10.20.1.{number}", "dgx01", f"gpu{number:02}", f"10.20.1.{number}", *less)
    return made


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hpcsite", "init", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_discovered_site_is_valid_as_written(
    hosts: Hosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "site"
    code = init(
        monkeypatch,
        *(str(folder), "--discover", "head", "login", "10.20.1.[1-4]", "--login", "login"),
        *("--nfs-server", "head", "--user", "admin", "--ssh-args", "-i ~/key -J gate"),
    )
    shown = capsys.readouterr()
    assert code == ExitCode.OK, shown.err
    assert shown.out == f"{folder}\n"
    assert "asking 6 hosts" in shown.err
    assert "differs" not in shown.err
    site = load_site(folder)
    assert site.warnings == ()
    assert {host.name: host.address for host in site.hosts.values()} == {
        "head": "10.20.0.10",
        "login": "10.20.0.11",
        **{f"gpu{number:02}": f"10.20.1.{number}" for number in range(1, 5)},
    }
    assert site.hosts["head"].vars["ansible_host"] == "head"
    assert site.hosts["gpu01"].vars["ansible_host"] == "10.20.1.1"
    assert site.hosts["gpu01"].vars["rdma_mode"] == "infiniband"
    assert len(site.hosts["gpu01"].vars["rdma_devices"]) == 8
    assert {name for name, host in site.hosts.items() if "rdma" in host.groups} == {
        f"gpu{number:02}" for number in range(1, 5)
    }
    assert list(site.keys.node_groups) == ["gpu"]
    group = site.keys.node_groups["gpu"]
    assert group.hardware_profile == "dgx-h100"
    assert group.hardware is not None
    assert group.hardware.memory_mib == 2113390000 // 1024
    assert group.gpus is not None
    assert (group.gpus.count, group.gpus.type) == (8, "h100")
    assert site.keys.fabrics["ib"].speed_gbit_s == 400
    connection = yaml.safe_load((folder / "group_vars/all/connection.yml").read_text())
    assert connection["ansible_user"] == "admin"
    assert connection["ansible_ssh_common_args"] == "-i ~/key -J gate"
    comments = (folder / "group_vars/all/slurm.yml").read_text()
    assert "# As gpu[01-04] reported · NVIDIA DGXH100" in comments
    assert "Memory differs, from 2063857 to 2063867 MiB" in comments


def test_ssh_asks_nobody_and_runs_the_program(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert init(monkeypatch, str(tmp_path / "s"), "--discover", "head") == ExitCode.OK
    (call,) = hosts.calls
    assert call == "-o BatchMode=yes -o ConnectTimeout=10 -l root -- head sh"
    assert "@@hpcsite" in (hosts.folder / "program.head").read_text()
    assert load_site(tmp_path / "s").warnings == ()


def test_odd_node_is_shown(
    hosts: Hosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = "NVIDIA H100 80GB HBM3, 81559, GPU-00000007-1111-2222-3333-444444444444\n"
    hosts.add("10.20.1.4", "dgx01", "gpu04", "10.20.1.4", (gone, ""))
    folder = tmp_path / "site"
    code = init(monkeypatch, str(folder), "--discover", "head", "10.20.1.[1-4]")
    assert code == ExitCode.OK
    assert "  gpu04  1 GPU fewer (7; NVIDIA H100 80GB HBM3)\n" in capsys.readouterr().err
    site = load_site(folder)
    assert site.warnings == ()
    assert {
        name: group.gpus.count for name, group in site.keys.node_groups.items() if group.gpus
    } == {
        "gpu": 8,
        "gpu_2": 7,
    }


def test_hosts_that_do_not_answer_are_named_together(
    hosts: Hosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (hosts.folder / "broken").write_text("\n@@hpcsite begin\n\n@@hpcsite hostname\nx\n")
    folder = tmp_path / "site"
    arguments = (str(folder), "--discover", "head", "10.20.1.[1-6]", "broken")
    assert init(monkeypatch, *arguments) == ExitCode.COULD_NOT_RUN
    said = capsys.readouterr().err
    assert "3 of 8 hosts did not answer" in said
    assert "10.20.1.5: ssh: connect to host 10.20.1.5 port 22: No route to host" in said
    assert "10.20.1.6: " in said
    assert "broken: its answer broke off (0)" in said
    assert "nothing was written" in said
    assert not folder.exists()
    assert init(monkeypatch, *arguments, "--skip-unreachable") == ExitCode.OK
    assert "3 of 8 hosts did not answer" in capsys.readouterr().err
    assert set(load_site(folder).hosts) == {"head", "gpu01", "gpu02", "gpu03", "gpu04"}
    text = (folder / "hosts.yml").read_text()
    assert "# It did not answer, and is left out: 10.20.1.5" in text


def test_controller_that_does_not_answer_is_not_replaced(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    arguments = (str(folder), "--discover", "nowhere", "10.20.1.[1-4]", "--skip-unreachable")
    assert init(monkeypatch, *arguments) == ExitCode.USAGE
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--discover",), ExitCode.USAGE, "--discover needs hosts"),
        (("head",), ExitCode.USAGE, "head: only with --discover"),
        (("--skip-unreachable",), ExitCode.USAGE, "--skip-unreachable: only with --discover"),
        (("--discover", "gpu[1-"), ExitCode.USAGE, "HOST: "),
        (("--discover", "head", "--gpus", "8"), ExitCode.USAGE, "--gpus goes without --discover"),
        (("--discover", "head", "--lab"), ExitCode.USAGE, "--lab takes no other option"),
        (("--discover", "head", "--user", "a b"), ExitCode.USAGE, "'a b' is no login name"),
        (
            ("--discover", "head", "--ssh-args", "-i '"),
            ExitCode.USAGE,
            "--ssh-args cannot be split",
        ),
        (("--discover", "head", "--head", "x"), ExitCode.USAGE, "--head: x is none of the hosts"),
        (("--discover", "nowhere"), ExitCode.COULD_NOT_RUN, "1 of 1 hosts did not answer"),
    ],
)
def test_what_cannot_be_meant(
    arguments: tuple[str, ...],
    code: ExitCode,
    says: str,
    hosts: Hosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert init(monkeypatch, str(tmp_path / "site"), *arguments) == code
    assert says in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_folder_is_looked_at_before_any_host(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    code = init(monkeypatch, str(tmp_path / "full"), "--discover", "head")
    assert code == ExitCode.USAGE
    assert not (hosts.folder / "calls").exists()
