"""Bare root file systems: built once by mmdebstrap, kept in the cache, shared by all machines."""

import hashlib
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import disk, files, namespace, packages, tools
from hpcsite.image.recipe import KEYRING, Recipe
from hpcsite.paths import cache_dir

OLD_DAYS = 14
_UNUSED_DAYS = 30
_DAY_SECONDS = 86400
_BUILD_MIB = 2048
_BUILDING = ".building-"


@dataclass(frozen=True)
class Image:
    """A finished image."""

    folder: Path

    @property
    def root(self) -> Path:
        """The image's root file system; read-only by agreement."""
        return self.folder / "root"

    @property
    def users(self) -> Path:
        """One file a lab whose machines stand on this image; each holds that lab's folder."""
        return self.folder / "users"

    @property
    def age_days(self) -> int:
        """Whole days since it was built: how old its package lists are."""
        return int((time.time() - self.root.stat().st_ctime) // _DAY_SECONDS)


def images_dir() -> Path:
    """Folder of all images."""
    return cache_dir() / "images"


def ensure(recipe: Recipe, *, proxy: str, rebuild: bool, say: Callable[[str], None]) -> Image:
    """Return the image of a recipe, built if there is none or if `rebuild` is set.

    Raises:
        CouldNotRunError: it cannot be built.
    """
    with files.lock("image", say):
        _remove_garbage()
        image = None if rebuild else _newest(recipe)
        if image is None:
            image = _build(recipe, proxy, say)
        os.utime(image.folder)
        _prune(image, recipe)
        return image


def claim(image: Image, lab: Path) -> None:
    """Note that a lab's machines stand on this image, so that it is not removed."""
    image.users.mkdir(exist_ok=True)
    files.write_atomically(image.users / _user(lab), str(lab))


def release(lab: Path, *, still_used: Collection[Path] = ()) -> None:
    """Note that a lab needs no image any more but those with these roots."""
    for image in _all():
        if image.root not in still_used:
            (image.users / _user(lab)).unlink(missing_ok=True)


def _user(lab: Path) -> str:
    return hashlib.sha256(str(lab).encode()).hexdigest()[:16]


def _all() -> list[Image]:
    return [
        Image(path.parent)
        for path in sorted(images_dir().glob("*/root"))
        if not path.parent.name.startswith(_BUILDING)
    ]


def _newest(recipe: Recipe) -> Image | None:
    found = [image for image in _all() if image.folder.name.startswith(recipe.digest())]
    return found[-1] if found else None


def _build(recipe: Recipe, proxy: str, say: Callable[[str], None]) -> Image:
    tools.require(["mmdebstrap"])
    namespace.require()
    if not KEYRING.exists():
        raise CouldNotRunError(
            f"{KEYRING} is missing: Debian's packages could not be checked",
            hint="apt install debian-archive-keyring",
        )
    images_dir().mkdir(parents=True, exist_ok=True)
    packages.packages_dir().mkdir(parents=True, exist_ok=True)
    disk.require_space(images_dir(), _BUILD_MIB, "to build an image")
    say(f"building the image: Debian {recipe.release}, {recipe.architecture}")
    # The name sorts by age among images of the same recipe.
    name = f"{recipe.digest()}-{int(time.time())}"
    building = images_dir() / f"{_BUILDING}{name}"
    root = building / "root"
    building.mkdir()
    _mmdebstrap(recipe, root, proxy)
    packages.harvest(root / packages.ARCHIVES)
    namespace.run(["find", str(root / packages.ARCHIVES), "-mindepth", "1", "-delete"])
    folder = images_dir() / name
    building.rename(folder)
    return Image(folder)


def _mmdebstrap(recipe: Recipe, root: Path, proxy: str) -> None:
    # An initrd is made once, at the end of a node image's build (mkinitramfs's kernel hook).
    env = {"INITRD": "No"} | ({"http_proxy": proxy} if proxy else {})
    done = tools.attempt(recipe.command(root, packages.packages_dir()), env=env)
    if done.returncode == 0:
        return
    _remove_garbage()
    lines = [line for line in done.stderr.splitlines() if not line.startswith("I: ")]
    raise CouldNotRunError(
        "mmdebstrap could not build the image:\n" + "\n".join(lines[-15:]),
        hint=build_hint(done.stderr),
    )


def build_hint(output: str) -> str:
    """Return what to do about a failed build, by what mmdebstrap said."""
    if "No space left on device" in output:
        return f"make room on the file system of {cache_dir()}, or set HPCSITE_CACHE_DIR"
    if "NO_PUBKEY" in output or "not signed" in output:
        return (
            "apt update && apt install debian-archive-keyring: this one is too old for the release"
        )
    if "Unable to locate package" in output:
        return "a name in site_lab's `packages` is not a package of this Debian release"
    return (
        "check that this computer reaches its Debian mirror (`apt update`); behind a proxy, set "
        "Acquire::http::Proxy in /etc/apt/apt.conf.d/"
    )


def _remove_garbage() -> None:
    """Remove what killed builds left; only called under the image lock."""
    for left in images_dir().glob(f"{_BUILDING}*"):
        namespace.remove(left)


def _prune(current: Image, recipe: Recipe) -> None:
    """Remove images without a lab: older ones of this recipe at once, others after 30 days."""
    oldest = time.time() - _UNUSED_DAYS * _DAY_SECONDS
    for image in _all():
        if image == current or _in_use(image):
            continue
        replaced = image.folder.name.startswith(recipe.digest())
        if replaced or image.folder.stat().st_mtime < oldest:
            # Under another name first: a killed removal must not leave half an image.
            doomed = images_dir() / f"{_BUILDING}removed-{image.folder.name}"
            image.folder.rename(doomed)
            namespace.remove(doomed)


def _in_use(image: Image) -> bool:
    if not image.users.is_dir():
        return False
    return any(Path(user.read_text(encoding="utf-8")).is_dir() for user in image.users.iterdir())
