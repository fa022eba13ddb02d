"""What an image is named by, and how it is built."""

from dataclasses import replace
from pathlib import Path

import pytest

from hpcsite.image.recipe import Recipe
from hpcsite.image.roots import build_hint

RECIPE = Recipe("trixie", "amd64", ("strace",), (), ())


@pytest.mark.parametrize(
    "other",
    [
        replace(RECIPE, release="bookworm"),
        replace(RECIPE, architecture="arm64"),
        replace(RECIPE, packages=()),
        replace(RECIPE, sources=("deb https://mirror.example/debian trixie main",)),
        replace(RECIPE, apt_options=('Acquire::Check-Date "false"',)),
    ],
)
def test_whatever_changes_an_image_changes_its_digest(other: Recipe) -> None:
    assert other.digest() != RECIPE.digest()


def test_the_order_of_packages_does_not_change_the_digest() -> None:
    one, two = (replace(RECIPE, packages=names) for names in (("gdb", "strace"), ("strace", "gdb")))
    assert one.digest() == two.digest()


def test_the_command_ends_with_its_parent_and_names_everything() -> None:
    recipe = replace(
        RECIPE, sources=("deb https://mirror.example/debian trixie main",), apt_options=("A::B 1",)
    )
    argv = recipe.command(Path("/c/images/x/root"), Path("/c/de bs"))
    assert argv[:3] == ["setpriv", "--pdeathsig", "KILL"]
    assert "--kill-child" in argv[: argv.index("mmdebstrap")]
    assert argv[-3:] == ["trixie", "/c/images/x/root", *recipe.sources]
    assert "--aptopt=A::B 1" in argv
    include = next(part for part in argv if part.startswith("--include="))
    assert {"strace", "openssh-server", "python3-apt"} <= set(include[10:].split(","))
    assert any("'/c/de bs'" in part for part in argv if part.startswith("--setup-hook="))


def test_a_bare_machine_has_nothing_of_what_roles_install() -> None:
    include = next(p for p in RECIPE.command(Path("/r"), Path("/d")) if p.startswith("--include="))
    for name in ("slurm", "munge", "chrony", "mpi", "mariadb"):
        assert name not in include


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("tar: write error: No space left on device", "HPCSITE_CACHE_DIR"),
        ("W: GPG error: NO_PUBKEY 6ED0E7B82643E131", "debian-archive-keyring"),
        ("E: Unable to locate package stracee", "`packages`"),
        ("E: Could not connect to mirror.example:80", "Acquire::http::Proxy"),
    ],
)
def test_a_failed_build_says_what_to_do(output: str, hint: str) -> None:
    assert hint in build_hint(output)
