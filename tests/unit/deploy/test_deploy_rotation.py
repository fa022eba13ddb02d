"""When the munge key is replaced, and what becomes of secrets that no host has got."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from rich.console import Console

from hpcsite.deploy import deploy as module
from hpcsite.deploy.deploy import deploy
from hpcsite.deploy.events import Finished, HostCounts, HostEvent, PlayStarted
from hpcsite.deploy.options import Options
from hpcsite.deploy.progress import PlainProgress
from hpcsite.deploy.secrets import sha256_of
from hpcsite.errors import UsageError
from hpcsite.site.model import Site

REFUSED = HostEvent("head", "failed", "Leave the host out", None, "another munge key")

QUIET = Console(quiet=True)


class FakePlaybook:
    """Tells the events of a run that ends in the preflight, or one layer later."""

    layers: tuple[str, ...] = ()
    variables: ClassVar[dict[str, str]] = {}

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        self._on_event = options["on_event"]
        FakePlaybook.variables = options["variables"]

    def run(self) -> int:
        for layer in FakePlaybook.layers:
            self._on_event(PlayStarted(layer, "all"))
            self._on_event(HostEvent("head", "ok", "task", None))
        self._on_event(REFUSED)
        self._on_event(Finished({"head": HostCounts(ok=1, failed=1)}))
        return 2

    def stop(self) -> None:
        """A critical host is out."""


def run(site: Site, monkeypatch: pytest.MonkeyPatch, *layers: str, rotate: bool = False) -> None:
    monkeypatch.setattr(module, "Playbook", FakePlaybook)
    monkeypatch.setattr(FakePlaybook, "layers", layers)
    deploy(site, Options(rotate_munge_key=rotate), PlainProgress(QUIET, QUIET))


def test_secrets_that_no_host_has_do_not_stay(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run(site, monkeypatch, "preflight")
    assert not site.secrets_dir.exists()
    run(site, monkeypatch, "preflight", "base")
    made = sha256_of(site.secrets_dir / "munge.key")
    assert FakePlaybook.variables == {"preflight_munge_key_sha256": made}
    run(site, monkeypatch, "preflight")
    assert sha256_of(site.secrets_dir / "munge.key") == made


def test_a_rotation_that_no_host_has_is_undone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run(site, monkeypatch, "preflight", "base")
    first = sha256_of(site.secrets_dir / "munge.key")
    run(site, monkeypatch, "preflight", rotate=True)
    assert sha256_of(site.secrets_dir / "munge.key") == first
    run(site, monkeypatch, "preflight", "base", rotate=True)
    assert FakePlaybook.variables == {}
    assert sha256_of(site.secrets_dir / "munge.key") != first
    assert sha256_of(site.secrets_dir / "munge.key.old") == first


@pytest.mark.parametrize(
    ("option", "value"), [("limit", "gpu01"), ("tags", ("base",)), ("check", True)]
)
def test_a_rotation_is_of_the_whole_site(site: Site, option: str, value: object) -> None:
    options = replace(Options(rotate_munge_key=True), **{option: value})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"does not go with --{option}"):
        deploy(site, options, PlainProgress(QUIET, QUIET))
    assert not site.secrets_dir.exists()


def test_a_key_of_the_inventorys_own_is_not_hpcsites_to_replace(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = site.hosts["head"].model_copy(update={"vars": {"munge_key_file": "/k"}})
    own = site.model_copy(update={"hosts": site.hosts | {"head": head}})
    with pytest.raises(UsageError, match="of its own, /k"):
        run(own, monkeypatch, rotate=True)
    run(own, monkeypatch, "preflight", "base")
    assert FakePlaybook.variables == {}
