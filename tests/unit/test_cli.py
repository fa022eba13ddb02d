"""The command line: help, exit codes, where output goes, and that no traceback reaches a user."""

import errno
import importlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from hpcsite import cli
from hpcsite.errors import ExitCode
from hpcsite.paths import content_dir

LAB = content_dir() / "inventory" / "lab"
HPCSITE = Path(sys.executable).parent / "hpcsite"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["hpcsite", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_help_lists_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "-h") == ExitCode.OK
    text = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert f"  {name} " in text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_of_a_command_has_an_example(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, name, "-h") == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.strip().startswith(f"hpcsite {name}")]
    assert not [line for line in lines if "\\b" in line]


def test_help_is_quick_because_it_imports_no_command() -> None:
    code = "import sys; from hpcsite.cli import cli; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "arguments",
    [("frobnicate",), ("--frobnicate",), ("validate",), ("validate", "a", "b"), ("init",)],
)
def test_usage_mistakes_end_with_2(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert "Error: " in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_valid_site(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "validate", str(LAB)) == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        f"{LAB}: valid: 4 hosts",
        "  controller  head",
        "  login       login",
        "  node group  gpu: gpu[01-02], each 8 CPUs, 4096 MiB, 8 GPUs",
        "  partition   gpu (default): gpu[01-02], up to 1-00:00:00",
    ]
    assert shown.err == ""


def test_valid_site_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", str(LAB), "--json") == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "valid": True,
        "problems": [],
        "warnings": [],
        "acknowledged": [],
    }


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Give a folder with two files that are no YAML."""
    folder = tmp_path / "[bold]site"
    (folder / "group_vars").mkdir(parents=True)
    (folder / "hosts.yml").write_text("all:\n\thosts:\n")
    (folder / "group_vars" / "all.yml").write_text("a: [\n")
    return folder


def test_mistakes_go_to_stderr_with_hints(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", str(broken)) == ExitCode.INVALID_SITE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        f"error: {broken}/group_vars/all.yml:1: "
        "YAML: did not find expected node content [HPC1014]\n\n"
        "hint: check quotes, brackets and indentation of this line and of those before it\n\n"
        f"error: {broken}/hosts.yml:2: YAML: a tab at the beginning of the line [HPC1012]\n\n"
        "hint: YAML is indented with spaces only: replace the tab\n\n"
        "`hpcsite explain CODE` tells more\n"
    )


def test_mistakes_as_json(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", str(broken), "--json") == ExitCode.INVALID_SITE
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result["valid"] is False
    assert (result["schema"], result["warnings"], result["acknowledged"]) == (1, [], [])
    assert result["problems"][1] == {
        "code": "HPC1012",
        "severity": "error",
        "message": "YAML: a tab at the beginning of the line",
        "path": f"{broken}/hosts.yml",
        "line": 2,
        "key": "",
        "host": "",
        "hint": "YAML is indented with spaces only: replace the tab",
    }
    assert shown.err == ""


@pytest.mark.parametrize("command", ["validate", "deploy", "verify"])
@pytest.mark.parametrize("kind", ["missing", "file", "empty"])
def test_path_that_is_no_inventory_ends_with_3(
    command: str,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "site"
    if kind == "file":
        path.write_text("all:\n")
    if kind == "empty":
        path.mkdir()
    assert run(monkeypatch, command, str(path)) == ExitCode.INVALID_SITE
    shown = capsys.readouterr().err
    assert str(path) in shown
    assert "\n\nhint: " in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "state").exists()


def test_debug_shows_the_traceback_of_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = run(monkeypatch, "--debug", "validate", str(tmp_path / "none"))
    assert code == ExitCode.INVALID_SITE
    assert "Traceback" in capsys.readouterr().err


def _raise(error: BaseException) -> object:
    def load(path: Path) -> object:
        raise error

    return load


def test_bug_ends_with_70_and_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("hpcsite.cli.validate")
    monkeypatch.setattr(module, "load_site", _raise(RuntimeError("[red]boom")))
    assert run(monkeypatch, "validate", "x") == ExitCode.BUG
    shown = capsys.readouterr().err
    assert "a bug in hpcsite: RuntimeError: [red]boom" in shown
    assert "hpcsite --debug" in shown
    assert "Traceback" not in shown
    assert run(monkeypatch, "--debug", "validate", "x") == ExitCode.BUG
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("hpcsite.cli.validate")
    monkeypatch.setattr(module, "load_site", _raise(KeyboardInterrupt()))
    assert run(monkeypatch, "validate", "x") == ExitCode.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_what_this_computer_refuses_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = PermissionError(errno.EACCES, "Permission denied", "/some/file")
    monkeypatch.setattr(cli.cli, "main", Mock(side_effect=refused))
    assert run(monkeypatch, "validate", "x") == ExitCode.COULD_NOT_RUN
    shown = capsys.readouterr().err
    assert "error: /some/file: Permission denied" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("name", ["deploy", "verify"])
def test_a_user_without_a_name_is_told(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 7)
    assert run(monkeypatch, name, str(LAB)) == ExitCode.COULD_NOT_RUN
    assert "the user id 2147483641 has no name" in capsys.readouterr().err


def test_reader_that_goes_away_is_no_bug() -> None:
    command = f"{shlex.quote(str(HPCSITE))} --help | head -c 1 > /dev/null"
    done = subprocess.run(
        ["bash", "-c", f"for n in 1 2 3; do {command}; done"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def test_no_color_in_a_pipe(broken: Path) -> None:
    done = subprocess.run(
        [HPCSITE, "validate", broken], capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.INVALID_SITE
    assert "\x1b" not in done.stderr
