"""`hpcsite image`: images of nodes with all their packages."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from hpcsite.cli import console
from hpcsite.errors import UsageError
from hpcsite.image import manifest, node
from hpcsite.image.export import DISK_GIB, FORMATS, Export, Format, check_public_keys, export
from hpcsite.image.node import RELEASES, NodeImage
from hpcsite.site.load import load_site
from hpcsite.site.model import Host, Site
from hpcsite.site.names import did_you_mean, fold

_MIB = 1 << 20
_SHORT = 8


@click.group()
def command() -> None:
    """Build images of nodes: Debian, a kernel, and all packages that the site's roles install.

    A deploy on machines that boot such an image installs nothing. Nothing of a site's
    configuration and no secret is in an image. Needs no root, where the user has
    subordinate ids (/etc/subuid).

    \b
    Examples:
      hpcsite image build inventory/vmlab
      hpcsite image build inventory/vmlab --group gpu --format tar --output images/
      hpcsite image list
    """


@command.command()
@click.argument("inventory", type=click.Path(path_type=Path), metavar="INVENTORY")
@click.option("--group", metavar="GROUP", help="Only for the hosts of this group; default: all.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="qcow2",
    show_default=True,
    help="qcow2: a virtual machine's disk, without a boot loader; raw: a whole disk that UEFI "
    "boots; tar: the root file system, compressed by zstd.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the image, its kernel, initrd and manifest. Without it, qcow2 stays in the "
    "cache, for the lab; raw and tar come into the current folder.",
)
@click.option(
    "--ssh-key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with public keys of those who may log in as root.",
)
@click.option(
    "--disk-size",
    "disk_gib",
    type=click.IntRange(4, 65536),
    metavar="GIB",
    help=f"Size of a raw or qcow2 disk that is written out; default: {DISK_GIB}.",
)
@click.option(
    "--release",
    type=click.Choice(RELEASES),
    help=f"Debian release; default: that of site_lab, else {RELEASES[0]}.",
)
@click.option("--rebuild", is_flag=True, help="Build anew, with today's packages.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifests as one JSON object.")
def build(
    *,
    inventory: Path,
    group: str | None,
    form: Format,
    output: Path | None,
    ssh_key: Path | None,
    disk_gib: int | None,
    release: str | None,
    rebuild: bool,
    as_json: bool,
) -> None:
    """Build the images that a group's hosts need; one that is there is not built again.

    Hosts with the same features share an image.

    \b
    Examples:
      hpcsite image build inventory/vmlab --group gpu
      hpcsite image build inventory/vmlab --group gpu --format raw --ssh-key ~/.ssh/id_ed25519.pub
    """
    began = time.monotonic()
    site = load_site(inventory)
    console.print_warnings(site.warnings)
    hosts = _hosts(site, group)
    cached = form == "qcow2" and output is None
    if ssh_key:
        check_public_keys(ssh_key)
    if cached and (ssh_key or disk_gib):
        raise UsageError(
            "--ssh-key and --disk-size do not apply to images in the cache, which labs share",
            hint="give a folder for one of its own: --output DIR",
        )
    found = node.ensure_each(site, hosts, release=release, rebuild=rebuild, say=console.say)
    images = {image.folder: image for image in found.values()}
    if cached:
        _report([_cached(image) for image in images.values()], as_json=as_json)
    else:
        folder = output or Path()
        written = []
        for image in images.values():
            members = [name for name, other in found.items() if other == image]
            name = _name(site, group, members[0], several=len(images) > 1)
            console.say(f"writing {name}: {form}")
            written.append(
                export(image, form, folder, name, ssh_key=ssh_key, disk_gib=disk_gib or DISK_GIB)
            )
        _report(written, as_json=as_json)
    console.say(f"{fold(found)}: done ({time.monotonic() - began:.1f} s)")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(*, as_json: bool) -> None:
    """Show the images in the cache, and whether a lab stands on them.

    \b
    Example:
      hpcsite image list
    """
    images = [(image, manifest.read(image.manifest)) for image in node.all_images()]
    if as_json:
        entries = [
            {
                "folder": str(image.folder),
                "in_use": image.in_use,
                **found.model_dump(mode="json", exclude={"schema_version"}),
            }
            for image, found in images
        ]
        click.echo(json.dumps({"schema_version": 1, "images": entries}, indent=2))
        return
    if not images:
        console.say("no images; hpcsite image build INVENTORY makes some")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("image", "hosts", "release", "kernel", "built", "lab"):
        table.add_column(title, overflow="fold")
    for image, found in images:
        table.add_row(
            image.folder.name[:_SHORT],
            fold(found.hosts),
            found.release,
            found.kernel,
            found.built[:16].replace("T", " "),
            "yes" if image.in_use else "no",
        )
    console.stdout().print(table)


@command.command()
def prune() -> None:
    """Remove the images in the cache on which no lab stands; they can be built again.

    \b
    Example:
      hpcsite image prune
    """
    removed = node.prune(console.say)
    for image in removed:
        console.say(f"removed {image.folder}")
    console.say(f"{len(removed)} images removed")


def _hosts(site: Site, group: str | None) -> Sequence[Host]:
    if group is None:
        return list(site.hosts.values())
    hosts = site.in_group(group)
    if not hosts:
        groups = sorted({name for host in site.hosts.values() for name in host.groups})
        raise UsageError(
            f"{site.path} has no host in a group {group}",
            hint=did_you_mean(group, groups, f"its groups: {', '.join(groups)}"),
        )
    return hosts


def _name(site: Site, group: str | None, first: str, *, several: bool) -> str:
    """Return the name of an image's files: the site's, the group's, and a host's if need be."""
    parts = [site.name, *([group] if group else []), *([first] if several or not group else [])]
    return "-".join(parts)


def _cached(image: NodeImage) -> Export:
    paths = (image.disk, image.kernel, image.full_initrd, image.manifest)
    return Export(image.folder.name, paths, manifest.read(image.manifest))


def _report(written: Sequence[Export], *, as_json: bool) -> None:
    if as_json:
        entries = [
            {
                "name": each.name,
                "files": [str(path) for path in each.files],
                "manifest": each.manifest.model_dump(mode="json"),
            }
            for each in written
        ]
        click.echo(json.dumps({"schema_version": 1, "images": entries}, indent=2))
        return
    out = console.stdout()
    for each in written:
        found = each.manifest
        out.print(
            f"{fold(found.hosts)}: {', '.join(found.features)}\n"
            f"  Debian {found.release}, kernel {found.kernel}, {len(found.packages)} packages, "
            f"built {found.built}"
        )
        for path in each.files:
            size = path.stat().st_size / _MIB
            shown = f"  ({size:.0f} MiB)" if size >= 1 else ""
            out.print(f"  {path}{shown}", markup=False)
