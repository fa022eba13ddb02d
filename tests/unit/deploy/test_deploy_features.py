"""A deploy does not begin on a site that has what this version does not set up."""

import importlib
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from hpcsite import cli
from hpcsite.deploy.features import not_applied, require_deployed_features
from hpcsite.errors import CouldNotRunError, ExitCode
from hpcsite.site.model import Host, Site, SiteKeys


def site_of(**keys: object) -> Site:
    names = {"head": ["slurm_controller"], "oss1": ["lustre_oss"], "oss2": ["lustre_oss"]}
    hosts = {
        name: Host(name=name, groups=frozenset(groups), address="10.0.0.1", vars={})
        for name, groups in names.items()
    }
    return Site(path=Path("x"), keys=SiteKeys.model_validate({"name": "x", **keys}), hosts=hosts)


def test_hosts_of_a_feature_that_is_not_set_up_are_named() -> None:
    with pytest.raises(CouldNotRunError) as caught:
        require_deployed_features(site_of())
    assert caught.value.message == ("this version of hpcsite does not set up lustre_oss: oss[1-2]")
    assert "no host was touched" in caught.value.hint


def test_a_site_without_such_hosts_is_deployed() -> None:
    site = site_of()
    head = {"head": site.hosts["head"]}
    require_deployed_features(site.model_copy(update={"hosts": head}))


def test_keys_that_no_role_applies_are_told() -> None:
    assert not_applied(site_of()) == ""
    told = not_applied(site_of(nccl={"NCCL_DEBUG": "WARN"}, software={"slurm": "24.11.5"}))
    assert told == (
        "checked, but not applied by this version: site_software (versions of the software "
        "stack), site_nccl (/etc/nccl.conf)"
    )


def test_the_command_ends_with_4_before_anything_is_touched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("hpcsite.cli.deploy")
    begun = Mock()
    monkeypatch.setattr(module, "load_site", lambda path: site_of())
    monkeypatch.setattr(module, "deploy", begun)
    monkeypatch.setattr(module, "require_key", begun)
    monkeypatch.setattr(sys, "argv", ["hpcsite", "deploy", "x"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == ExitCode.COULD_NOT_RUN
    assert "does not set up lustre_oss: oss[1-2]" in capsys.readouterr().err
    begun.assert_not_called()
