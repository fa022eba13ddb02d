"""`hpcsite init`: what it writes is valid, and nothing of a user's is overwritten."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from hpcsite import cli
from hpcsite.errors import ExitCode, InvalidSiteError
from hpcsite.paths import content_dir
from hpcsite.site.load import load_site

REAL = (
    *("--head", "head=10.0.0.10", "--login", "login=10.0.0.11", "--nodes", "gpu[01-04]"),
    *("--first-address", "10.0.0.254", "--gpus", "8"),
)


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hpcsite", "init", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_starter_is_valid_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "My Site"
    assert init(monkeypatch, str(folder), *REAL) == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.out == f"{folder}\n"
    assert f"hpcsite validate {folder}" in shown.err
    site = load_site(folder)
    assert site.name == "my-site"
    assert {host.name: host.address for host in site.hosts.values()} == {
        "head": "10.0.0.10",
        "login": "10.0.0.11",
        "gpu01": "10.0.0.254",
        "gpu02": "10.0.0.255",
        "gpu03": "10.0.1.0",
        "gpu04": "10.0.1.1",
    }
    group = site.keys.node_groups["gpu"]
    assert group.gpus is not None
    assert group.gpus.count == 8
    assert site.keys.partitions[0].default
    assert site.keys.verify_user == "hpctest"
    assert "/secrets/" in (folder / ".gitignore").read_text()


def test_starter_without_machines_says_what_to_fill_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "site"
    assert init(monkeypatch, str(folder)) == ExitCode.OK
    assert f"put your machines into {folder}/hosts.yml" in capsys.readouterr().err
    with pytest.raises(InvalidSiteError) as caught:
        load_site(folder)
    assert len(caught.value.problems) == 3
    assert all("kept for examples" in problem.message for problem in caught.value.problems)


def test_comments_in_the_starter_are_valid_keys_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    assert init(monkeypatch, str(folder), "--head", "head=10.0.0.10") == ExitCode.OK
    hosts = folder / "hosts.yml"
    hosts.write_text(hosts.read_text().replace("192.0.2.2", "10.0.0.2"))
    for path in [hosts, *(folder / "group_vars" / "all").iterdir()]:
        # A comment that is a key or a list item is there to take the # away from.
        text = re.sub(r"(?m)^( *)# ( *(?:\w+:( .*)?|- \S.*))$", r"\1\2", path.read_text())
        path.write_text(text)
    slurm = yaml.safe_load((folder / "group_vars/all/slurm.yml").read_text())
    assert slurm["site_node_groups"]["node"]["hardware"]["sockets"] == 2
    with pytest.raises(InvalidSiteError) as caught:
        load_site(folder)
    # One key is a picture of a key.
    assert [problem.message for problem in caught.value.problems] == [
        "this is no public key of hpctest",
    ]


def test_sample_login_node_has_an_address_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    nodes = ("--nodes", "n[1-3]", "--first-address", "10.0.0.11")
    assert init(monkeypatch, str(folder), "--head", "head=10.0.0.10", *nodes) == ExitCode.OK
    assert "#       ansible_host: 10.0.0.9\n" in (folder / "hosts.yml").read_text()


@pytest.mark.parametrize("command", ["deploy", "verify"])
def test_missing_ssh_key_is_told_before_anything_runs(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "site"
    assert init(monkeypatch, str(folder), *REAL) == ExitCode.OK
    connection = folder / "group_vars/all/connection.yml"
    connection.write_text(connection.read_text() + "ansible_ssh_private_key_file: /no/key\n")
    load_site(folder)
    monkeypatch.setattr(sys, "argv", ["hpcsite", command, str(folder)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == ExitCode.COULD_NOT_RUN
    assert "the ssh key /no/key cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_lab_is_copied_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "deep" / "lab"
    assert init(monkeypatch, str(folder), "--lab") == ExitCode.OK
    lab = content_dir() / "inventory" / "lab"
    assert load_site(folder).keys == load_site(lab).keys
    assert not (folder / ".lab").exists()
    assert not (folder / "secrets").exists()


@pytest.mark.parametrize("kind", ["file", "full", "link"])
def test_nothing_is_overwritten(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "site"
    if kind == "full":
        folder.mkdir()
        (folder / "mine").write_text("x")
    elif kind == "file":
        folder.write_text("x")
    else:
        folder.symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    assert init(monkeypatch, str(folder), *REAL) == ExitCode.USAGE
    assert "hint: " in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_empty_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    assert init(monkeypatch, str(folder), *REAL) == ExitCode.OK
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--name", "My Site"), "cannot be a site's name"),
        (("--head", "head"), "--head: '' is no IPv4 address"),
        (("--head", "head.example=10.0.0.1"), "is no short host name"),
        (("--head", "head=10.0.0.256"), "is no IPv4 address"),
        (("--head", "head=fd00::1"), "is no IPv4 address"),
        (("--nodes", "gpu[01-04]"), "go together"),
        (("--first-address", "10.0.0.1"), "go together"),
        (("--nodes", "gpu[01-", "--first-address", "10.0.0.1"), "--nodes: "),
        (("--nodes", "g[1-99999]", "--first-address", "10.0.0.1"), "99999 nodes"),
        (("--nodes", "a_b", "--first-address", "10.0.0.1"), "is no short host name"),
        (("--nodes", "g[1-3]", "--first-address", "255.255.255.254"), "do not follow"),
        (
            ("--head", "g1=10.0.0.1", "--nodes", "g[1-3]", "--first-address", "10.0.0.2"),
            "same name",
        ),
        (
            ("--head", "h=10.0.0.3", "--nodes", "g[1-3]", "--first-address", "10.0.0.2"),
            "same address",
        ),
        (("--gpus", "65"), "65"),
        (("--lab", "--name", "x"), "--lab takes no other option"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert init(monkeypatch, str(tmp_path / "site"), *arguments) == ExitCode.USAGE
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("nodes", "group"),
    [
        ("gpu[01-02]", "gpu"),
        ("rack1-node[1-2]", "rack1_node"),
        ("n1,m1", "compute"),
        ("gpu", "compute"),
    ],
)
def test_node_group_is_named_after_the_nodes(
    nodes: str, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    head = ("--head", "head=10.0.0.10")
    code = init(monkeypatch, str(folder), *head, "--nodes", nodes, "--first-address", "10.0.0.21")
    assert code == ExitCode.OK
    keys = yaml.safe_load((folder / "group_vars/all/slurm.yml").read_text())
    assert list(keys["site_node_groups"]) == [group]


def test_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    code = init(monkeypatch, str(tmp_path / "file" / "site"), *REAL)
    assert code == ExitCode.COULD_NOT_RUN
    assert "cannot write" in capsys.readouterr().err
