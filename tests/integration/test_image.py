"""Builds the image of a compute node, as an ordinary user where this computer has one for it."""

import hashlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hpcsite.image.namespace import has_range
from hpcsite.image.packages import packages_dir
from hpcsite.paths import content_dir

pytestmark = pytest.mark.lab

HPCSITE = Path(sys.executable).with_name("hpcsite")
SITE = "vmlab"
NO_OP_SECONDS = 30
KILL_SECONDS = 300


@dataclass(frozen=True)
class Builder:
    """Who builds: words before a command, and the folder of its cache."""

    prefix: tuple[str, ...]
    cache: Path
    inventory: Path

    def argv(self, *words: str) -> list[str]:
        env = [f"HPCSITE_CACHE_DIR={self.cache}", f"HOME={self.cache}"]
        return [*self.prefix, "env", *env, str(HPCSITE), "image", *words]

    def build(self, *options: str) -> tuple[dict[str, Any], str]:
        done = subprocess.run(
            self.argv("build", str(self.inventory), "--group", "gpu", "--json", *options),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["images"][0], done.stderr


def _as(user: pwd.struct_passwd) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups")


def _ordinary() -> pwd.struct_passwd | None:
    """Find a user with subordinate ids who may read this checkout."""
    subuid = Path("/etc/subuid")
    text = subuid.read_text() if subuid.exists() else ""
    for user in pwd.getpwall():
        if user.pw_uid and has_range(text, user.pw_name, user.pw_uid):
            # By env: what setpriv itself starts may still read what only root may.
            tried = subprocess.run([*_as(user), "env", str(HPCSITE), "--version"], check=False)
            if tried.returncode == 0:
                return user
    return None


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """Give an ordinary user; root where there is none."""
    user = _ordinary() if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    prefix = _as(user) if user and os.geteuid() == 0 else ()
    # Not pytest's own folder, which other users cannot enter; on the disk rather than in memory.
    folder = Path("/var/tmp") / f"hpcsite-{os.getpid()}-{tmp_path_factory.mktemp('image').name}"
    folder.mkdir(mode=0o700)
    inventory = folder / "a site" / SITE
    ignored = shutil.ignore_patterns(".lab", "secrets")
    shutil.copytree(content_dir() / "inventory" / SITE, inventory, ignore=ignored)
    if packages_dir().is_dir():  # what earlier builds and labs left: saves downloads
        shutil.copytree(packages_dir(), folder / "debs")
    if prefix and user:
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", str(folder)], check=True)
    yield Builder(prefix, folder, inventory)
    namespace = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-auto", "--map-root-user"]
    subprocess.run([*namespace, "rm", "-rf", str(folder)], check=True)


def test_an_image_of_a_compute_node(builder: Builder) -> None:
    first, _ = builder.build()
    manifest = first["manifest"]
    packages = {each["name"]: each for each in manifest["packages"]}
    assert {"slurmd", "munge", "chrony", "rdma-core", "nfs-common", "openssh-server"} <= set(
        packages
    )
    assert packages["slurmd"]["version"]
    assert packages["slurmd"]["architecture"] in {"amd64", "arm64"}
    assert manifest["schema_version"] == 1
    assert manifest["hosts"] == ["gpu01", "gpu02"]
    assert set(manifest["features"]) >= {"slurm_compute", "rdma", "nfs_client"}
    folder = Path(first["files"][0]).parent
    for name, artifact in manifest["artifacts"].items():
        if name != "disk.qcow2":
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            assert digest == artifact["sha256"], name

    root = folder / "root"
    assert (root / "etc/machine-id").read_text() == ""
    for left in ("etc/hostname", "etc/munge/munge.key", "usr/sbin/policy-rc.d", "root/.ansible"):
        assert not os.path.lexists(root / left), left
    assert not list((root / "etc/ssh").glob("ssh_host_*"))
    assert not list((root / "var/cache/apt/archives").glob("*.deb"))
    wanted = root / "etc/systemd/system/multi-user.target.wants"
    assert not {path.name for path in wanted.iterdir()} & {"slurmd.service", "munge.service"}

    began = time.monotonic()
    second, said = builder.build()
    assert second == first
    assert "building" not in said
    assert time.monotonic() - began < NO_OP_SECONDS


def test_a_killed_build_is_never_taken_for_an_image(builder: Builder) -> None:
    before, _ = builder.build()
    argv = builder.argv("build", str(builder.inventory), "--group", "gpu", "--rebuild")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        for line in running.stderr:
            if "building the image of" in line:
                break
        time.sleep(5)
        running.kill()
        running.wait(KILL_SECONDS)
    after, said = builder.build()
    assert after["files"] == before["files"]
    assert "building" not in said
    assert not list((builder.cache / "node-images").glob(".building-*"))
