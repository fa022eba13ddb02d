"""Which node images are kept, and that a half-built one is never taken for one."""

import contextlib
import os
import platform
import shutil
import time
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from hpcsite.errors import UsageError
from hpcsite.image import aptconf, build, namespace, node
from hpcsite.image.aptconf import HostApt
from hpcsite.image.build import Job
from hpcsite.image.node import NodeImage
from hpcsite.site.model import Host, Site, SiteKeys

NODES = tuple(
    Host(name=name, groups=frozenset({group}), address="192.0.2.1", vars={})
    for name, group in (("head", "slurm_controller"), ("gpu01", "rdma"), ("gpu02", "rdma"))
)
SITE = Site(path=Path("/s"), keys=SiteKeys(name="s"), hosts={each.name: each for each in NODES})
built: list[str] = []


@pytest.fixture(autouse=True)
def fake_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(aptconf, "read_host_apt", HostApt)
    monkeypatch.setattr(namespace, "remove", shutil.rmtree)
    monkeypatch.setattr(build, "build", make)
    built.clear()


def make(_site: Site, _recipe: object, jobs: list[Job], **_options: object) -> None:
    for job in jobs:
        built.extend(job.hosts)
        job.folder.mkdir(parents=True)
        (job.folder / "manifest.json").write_text("{}")


def ensure(*, rebuild: bool = False) -> dict[str, NodeImage]:
    return node.ensure_each(SITE, NODES, rebuild=rebuild, say=lambda _: None)


def test_alike_hosts_share_an_image_that_is_built_once() -> None:
    first = ensure()
    assert built == ["head", "gpu01", "gpu02"]
    assert first["gpu01"] == first["gpu02"] != first["head"]
    assert ensure() == first
    assert built == ["head", "gpu01", "gpu02"]


def test_one_image_for_different_hosts_is_refused() -> None:
    with pytest.raises(UsageError, match="2 images"):
        node.ensure(SITE, NODES, say=lambda _: None)
    assert node.ensure(SITE, NODES[1:], say=lambda _: None).folder.exists()


def test_a_killed_build_is_garbage_and_no_image() -> None:
    half = node.images_dir() / ".building-x-1"
    half.mkdir(parents=True)
    (half / "manifest.json").write_text("{}")
    assert node.all_images() == []
    ensure()
    assert not half.exists()


def test_a_replaced_image_stays_while_a_lab_stands_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    old = ensure()
    node.claim(old["head"], lab)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 10)
    new = ensure(rebuild=True)
    assert new["head"] != old["head"]
    assert old["head"].in_use
    assert old["head"].folder.exists()
    assert not old["gpu01"].folder.exists()
    removed = node.prune(lambda _: None)
    assert set(removed) == {new["head"], new["gpu01"]}
    node.release(lab)
    assert node.prune(lambda _: None) == [old["head"]]


def test_images_are_claimed_before_another_command_could_remove_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    real = node.claim

    def claim(image: NodeImage, lab: Path) -> None:
        lock = FileLock(tmp_path / "cache/locks/node-image.lock")
        with contextlib.suppress(Timeout), lock.acquire(blocking=False):
            held.append(False)
        real(image, lab)

    monkeypatch.setattr(node, "claim", claim)
    images = node.ensure_each(SITE, NODES, lab=tmp_path, say=lambda _: None)
    assert held == []
    assert all(image.in_use for image in images.values())


def test_the_note_of_a_lab_that_goes_meanwhile_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = ensure()["head"]
    node.claim(image, tmp_path)
    notes = list(image.users.iterdir())
    node.release(tmp_path)
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(notes))
    assert not image.in_use


def test_an_image_of_another_content_goes_when_long_unused() -> None:
    other = node.images_dir() / "0123456789abcdef-1"
    other.mkdir(parents=True)
    (other / "manifest.json").write_text("{}")
    ensure()
    assert other.exists()
    long_ago = time.time() - 40 * 86400
    os.utime(other, (long_ago, long_ago))
    ensure()
    assert not other.exists()


def test_old_packages_are_mentioned() -> None:
    image = ensure()["head"]
    long_ago = time.time() - 40 * 86400
    os.utime(image.manifest, (long_ago, long_ago))
    said: list[str] = []
    node.ensure_each(SITE, NODES, say=said.append)
    assert said == ["the packages of these images are 40 days old; --rebuild takes today's"]
