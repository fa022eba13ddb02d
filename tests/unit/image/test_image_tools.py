"""Missing tools are named together, with their packages."""

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.image import tools


def test_every_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "search_path", lambda: "/nonexistent")
    with pytest.raises(CouldNotRunError, match="systemd-nspawn, nft") as caught:
        tools.require(["systemd-nspawn", "nft"])
    assert caught.value.hint == "apt install nftables systemd-container"


def test_a_failure_carries_what_the_tool_said() -> None:
    with pytest.raises(CouldNotRunError, match="exit code 2") as caught:
        tools.run(["ls", "/nonexistent"], hint="look there")
    assert "/nonexistent" in caught.value.message
    assert caught.value.hint == "look there"


def test_the_administrators_folders_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin:/sbin")
    assert tools.search_path() == "/bin:/sbin:/usr/local/sbin:/usr/sbin"
