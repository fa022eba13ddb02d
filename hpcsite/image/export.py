"""Writes a node image as files that a site's own provisioning takes."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.image import disk, files, manifest, namespace, tools
from hpcsite.image.kinds import STEPS
from hpcsite.image.node import NodeImage

Format = Literal["qcow2", "raw", "tar"]
FORMATS: tuple[Format, ...] = get_args(Format)
DISK_GIB = 16
_SUFFIX = {"qcow2": ".qcow2", "raw": ".raw", "tar": ".tar.zst"}
_TOOLS = {
    "qcow2": ("mke2fs", "qemu-img"),
    "raw": ("mcopy", "mkfs.vfat", "mke2fs", "sfdisk"),
    "tar": ("tar", "zstd"),
}
_EXPORT_MIB = 6144
_KEY = re.compile(r"^(\S.*\s)?(ssh|ecdsa|sk-)[\w@.-]+ [A-Za-z0-9+/=]{40,}")


@dataclass(frozen=True)
class Export:
    """What was written for one image."""

    name: str
    files: tuple[Path, ...]  # the image first, its manifest last
    manifest: manifest.Manifest


def export(
    image: NodeImage,
    form: Format,
    folder: Path,
    name: str,
    *,
    ssh_key: Path | None = None,
    disk_gib: int = DISK_GIB,
) -> Export:
    """Write an image, its kernel, initrd and manifest into a folder, as `name` and a suffix.

    Each file appears when it is complete, the manifest last.

    Raises:
        UsageError: `ssh_key` holds no public keys.
        CouldNotRunError: a tool is missing or fails, there is no room, or the image is gone.
    """
    tools.require(_TOOLS[form])
    namespace.require()
    if ssh_key:
        check_public_keys(ssh_key)
    folder.mkdir(parents=True, exist_ok=True)
    disk.require_space(folder, _EXPORT_MIB, "to write an image")
    target = folder / f"{name}{_SUFFIX[form]}"
    part = folder / f".{target.name}.part"
    size = {"qcow2": [f"{disk_gib}G"], "raw": [str(disk_gib * 1024)], "tar": []}[form]
    script = STEPS / {"qcow2": "disk.sh", "raw": "raw.sh", "tar": "tar.sh"}[form]
    key = str(ssh_key.resolve()) if ssh_key else ""
    # No other command removes the image meanwhile.
    with files.lock("node-image"):
        if not image.manifest.is_file():
            raise CouldNotRunError(
                "another command has just removed the image", hint="run the same command again"
            )
        try:
            namespace.run(["sh", str(script), str(image.root), key, str(part), *size])
            part.replace(target)
        finally:
            for left in folder.glob(f"{part.name}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        others = {"vmlinuz": image.kernel, "initrd": image.full_initrd}
        written = [target]
        for suffix, source in others.items():
            written.append(folder / f"{name}.{suffix}")
            shutil.copyfile(source, part)
            part.replace(written[-1])
        found = manifest.read(image.manifest)
    found = found.model_copy(
        update={"artifacts": {path.name: manifest.artifact(path) for path in written}}
    )
    written.append(folder / f"{name}.manifest.json")
    part.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
    part.replace(written[-1])
    return Export(name, tuple(written), found)


def check_public_keys(path: Path) -> None:
    """Check that a file holds public ssh keys, and nothing private.

    Raises:
        UsageError: it does not.
        CouldNotRunError: it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise CouldNotRunError(f"{path}: {error.strerror}") from error
    keys = [line for line in lines if line.strip() and not line.startswith("#")]
    if keys and all(_KEY.match(line) for line in keys):
        return
    private = any("PRIVATE KEY" in line for line in lines)
    raise UsageError(
        f"{path} holds {'a private key' if private else 'no public ssh keys'}",
        hint=f"give the public half: {path}.pub"
        if private
        else "one key a line: ssh-ed25519 AAAA…",
    )
