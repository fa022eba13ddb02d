"""Builds node images: a copy of a bare root, the roles' install stage in it, what boots it."""

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import disk, manifest, namespace, packages, roots, tools
from hpcsite.image.install import install
from hpcsite.image.kinds import STEPS, Kind, daemons
from hpcsite.image.recipe import Recipe
from hpcsite.paths import cache_dir
from hpcsite.site.model import Site

_TOOLS = ("mke2fs", "mmdebstrap", "qemu-img", "ssh", "ssh-keygen")
_IMAGE_MIB = 4096
# Of the lab's disks; sparse on both sides, so that only what is used takes room.
_DISK_SIZE = "16G"
_AT_ONCE = 2


@dataclass(frozen=True)
class Job:
    """One image to build."""

    kind: Kind
    hosts: tuple[str, ...]
    building: Path
    folder: Path

    @property
    def root(self) -> Path:
        """The image's root file system while it is built."""
        return self.building / "root"


def build(
    site: Site,
    recipe: Recipe,
    jobs: Sequence[Job],
    *,
    proxy: str,
    rebuild: bool,
    say: Callable[[str], None],
) -> None:
    """Build images; each appears in its folder when it is complete.

    Raises:
        CouldNotRunError: one cannot be built; none of them appears then.
    """
    tools.require(_TOOLS)
    namespace.require()
    disk.require_space(cache_dir(), _IMAGE_MIB * len(jobs), "to build node images")
    base = roots.ensure(recipe, proxy=proxy, rebuild=rebuild, say=say)
    if base.age_days > roots.OLD_DAYS:
        say(f"the bare root is {base.age_days} days old: making it anew")
        base = roots.ensure(recipe, proxy=proxy, rebuild=True, say=say)
    work = jobs[0].building.with_name(f"{jobs[0].building.name}.work")
    try:
        work.mkdir(parents=True, mode=0o700)
        for job in jobs:
            say(f"building the image of {manifest.names(job.hosts)}: {job.kind.name}")
        _each(jobs, lambda job: _copy(base.root, job))
        say("installing the roles' packages")
        log = cache_dir() / "image-install.log"
        install(site, {job.hosts[0]: job.root for job in jobs}, work, proxy=proxy, log=log)
        say("making initrds and disks")
        _each(jobs, lambda job: _finish(recipe, job))
    except BaseException:
        for job in jobs:
            if job.building.exists():
                namespace.remove(job.building)
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for job in jobs:
        job.building.rename(job.folder)


def _copy(base: Path, job: Job) -> None:
    job.building.mkdir(parents=True)
    cached = packages.packages_dir()
    cached.mkdir(parents=True, exist_ok=True)
    namespace.run(["sh", str(STEPS / "copy.sh"), str(base), str(job.root), str(cached)])


def _finish(recipe: Recipe, job: Job) -> None:
    packages.harvest(job.root / packages.ARCHIVES)
    argv = ["sh", str(STEPS / "finish.sh"), str(job.root), str(job.building), *daemons()]
    namespace.run(argv)
    disk_file = job.building / "disk.qcow2"
    namespace.run(["sh", str(STEPS / "disk.sh"), str(job.root), "", str(disk_file), _DISK_SIZE])
    manifest.write(recipe, job.kind, job.hosts, job.building, built=time.time())


def _each(jobs: Iterable[Job], action: Callable[[Job], None]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for future in [pool.submit(action, job) for job in jobs]:
            try:
                future.result()
            except CouldNotRunError:
                pool.shutdown(cancel_futures=True)
                raise
