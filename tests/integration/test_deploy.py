"""Deploy on real machines: what is there afterwards, and what happens when things go wrong.

The tests share one site and run in this order; each leaves it deployed.
"""

import base64
import contextlib
import hashlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import LabSite

pytestmark = pytest.mark.lab

NODES = ("head", "login", "gpu01", "gpu02")


def changed(outcome: dict[str, Any]) -> dict[str, int]:
    return {host["name"]: host["changed"] for host in outcome["hosts"]}


def nothing(outcome: dict[str, Any]) -> bool:
    return set(changed(outcome).values()) == {0} and set(changed(outcome)) >= set(NODES)


@contextlib.contextmanager
def edited(site: LabSite, file: str, old: str, new: str) -> Iterator[None]:
    site.edit(file, old, new)
    try:
        yield
    finally:
        site.edit(file, new, old)


def until(condition: Any, seconds: float) -> None:  # noqa: ANN401
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.2)


def wait_for_play(process: subprocess.Popen[str], play: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if play in line:
            return
    pytest.fail(f"the play {play} did not begin")


def deploy_processes(site: LabSite) -> list[str]:
    """Command lines on this computer that belong to a deploy of the site."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            ours = str(site.inventory) in argv or str(site.state) in argv
            if ours and ("ansible" in argv or "guard.py" in argv):
                found.append(argv)
    return found


class Watch:
    """Looks for secrets in every command line of this computer, its virtual machines included."""

    def __init__(self, secrets_dir: Path) -> None:
        self._folder = secrets_dir
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.seen: set[bytes] = set()
        self.looks = 0

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            needles = [needle.encode() for needle in secrets(self._folder)]
            for entry in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    argv = (entry / "cmdline").read_bytes()
                    self.seen |= {argv for needle in needles if needle in argv}
            self.looks += bool(needles)


def secrets(folder: Path) -> list[str]:
    """The secrets as they would stand in text."""
    with contextlib.suppress(OSError):
        key = base64.b64encode((folder / "munge.key").read_bytes()).decode()
        return [key, (folder / "slurmdbd_password").read_text("utf-8").strip()]
    return []


def test_a_check_of_bare_machines_touches_nothing(lab_site: LabSite) -> None:
    outcome = lab_site.deploy("--check")
    assert sum(changed(outcome).values()) > 0
    assert not (lab_site.inventory / "secrets").exists()
    assert not list(lab_site.state.rglob("munge.key"))
    assert not (lab_site.state / "last-site.json").exists()
    for node in NODES:
        assert lab_site.ssh(node, "ls /etc/munge /etc/slurm 2>/dev/null | wc -l") == "0"


def test_a_bad_limit_or_tag_is_refused_before_anything_runs(lab_site: LabSite) -> None:
    typo = lab_site.run("deploy", "--limit", "logn")
    assert typo.returncode == 2
    assert "did you mean login?" in typo.stderr
    tag = lab_site.run("deploy", "--tags", "schedule")
    assert tag.returncode == 2
    assert "scheduler" in tag.stderr
    assert not (lab_site.inventory / "secrets").exists()


def test_bare_machines_become_a_cluster_and_no_secret_is_seen(lab_site: LabSite) -> None:
    with Watch(lab_site.inventory / "secrets") as watch:
        outcome = lab_site.deploy("--diff", "-vvv")
    assert watch.looks > 10
    assert not watch.seen
    assert outcome["failures"] == []
    assert lab_site.as_user("srun --nodes=2 --gres=gpu:1 hostname").split() != []
    _no_secret_is_kept(lab_site)


def _no_secret_is_kept(site: LabSite) -> None:
    needles = secrets(site.inventory / "secrets")
    assert len(needles) == 2
    # Beside sites/, the state folder holds the virtual machines' own files.
    for path in [*(site.state / "sites").rglob("*"), *Path("/root/.ansible").rglob("*")]:
        if path.is_file():
            text = path.read_bytes()
            assert not [path for needle in needles if needle.encode() in text]
    assert all(path.stat().st_mode & 0o077 == 0 for path in site.state.glob("sites/*/runs/*/"))
    for node in NODES:
        journal = site.ssh_raw(
            node, "journalctl --no-pager | grep -c -F -f /dev/stdin", stdin="\n".join(needles)
        )
        assert journal.stdout.strip() in {"", "0"}
        holders = site.ssh_raw(
            node,
            "grep -rlsF -f /dev/stdin --devices=skip /etc /var /root /tmp /home /opt /run | "
            "xargs -r stat -c '%a %n'",
            stdin="\n".join(needles),
        ).stdout
        assert {line.split()[0] for line in holders.splitlines()} <= {"600", "400"}, holders


def test_a_second_run_changes_nothing(deployed_site: LabSite) -> None:
    outcome = deployed_site.deploy()
    assert nothing(outcome), outcome["recap"]
    assert "nothing changed" in outcome["recap"]


def test_a_check_of_a_deployed_site_would_change_nothing(deployed_site: LabSite) -> None:
    outcome = deployed_site.deploy("--check", "--diff")
    assert nothing(outcome), outcome["recap"]


def test_a_daemon_that_was_stopped_is_started(deployed_site: LabSite) -> None:
    deployed_site.ssh("head", "systemctl stop slurmctld")
    outcome = deployed_site.deploy("--tags", "scheduler")
    assert changed(outcome)["head"] > 0
    assert {changed(outcome)[node] for node in ("gpu01", "gpu02")} == {0}
    assert deployed_site.ssh("head", "systemctl is-active slurmctld") == "active"


def test_a_job_survives_a_kill_in_the_scheduler_layer_and_a_new_partition(
    deployed_site: LabSite,
) -> None:
    job = deployed_site.as_user("sbatch --parsable --gres=gpu:2 --wrap 'sleep 600'")
    until(lambda: _job_state(deployed_site, job) == "RUNNING", 30)
    second = "site_partitions:\n  - name: second\n    node_groups: [gpu]\n"
    deployed_site.edit("group_vars/all/slurm.yml", "site_partitions:\n", second)

    process = deployed_site.start("deploy", "--no-verify")
    wait_for_play(process, "scheduler: slurmctld")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    outcome = deployed_site.deploy()

    assert deployed_site.as_user("sinfo --noheader --partition second --format %R") == "second"
    assert _job_state(deployed_site, job) == "RUNNING"
    deployed_site.as_user(f"scancel {job}")
    assert outcome["status"] == "ok"
    assert deploy_processes(deployed_site) == []


def _job_state(site: LabSite, job: str) -> str:
    return site.as_user(f"squeue --noheader --job {job} --format %T")


def test_a_clone_without_secrets_cannot_rekey_the_cluster(
    deployed_site: LabSite, tmp_path: Path
) -> None:
    folder = deployed_site.inventory / "secrets"
    kept = shutil.move(folder, tmp_path / "secrets")
    try:
        for options in (["--limit", "gpu01"], [], ["--check"]):
            outcome = deployed_site.deploy(*options, expect=1)
            (failure,) = outcome["failures"]
            assert failure["nodes"] == "head"
            assert "runs a cluster with another munge key" in failure["message"]
            assert set(changed(outcome).values()) == {0}
            assert not folder.exists()
    finally:
        shutil.move(kept, folder)
    assert nothing(deployed_site.deploy())


def test_the_munge_key_is_rotated_under_a_running_job(deployed_site: LabSite) -> None:
    key = deployed_site.inventory / "secrets" / "munge.key"
    before = key.read_bytes()
    script = "until test -e /tmp/go; do sleep 0.2; done; srun hostname"
    job = deployed_site.as_user(f"sbatch --parsable --nodes=2 --wrap '{script}'")
    until(lambda: _job_state(deployed_site, job) == "RUNNING", 30)

    outcome = deployed_site.deploy("--rotate-munge-key")
    assert min(changed(outcome).values()) > 0
    assert key.read_bytes() != before
    assert key.with_name("munge.key.old").read_bytes() == before
    for node in NODES:
        installed = deployed_site.ssh(node, "sha256sum /etc/munge/munge.key").split()[0]
        assert installed == hashlib.sha256(key.read_bytes()).hexdigest()

    assert _job_state(deployed_site, job) == "RUNNING"
    deployed_site.ssh("gpu01", "touch /tmp/go")
    ended = f"sacct --noheader --parsable2 --allocations --job {job} --format State,ExitCode"
    until(lambda: deployed_site.as_user(ended) == "COMPLETED|0:0", 30)
    output = deployed_site.ssh("gpu01", f"cat /tmp/slurm-{job}.out; rm /tmp/go")
    assert sorted(output.split()) == ["gpu01", "gpu02"]
    _job_over(deployed_site, "gpu01", "gpu02")
    assert nothing(deployed_site.deploy())


def test_a_deploy_holds_the_site_and_ends_on_ctrl_c(deployed_site: LabSite) -> None:
    process = deployed_site.start("deploy", "--no-verify")
    wait_for_play(process, "base:")
    second = deployed_site.run("deploy")
    assert second.returncode == 4
    assert f"pid {process.pid} on " in second.stderr
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 12
    assert "INTERRUPTED" in out
    assert " in base: " in out
    assert deploy_processes(deployed_site) == []
    assert not list(deployed_site.state.glob("sites/*/runs/*/work"))


def test_a_node_that_is_off_is_left_out_and_brought_in_later(deployed_site: LabSite) -> None:
    deployed_site.ok("lab stop", "gpu02")
    outcome = deployed_site.deploy(expect=1)
    (failure,) = outcome["failures"]
    assert (failure["nodes"], failure["kind"], failure["layer"]) == (
        *("gpu02", "unreachable"),
        "preflight",
    )
    assert "left out: gpu02; the other nodes are deployed" in outcome["recap"]
    assert "--limit 'gpu02'" in outcome["recap"]
    assert str(outcome["log"]) in outcome["recap"]
    assert deployed_site.as_user("srun --nodelist=gpu01 hostname") == "gpu01"

    deployed_site.ok("lab start", "gpu02")
    limited = deployed_site.deploy("--limit", "gpu02")
    assert {host["name"] for host in limited["hosts"]} == {"gpu02", "head"}
    _job_over(deployed_site, "gpu01", "gpu02")


def _job_over(site: LabSite, *nodes: str) -> None:
    """A job over these nodes, as soon as Slurm sees them again."""
    names = ",".join(nodes)
    usable = {"idle", "mixed", "allocated"}
    command = f"sinfo --noheader --Node --partition gpu --nodes {names} --format %T"
    until(lambda: set(site.as_user(command).split()) <= usable, 60)
    count = len(nodes)
    found = site.as_user(f"srun --partition gpu --nodes={count} --nodelist={names} hostname")
    assert set(found.split()) == set(nodes)


def test_a_new_node_joins_with_limit_and_all_know_its_name(deployed_site: LabSite) -> None:
    network = deployed_site.network
    octet = f"              ansible_host: {network}.22\n"
    new = f"{octet}            gpu03:\n              ansible_host: {network}.23\n"
    with edited(deployed_site, "hosts.yml", octet, new):
        deployed_site.ok("lab up")
        outcome = deployed_site.deploy("--limit", "gpu03")
        assert {host["name"] for host in outcome["hosts"]} == {"gpu03", "head"}
        _job_over(deployed_site, "gpu01", "gpu03")
        for node in ("gpu01", "login"):
            assert f"{network}.23" in deployed_site.ssh(node, "getent hosts gpu03")
        assert nothing(deployed_site.deploy())
        deployed_site.ok("lab stop", "gpu03")


def test_a_node_that_breaks_its_contract_is_left_out(deployed_site: LabSite) -> None:
    deployed_site.ssh("gpu01", "umount /dev/nvidia7; rm /dev/nvidia7")
    outcome = deployed_site.deploy(expect=1)
    (failure,) = outcome["failures"]
    assert failure["nodes"] == "gpu01"
    assert "7" in failure["message"]
    assert deployed_site.as_user("srun --nodelist=gpu02 --gres=gpu:1 hostname") == "gpu02"

    deployed_site.ok("lab stop", "gpu01")
    deployed_site.ok("lab start", "gpu01")
    deployed_site.deploy()
    _job_over(deployed_site, "gpu01", "gpu02")


def test_a_user_with_sudo_can_deploy(deployed_site: LabSite) -> None:
    deployed_site.ssh(
        "login",
        "useradd --system --create-home --shell /bin/bash admin && "
        "install -d -o admin -m 700 ~admin/.ssh && "
        "install -o admin -m 600 /root/.ssh/authorized_keys ~admin/.ssh/ && "
        "echo 'admin ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/admin",
    )
    folder = deployed_site.inventory / "host_vars"
    folder.mkdir()
    (folder / "login.yml").write_text("ansible_user: admin\n")
    try:
        outcome = deployed_site.deploy("--limit", "login")
        assert set(changed(outcome).values()) == {0}, outcome["recap"]
    finally:
        (folder / "login.yml").unlink()
        folder.rmdir()


def test_an_unreachable_controller_stops_at_once(deployed_site: LabSite) -> None:
    deployed_site.ok("lab stop", "head")
    try:
        outcome = deployed_site.deploy(expect=4)
    finally:
        deployed_site.ok("lab start", "head")
    assert outcome["status"] == "could-not-run"
    assert outcome["untouched"] == ["gpu01", "gpu02", "login"]
    assert set(changed(outcome).values()) == {0}
    assert outcome["layers"] == ["preflight"]


def test_a_deploy_ends_with_a_verification(deployed_site: LabSite) -> None:
    done = deployed_site.run("deploy")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "changed=0" in done.stdout
    assert "PASS" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
