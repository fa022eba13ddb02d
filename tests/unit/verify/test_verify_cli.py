import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpcsite.cli import report as report_command
from hpcsite.cli import verify as verify_command
from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.verify import store
from hpcsite.verify.results import Result, Run, Status
from tests.unit.verify.fakeslurm import make_site
from tests.unit.verify.test_verify_results import run_of


def test_an_inventory_is_told_from_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mysite").mkdir()
    (tmp_path / "slurm").mkdir()
    assert verify_command.split_words([]) == (None, [])
    assert verify_command.split_words(["mysite", "mpi"]) == (Path("mysite"), ["mpi"])
    assert verify_command.split_words(["not/there"]) == (Path("not/there"), [])
    assert verify_command.split_words(["slurm", "node"]) == (None, ["slurm", "node"])
    assert verify_command.split_words(["./slurm", "node"]) == (Path("./slurm"), ["node"])


@pytest.mark.parametrize("words", [["slurn"], ["slurm", "nod"], ["slurm", "some/where"]])
def test_a_word_that_is_neither(words: list[str]) -> None:
    with pytest.raises(UsageError, match="neither a suite nor an inventory") as error:
        verify_command.split_words(words)
    assert "--list" in error.value.hint


def test_the_list_names_every_check() -> None:
    shown = CliRunner().invoke(verify_command.command, ["--list"])
    assert shown.exit_code == 0
    assert "  gpu_fill       Single-GPU jobs fill a node" in shown.stdout
    assert "smoke  (only when named" in shown.stdout


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A stored run, which the command is made to have run."""
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path / "state"))
    made = run_of(Result(suite="s", check="c", status=Status.FAIL, reason="gpu02 is DOWN"))
    store.save(store.make_run_folder("lab", made.run_id), made)
    monkeypatch.setattr(verify_command, "load_site", lambda _: make_site())
    monkeypatch.setattr(verify_command, "run_suites", lambda *_, **__: made)
    return made


def test_json_is_all_that_is_on_stdout(run: Run, tmp_path: Path) -> None:
    options = [
        "some/site",
        "--json",
        "--html",
        str(tmp_path / "a.html"),
        "--junit",
        str(tmp_path / "a.xml"),
    ]
    shown = CliRunner().invoke(verify_command.command, options, standalone_mode=False)
    assert shown.return_value == 1, shown.exception
    assert Run.model_validate_json(shown.stdout) == run
    result = json.loads(shown.stdout)["results"][0]
    assert {"suite", "check", "nodes", "status", "reason", "measurements"} <= result.keys()
    for file in (tmp_path / "a.html", tmp_path / "a.xml"):
        assert "gpu02 is DOWN" in file.read_text()
    assert {path.name for path in store.folder_of(run).iterdir()} == {
        "raw",
        "run.json",
        "report.html",
        "junit.xml",
    }


def test_a_place_that_cannot_be_written_is_told_before_anything_runs(run: Run) -> None:
    shown = CliRunner().invoke(
        verify_command.command, ["some/site", "--html", "/not/there/a.html"], standalone_mode=False
    )
    assert isinstance(shown.exception, UsageError)


@pytest.mark.parametrize(
    ("form", "piece"),
    [
        ("text", "gpu02 is DOWN"),
        ("html", "<!doctype html>"),
        ("junit", "<testsuites"),
        ("json", "{"),
    ],
)
def test_a_stored_run_is_shown_again(run: Run, form: str, piece: str) -> None:
    shown = CliRunner().invoke(report_command.command, ["--format", form], standalone_mode=False)
    assert shown.exception is None
    assert piece in shown.stdout


def test_no_run_yet(run: Run) -> None:
    shown = CliRunner().invoke(report_command.command, ["--site", "other"], standalone_mode=False)
    assert isinstance(shown.exception, CouldNotRunError)
