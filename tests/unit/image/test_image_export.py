"""Which keys go into an image."""

from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.image import disk, namespace, tools
from hpcsite.image.export import check_public_keys, export
from hpcsite.image.node import NodeImage

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Pz1cO3f0r2Yc5qg8nNyoyuKbYZ3gL2bH1a9Qx4k7T me@here"


@pytest.mark.parametrize(
    "text", [KEY, f"# the team\n{KEY}\n\n{KEY}\n", f'from="192.0.2.0/24" {KEY}', f"sk-{KEY}"]
)
def test_public_keys_are_taken(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    check_public_keys(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n", "a private key"),
        ("", "no public"),
        ("# nobody\n", "no public"),
        (f"{KEY}\nhello\n", "no public"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        check_public_keys(path)


def test_an_image_that_was_removed_meanwhile_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(namespace, "require", lambda: None)
    monkeypatch.setattr(tools, "require", lambda _: None)
    monkeypatch.setattr(disk, "require_space", lambda *_: None)
    with pytest.raises(CouldNotRunError, match="removed the image"):
        export(NodeImage(tmp_path / "gone"), "tar", tmp_path / "out", "gpu")
    assert list((tmp_path / "out").iterdir()) == []
