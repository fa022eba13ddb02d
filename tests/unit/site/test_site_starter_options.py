"""`hpcsite init` by flags and by questions: many combinations, each valid as written."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcsite import cli
from hpcsite.cli import init as init_command
from hpcsite.errors import ExitCode, UsageError
from hpcsite.site import load
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.load import load_site
from hpcsite.site.model import Hardware, Site
from hpcsite.site.starter import (
    Machine,
    Starter,
    StarterGroup,
    StarterRdma,
    StarterUser,
    values,
    write_starter,
)
from tests.unit.site.mini import resolve

HPCSITE = Path(sys.executable).parent / "hpcsite"
HEAD = ("--head", "head=10.0.0.10")
GPU = "gpu:gpu[01-04]:10.0.0.21:profile=dgx-h100"
CPU = "cpu:cpu[01-02]:10.0.0.31:sockets=2,cores_per_socket=32,threads_per_core=2,memory_mib=512000"
L40S = "viz:viz1:10.0.0.41:gpus=4,gpu_type=l40s"


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hpcsite", "init", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_everything_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    code = init(
        monkeypatch,
        *(str(folder), *HEAD, "--login", "login1=10.0.0.11", "--login", "login2=10.0.0.12"),
        *("--group", GPU, "--group", CPU, "--group", L40S, "--nfs-server", "nfs1=10.0.0.13"),
        *("--rdma-mode", "infiniband", "--rdma-speed", "400", "--users", "alice,bob=7000"),
        *("--user", "admin", "--ssh-args", "-o ProxyJump=gate"),
    )
    assert code == ExitCode.OK
    site = load_site(folder)
    assert site.warnings == ()
    gpu, cpu, viz = (site.keys.node_groups[name] for name in ("gpu", "cpu", "viz"))
    assert (gpu.hardware_profile, gpu.gpus and gpu.gpus.count) == ("dgx-h100", 8)
    assert cpu.hardware == Hardware(
        sockets=2, cores_per_socket=32, threads_per_core=2, memory_mib=512000
    )
    assert viz.gpus is not None
    assert (viz.gpus.count, viz.gpus.type) == (4, "l40s")
    assert [partition.name for partition in site.keys.partitions if partition.default] == ["gpu"]
    assert [export.mount_point for export in site.keys.nfs_exports] == ["/home"]
    members = {name: host.groups for name, host in site.hosts.items()}
    assert "nfs_server" in members["nfs1"]
    assert all("nfs_client" in members[name] for name in members if name != "nfs1")
    assert {name for name in members if "slurm_login" in members[name]} == {"login1", "login2"}
    assert site.hosts["viz1"].vars["rdma_mode"] == "infiniband"
    assert {user.name: user.uid for user in site.keys.users} == {
        "hpctest": 5000,
        "alice": 5001,
        "bob": 7000,
    }
    assert site.hosts["head"].vars["ansible_user"] == "admin"
    assert site.hosts["head"].vars["ansible_ssh_common_args"] == "-o ProxyJump=gate"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--group", "gpu"), "no name, node set and first address"),
        (("--group", "GPU:g1:10.0.0.1"), "no name, node set and first address"),
        (("--group", "gpu:g[1-2:10.0.0.1"), "--group: "),
        (("--group", "gpu:g1:10.0.0"), "'10.0.0' is no IPv4 address"),
        (("--group", "gpu:g1:10.0.0.1:profile=dgx-h10"), "there is no hardware profile dgx-h10"),
        (("--group", "gpu:g1:10.0.0.1:gpu=8"), "unknown key gpu"),
        (("--group", "gpu:g1:10.0.0.1:gpus=many"), "gpus is a whole number, not 'many'"),
        (("--group", "gpu:g1:10.0.0.1:gpu_type=h100"), "gpu_type needs gpus"),
        (("--group", "gpu:g1:10.0.0.1:sockets=2"), "cores_per_socket, memory_mib"),
        (("--group", GPU, "--group", "gpu:x1:10.0.0.90"), "there are two of them"),
        (("--group", "rdma:g1:10.0.0.1"), "it has a meaning of its own"),
        (("--group", "head:g1:10.0.0.1"), "a machine is called so"),
        (("--group", "a:g1:10.0.0.1", "--group", "b:g1:10.0.0.1"), "in the node groups a and b"),
        (("--group", "a:g1:10.0.0.1", "--group", "b:g2:10.0.0.1"), "the same address"),
        (("--group", "a:g1:10.0.0.1", "--login", "g1=10.0.0.1"), "a login node and a compute"),
        (("--group", GPU, "--gpus", "8"), "--group goes without --nodes"),
        (("--group", GPU, "--nfs-server", "hed"), "hed is none of the machines"),
        (("--group", GPU, "--users", "Alice"), "'Alice' cannot be a further user's name"),
        (("--group", GPU, "--users", "slurm"), "'slurm' cannot be a further user's name"),
        (("--group", GPU, "--users", "al=5000"), "'5000' cannot be a further user's id"),
        (("--group", GPU, "--users", "al=60001"), "'60001' cannot be a further user's id"),
        (("--group", GPU, "--rdma-mode", "roce"), "--rdma-mode roce needs --rdma-interface"),
        (("--group", GPU, "--rdma-mode", "infiniband"), "infiniband needs --rdma-speed"),
        (("--group", GPU, "--rdma-interface", "e"), "no --rdma-mode goes without --rdma-interface"),
        (
            ("--group", GPU, "--rdma-mode", "roce", "--rdma-interface", "a b"),
            "'a b' is no network interface's name",
        ),
        # What only the rules of a whole site know is refused as well.
        (
            ("--group", "gpu:g1:10.0.0.1:profile=dgx-h100,gpus=4"),
            "4 GPUs by `gpus`, and 8 by their profile dgx-h100; nothing was written",
        ),
        (("--group", "gpu:g1:127.0.0.1"), "127.0.0.1, is this computer's own"),
        (("--group", GPU, "--users", "a=7000,b=7000"), "7000"),
    ],
)
def test_what_cannot_be_meant_writes_nothing(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert init(monkeypatch, str(tmp_path / "site"), *HEAD, *arguments) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert says in said
    assert "hint: " in said
    assert list(tmp_path.iterdir()) == []


_PROFILES = sorted(name for name, profile in load_catalogue().nodes.items() if not profile.virtual)
_RDMA = st.sampled_from(
    [
        None,
        StarterRdma("infiniband", speed_gbit_s=200),
        StarterRdma("infiniband", devices=("mlx5_0", "mlx5_1"), speed_gbit_s=400),
        StarterRdma("roce", "eth1"),
        StarterRdma("soft_roce", "eth0"),
    ]
)
_HARDWARE = st.builds(
    Hardware,
    sockets=st.integers(1, 8),
    cores_per_socket=st.integers(1, 128),
    threads_per_core=st.integers(1, 2),
    memory_mib=st.integers(256, 4_000_000),
)
_NOTES = st.lists(st.text(max_size=40), max_size=2).map(tuple)


@st.composite
def starters(draw: st.DrawFn) -> Starter:
    """Make a site of any size and kind."""
    number = iter(range(1, 1000))
    begin = IPv4Address("10.7.0.0")

    def machine(name: str, rdma: StarterRdma | None = None) -> Machine:
        own = str(begin + next(number))
        via = draw(st.sampled_from(["", own, f"{name}.example", "10.8.0.1"]))
        return Machine(name, own, f"{via}{next(number)}" if via == "10.8.0.1" else via, rdma)

    head = machine("head", draw(_RDMA))
    logins = tuple(machine(f"login{n}") for n in range(draw(st.integers(0, 2))))
    groups = []
    for stem in draw(
        st.lists(st.sampled_from(["gpu", "cpu", "fat", "no"]), min_size=1, unique=True)
    ):
        nodes = tuple(machine(f"{stem}{n:02}") for n in range(1, draw(st.integers(2, 4))))
        kind = draw(st.sampled_from(["profile", "hardware", "nothing"]))
        groups.append(
            StarterGroup(
                f"{stem}_nodes",
                nodes,
                gpus=0 if kind == "profile" else draw(st.integers(0, 64)),
                gpu_type="h100" if kind == "hardware" else "",
                profile=draw(st.sampled_from(_PROFILES)) if kind == "profile" else "",
                hardware=draw(_HARDWARE) if kind == "hardware" else None,
                rdma=draw(_RDMA),
                notes=draw(_NOTES),
            )
        )
    server = draw(st.sampled_from([None, "head", "own", "login", "node"]))
    servers = {
        "head": head,
        "own": machine("nfs1"),
        "login": logins[0] if logins else None,
        "node": groups[0].nodes[0],
    }
    return Starter(
        name=draw(st.sampled_from(["site", "no", "on-1", "y"])),
        head=head,
        logins=logins,
        groups=tuple(groups),
        nfs_server=servers[server] if server else None,
        users=draw(st.sampled_from([(), (StarterUser("no", 5001), StarterUser("al-b", 9999))])),
        ssh_user=draw(st.sampled_from(["root", "admin", "y", "DOM\\admin"])),
        ssh_args=draw(st.sampled_from(["", "-o ProxyJump=a@b", "-i '/k e/y' -F \"x\""])),
        notes=draw(_NOTES),
    )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(starter=starters())
def test_any_starter_is_valid_without_warnings(
    starter: Starter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("s") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "read_inventory", resolve)
        write_starter(folder, starter)
        site = load_site(folder)
    assert site.warnings == ()
    assert_is(site, starter)


def assert_is(site: Site, starter: Starter) -> None:
    """What is read is what was to be written."""
    assert site.name == starter.name
    assert set(site.hosts) == {machine.name for machine in starter.machines}
    for machine in starter.machines:
        host = site.hosts[machine.name]
        assert host.address == machine.address
        assert host.vars["ansible_host"] == (machine.reached_by or machine.address)
        assert host.vars["ansible_user"] == starter.ssh_user
        assert host.vars.get("ansible_ssh_common_args", "") == starter.ssh_args
    for group in starter.groups:
        read = site.keys.node_groups[group.name]
        assert read.hardware_profile == (group.profile or None)
        if group.hardware:
            assert read.hardware == group.hardware
        for node in group.nodes:
            variables = site.hosts[node.name].vars
            assert ("rdma" in site.hosts[node.name].groups) == bool(group.rdma)
            if group.rdma:
                assert variables["rdma_mode"] == group.rdma.mode
                assert tuple(variables.get("rdma_devices", ())) == group.rdma.devices


def answer(folder: Path, monkeypatch: pytest.MonkeyPatch, answers: Sequence[str]) -> str:
    """Answer the questions; gives what was shown on stderr."""
    monkeypatch.setattr(init_command, "_is_terminal", lambda: True)
    done = CliRunner().invoke(init_command.command, [str(folder)], input="\n".join([*answers, ""]))
    assert done.exit_code == 0, (done.output, done.exception)
    assert done.stdout == f"{folder}\n"
    return done.stderr


def test_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "Hall 2"
    shown = answer(
        folder,
        monkeypatch,
        [
            *("My Site", ""),  # a name that cannot be, then the folder's
            *("", "10.0.0", "192.0.2.10", "127.0.0.1", "10.0.0.10"),  # the controller
            *("y", "head", "login", "10.0.0.10", "10.0.0.11", "n"),  # a login node
            *("gpu[01-", "gpu[01-02]", "10.0.0.10", "10.0.0.21", "dgx", "dgx-h100", "y"),
            *("gpu02,c1", "cpu[1-2]", "10.0.0.31", "", "99", "2", "2 32", "2 32 1 515000", "n"),
            *("y", "nobody", "nfs1=10.0.0.11", "nfs1=10.0.0.12"),  # who shares /home
            *("infiniband", "200", "Bob", "bob", "a b", "admin"),
        ],
    )
    for said in (
        "'My Site' cannot be a site's name; use lower-case letters",
        "'10.0.0' is no IPv4 address",
        "192.0.2.10 is one of those kept for examples",
        "127.0.0.1 is this computer's own (loopback)",
        "head has the same name or address (10.0.0.10)",
        "there is no hardware profile dgx;",
        "'99' is no number of GPUs; 0 to 64",
        "'2 32' cannot be; e.g. 2 32 1 515000",
        "gpu02 has the same name or address",
        "nobody is none of the machines",
        "login has the same name or address",
        "'Bob' cannot be a further user's name",
        "'a b' is no login name",
    ):
        assert said in shown
    site = load_site(folder)
    assert site.warnings == ()
    assert site.name == "hall-2"
    assert set(site.keys.node_groups) == {"gpu", "cpu"}
    assert site.keys.node_groups["gpu"].hardware_profile == "dgx-h100"
    cpu = site.keys.node_groups["cpu"]
    assert cpu.gpus is not None
    assert cpu.gpus.count == 2
    assert cpu.hardware == Hardware(sockets=2, cores_per_socket=32, memory_mib=515000)
    assert site.keys.fabrics["ib"].speed_gbit_s == 200
    assert site.keys.users[1].name == "bob"
    assert "nfs_server" in site.hosts["nfs1"].groups
    assert site.hosts["cpu1"].vars["ansible_user"] == "admin"


def test_defaults_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter on every question but those for addresses, which nobody can know."""
    folder = tmp_path / "site"
    addresses = ["", "", "10.0.0.10", "", "", "10.0.0.11", "", "", "10.0.0.21"]
    answer(folder, monkeypatch, [*addresses, *[""] * 12])
    site = load_site(folder)
    assert site.warnings == ()
    assert set(site.hosts) == {"head", "login1", "node01"}
    assert site.keys.nfs_exports
    assert site.keys.node_groups["node"].hardware is None


