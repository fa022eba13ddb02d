"""An ordinary user is told what is missing to be root of an image."""

import os
import subprocess
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.image import namespace, tools


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Path, Path]:
    files = (tmp_path / "subuid", tmp_path / "subgid")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(namespace, "_SUBORDINATE", files)
    monkeypatch.setattr(tools, "require", lambda _: None)
    return files


def test_root_needs_no_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--user" not in namespace.command()
    assert namespace.command()[:3] == ["setpriv", "--pdeathsig", "KILL"]


def test_an_ordinary_user_is_mapped_to_root(ordinary: tuple[Path, Path]) -> None:
    words = namespace.command()
    assert {"--user", "--map-auto", "--map-root-user", "--kill-child"} <= set(words)


def test_numbers_that_are_missing_are_named(ordinary: tuple[Path, Path]) -> None:
    with pytest.raises(CouldNotRunError, match="subuid gives") as caught:
        namespace.require()
    assert "usermod --add-subuids" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("unshare: unrecognized option '--map-auto'", "util-linux 2.38"),
        ("unshare: unshare failed: Operation not permitted", "unprivileged_userns_clone"),
    ],
)
def test_a_kernel_that_refuses_is_explained(
    ordinary: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, said: str, hint: str
) -> None:
    for path in ordinary:
        path.write_text("0:100000:65536\n")
    monkeypatch.setattr(namespace, "_RESTRICTED", Path("/nonexistent"))
    monkeypatch.setattr(
        tools, "attempt", lambda argv: subprocess.CompletedProcess(argv, 1, "", said)
    )
    monkeypatch.setattr(os, "getuid", lambda: 0)
    with pytest.raises(CouldNotRunError) as caught:
        namespace.require()
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "enough"),
    [
        ("alice:100000:65536", True),
        ("# a comment\n1000:100000:70000\n", True),
        ("bob:100000:65536", False),
        ("alice:100000:1000", False),
        ("alice:100000", False),
        ("", False),
    ],
)
def test_ranges(text: str, enough: bool) -> None:
    assert namespace.has_range(text, "alice", 1000) is enough
