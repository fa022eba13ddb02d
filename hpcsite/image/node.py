"""Node images: what boots as a host of a site on which a deploy installs nothing.

They lie in the cache, one folder an image. Hosts of one kind share an image.
"""

import hashlib
import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.image import aptconf, build, disk, files, namespace
from hpcsite.image.kinds import STEPS, Kind, by_kind
from hpcsite.image.recipe import Recipe
from hpcsite.paths import cache_dir
from hpcsite.site.model import Host, Site

Say = Callable[[str], None]

RELEASES = ("trixie", "bookworm")
# Besides what a bare root has. Not the cloud kernel: it lacks rdma_rxe. systemd-boot-efi has the
# boot loader of raw disks.
PACKAGES = (
    "initramfs-tools",
    "linux-image-{architecture}",
    "systemd-boot-efi",
    "systemd-resolved",
    "zstd",
)
# What makes a bare root bootable: the first is run, the others are what it puts into an initrd.
SCRIPTS = ("customize.sh", "machine-hook.sh", "cp-hook.sh")
OLD_DAYS = 30
_UNUSED_DAYS = 30
_DAY_SECONDS = 86400
_BUILDING = ".building-"
# Python's name of a machine type → Debian's, where Debian boots by UEFI.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class NodeImage:
    """A finished image."""

    folder: Path

    @property
    def root(self) -> Path:
        """The root file system as a folder; read-only by agreement."""
        return self.folder / "root"

    @property
    def disk(self) -> Path:
        """The root file system as a qcow2 file: ext4, without partitions."""
        return self.folder / "disk.qcow2"

    @property
    def kernel(self) -> Path:
        """The image's kernel."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """The initrd for virtual machines of the lab."""
        return self.folder / "initrd"

    @property
    def full_initrd(self) -> Path:
        """The initrd for any hardware, as it is in the image's own /boot."""
        return self.folder / "initrd-full"

    @property
    def manifest(self) -> Path:
        """What the image holds, as JSON."""
        return self.folder / "manifest.json"

    @property
    def users(self) -> Path:
        """One file a lab whose machines stand on this image; each holds that lab's folder."""
        return self.folder / "users"

    @property
    def in_use(self) -> bool:
        """Whether a lab's machines stand on it."""
        labs = self.users.iterdir() if self.users.is_dir() else ()
        return any(_stands(lab) for lab in labs)

    @property
    def age_days(self) -> int:
        """Whole days since it was built: how old its packages are."""
        return int((time.time() - self.manifest.stat().st_mtime) // _DAY_SECONDS)


def images_dir() -> Path:
    """Folder of all node images."""
    return cache_dir() / "node-images"


def ensure(site: Site, hosts: Sequence[Host], *, rebuild: bool = False, say: Say) -> NodeImage:
    """Return the one image of hosts that are all of one kind; see `ensure_each`.

    Raises:
        UsageError: they are of several kinds.
    """
    kinds = by_kind(site, hosts)
    if len(kinds) != 1:
        raise UsageError(f"these hosts need {len(kinds)} images, not one")
    return ensure_each(site, hosts, rebuild=rebuild, say=say)[hosts[0].name]


def ensure_each(
    site: Site,
    hosts: Sequence[Host],
    *,
    release: str | None = None,
    rebuild: bool = False,
    lab: Path | None = None,
    say: Say,
) -> dict[str, NodeImage]:
    """Return the image of each host by its name; what is missing is built, all at once.

    They are claimed for a lab, if one is named, before another command could remove them.

    Raises:
        CouldNotRunError: one cannot be built.
    """
    apt = aptconf.read_host_apt()
    recipe = _recipe(site, apt, release)
    kinds = by_kind(site, hosts)
    with files.lock("node-image", say), disk.disk_errors():
        _remove_garbage()
        found = {} if rebuild else {kind: newest(kind.digest(recipe)) for kind in kinds}
        missing = [kind for kind in kinds if found.get(kind) is None]
        if missing:
            jobs = [_job(kind, kinds[kind], recipe) for kind in missing]
            build.build(site, recipe, jobs, proxy=apt.proxy, rebuild=rebuild, say=say)
        images = {kind: _present(kind.digest(recipe)) for kind in kinds}
        for image in images.values():
            os.utime(image.folder)
            if lab:
                claim(image, lab)
        _mention_age(images.values(), say)
        _prune(images, recipe)
    return {host.name: images[kind] for kind, members in kinds.items() for host in members}


def claim(image: NodeImage, lab: Path) -> None:
    """Note that a lab's machines stand on this image, so that it is not removed."""
    image.users.mkdir(exist_ok=True)
    files.write_atomically(image.users / _user(lab), str(lab))


def release(lab: Path, *, still_used: Collection[Path] = ()) -> None:
    """Note that a lab needs no image any more but those in these folders."""
    for image in all_images():
        if image.folder not in still_used:
            (image.users / _user(lab)).unlink(missing_ok=True)


def all_images() -> list[NodeImage]:
    """Return every finished image, sorted by name: by content, then by age."""
    return [
        NodeImage(path.parent)
        for path in sorted(images_dir().glob("*/manifest.json"))
        if not path.parent.name.startswith(_BUILDING)
    ]


def prune(say: Say) -> list[NodeImage]:
    """Remove every image on which no lab stands; returns them.

    Raises:
        CouldNotRunError: another command works on images for too long.
    """
    with files.lock("node-image", say), disk.disk_errors():
        _remove_garbage()
        removed = [image for image in all_images() if not image.in_use]
        for image in removed:
            _remove(image)
        return removed


def newest(digest: str) -> NodeImage | None:
    """Return the newest image with this content, or None."""
    found = [image for image in all_images() if image.folder.name.startswith(f"{digest}-")]
    return found[-1] if found else None


def _present(digest: str) -> NodeImage:
    image = newest(digest)
    assert image is not None  # noqa: S101 - found or just built, under the lock
    return image


def _mention_age(images: Iterable[NodeImage], say: Say) -> None:
    oldest = max(image.age_days for image in images)
    if oldest > OLD_DAYS:
        say(f"the packages of these images are {oldest} days old; --rebuild takes today's")


def _recipe(site: Site, apt: aptconf.HostApt, wanted: str | None) -> Recipe:
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        raise CouldNotRunError(f"no node images for this computer's type, {platform.machine()}")
    lab = site.keys.lab
    chosen = wanted or (lab.release if lab else RELEASES[0])
    extra = lab.packages if lab else ()
    return Recipe(
        release=chosen,
        architecture=architecture,
        packages=(*(name.format(architecture=architecture) for name in PACKAGES), *extra),
        sources=apt.sources(chosen),
        apt_options=apt.options,
        scripts=tuple(STEPS / name for name in SCRIPTS),
    )


def _job(kind: Kind, hosts: Sequence[Host], recipe: Recipe) -> build.Job:
    name = f"{kind.digest(recipe)}-{int(time.time())}"
    return build.Job(
        kind=kind,
        hosts=tuple(host.name for host in hosts),
        building=images_dir() / f"{_BUILDING}{name}",
        folder=images_dir() / name,
    )


def _stands(note: Path) -> bool:
    """Tell whether the lab of a note is there; a lab that goes takes its note away."""
    try:
        return Path(note.read_text(encoding="utf-8")).is_dir()
    except FileNotFoundError:
        return False


def _user(lab: Path) -> str:
    return hashlib.sha256(str(lab).encode()).hexdigest()[:16]


def _remove_garbage() -> None:
    """Remove what killed builds left; only called under the lock."""
    for left in images_dir().glob(f"{_BUILDING}*"):
        namespace.remove(left)


def _prune(current: dict[Kind, NodeImage], recipe: Recipe) -> None:
    """Remove images without a lab: older ones of the same content at once, others in 30 days."""
    oldest = time.time() - _UNUSED_DAYS * _DAY_SECONDS
    digests = tuple(f"{kind.digest(recipe)}-" for kind in current)
    for image in all_images():
        if image in current.values() or image.in_use:
            continue
        if image.folder.name.startswith(digests) or image.folder.stat().st_mtime < oldest:
            _remove(image)


def _remove(image: NodeImage) -> None:
    # Under another name first: a killed removal must not leave half an image.
    doomed = images_dir() / f"{_BUILDING}removed-{image.folder.name}"
    image.folder.rename(doomed)
    namespace.remove(doomed)