def test_questions_are_not_asked_for_a_folder_that_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text("x")
    monkeypatch.setattr(init_command, "_is_terminal", lambda: True)
    done = CliRunner().invoke(init_command.command, [str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert done.output == ""


def _take_terminal() -> None:
    # Ctrl-C comes from the terminal only where it is the process's own; a shell that runs the tests
    # in its background has them ignore it.
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_real_terminal_is_asked_and_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [HPCSITE, "init", str(tmp_path / "site")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    shown, end = "", time.monotonic() + 60
    while "Name of the site [site]" not in shown and time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 4096).decode()
    # Python may lose one that comes between the prompt and the wait for an answer.
    while process.poll() is None and time.monotonic() < end:
        os.write(ours, b"\x03")
        time.sleep(0.5)
    process.kill()
    assert process.wait() == ExitCode.INTERRUPTED
    os.close(ours)
    assert "Name of the site [site]" in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("names", "stem"),
    [
        (["gpu01", "gpu02"], "gpu"),
        (["rack1-gpu01", "rack2-gpu01"], "rack"),
        (["gpua", "gpub"], ""),
        (["n1", "m1"], ""),
        (["gpu1", "gpux"], ""),
        (["Node-1", "Node-2"], "node"),
    ],
)
def test_stem(names: list[str], stem: str) -> None:
    assert values.stem(names) == stem


def test_comments_of_hosts_cannot_become_keys(tmp_path: Path) -> None:
    """Firmware may say anything: a line break in it begins no line of its own."""
    group = StarterGroup("g", (Machine("g1", "10.0.0.2"),), notes=("a\nsite_name: x\r\x85\u2028b",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "read_inventory", resolve)
        write_starter(tmp_path / "s", Starter("s", Machine("head", "10.0.0.1"), (group,)))
    text = (tmp_path / "s/group_vars/all/slurm.yml").read_text()
    assert "  # a site_name: x b\n" in text
    assert not re.search("[\r\x85\u2028]", text)
