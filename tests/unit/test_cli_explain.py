"""`hpcsite explain`, and how `hpcsite validate` shows codes, warnings and what is acknowledged."""

import json
import sys
from pathlib import Path

import pytest

from hpcsite import cli
from hpcsite.cli import console
from hpcsite.cli.explain import _explained
from hpcsite.errors import CouldNotRunError, ExitCode, InvalidSiteError, Location, Problem
from hpcsite.site.codes import AREAS, CODES, Code
from hpcsite.site.model import Site, SiteKeys

BAD = Problem("bad uid", Location(Path("a.yml"), 3), "mend it", "site_x", code="HPC1504")
LOOSE = Problem("loose", Location(Path("a.yml"), 4), "look", "site_y", code="HPC1052")
KNOWN = Problem("known", None, "", "gpu01", code="HPC1052", acknowledged="a spare", host="gpu01")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hpcsite", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize("text", ["HPC1209", "hpc1209", "1209", "[HPC1209]"])
def test_code_is_explained(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "explain", text) == ExitCode.OK
    shown = capsys.readouterr()
    title, cause, remedy, example = shown.out.split("\n\n")
    assert title == f"HPC1209 error: {CODES['HPC1209'].title}"
    assert " ".join(cause.split()) == f"cause: {CODES['HPC1209'].cause}"
    assert " ".join(remedy.split()) == f"remedy: {CODES['HPC1209'].remedy}"
    assert example.splitlines()[:2] == ["example:", "  max_time: 2d                # HPC1209"]
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.err == ""


def test_warning_is_called_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "explain", "HPC1052") == ExitCode.OK
    assert capsys.readouterr().out.startswith("HPC1052 warning: ")


def test_retired_code_is_still_explained() -> None:
    code = Code("HPC1998", "old", "Why.", "What.", retired=True)
    assert _explained(code) == (
        "HPC1998 error: old (no longer reported)\n\ncause: Why.\n\nremedy: What."
    )


def test_all_codes_are_listed_by_area(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "explain") == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == list(AREAS.values())
    assert [line.split()[0] for line in lines if line.startswith(" ")] == list(CODES)


def test_codes_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "explain", "HPC1203", "--json") == ExitCode.OK
    result = json.loads(capsys.readouterr().out)
    assert result["schema"] == 1
    (code,) = result["codes"]
    known = CODES["HPC1203"]
    assert code == {
        "code": "HPC1203",
        "severity": "error",
        "area": "Slurm",
        "title": known.title,
        "cause": known.cause,
        "remedy": known.remedy,
        "example": known.example,
        "retired": False,
    }
    assert run(monkeypatch, "explain", "--json") == ExitCode.OK
    assert [c["code"] for c in json.loads(capsys.readouterr().out)["codes"]] == list(CODES)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("HCP1203", "did you mean HPC1203?"),
        ("HPC120", "did you mean HPC120"),
        ("foo", "`hpcsite explain` lists all codes"),
    ],
)
def test_unknown_code_is_wrong_usage(
    text: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "explain", text) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"there is no code {text}\n\nhint: {hint}" in shown.err


def site(tmp_path: Path, *warnings: Problem) -> Site:
    return Site(path=tmp_path, keys=SiteKeys(name="x"), hosts={}, warnings=warnings)


def test_warnings_of_a_valid_site_go_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hpcsite.cli.validate.load_site", lambda _: site(tmp_path, LOOSE, KNOWN))
    assert run(monkeypatch, "validate", "x") == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.out == "x: valid: 0 hosts\n"
    assert shown.err == (
        "warning: a.yml:4: loose [HPC1052]\n\nhint: look\n\n`hpcsite explain HPC1052` tells more\n"
    )


def test_deploy_shows_warnings_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_key(_: Site) -> None:
        raise CouldNotRunError("no key")

    monkeypatch.setattr("hpcsite.cli.deploy.require_named_user", lambda: None)
    monkeypatch.setattr("hpcsite.cli.deploy.load_site", lambda _: site(tmp_path, LOOSE, KNOWN))
    monkeypatch.setattr("hpcsite.cli.deploy.require_key", no_key)
    assert run(monkeypatch, "deploy", "x") == ExitCode.COULD_NOT_RUN
    shown = capsys.readouterr().err
    assert "warning: a.yml:4: loose [HPC1052]" in shown
    assert "known" not in shown
    assert shown.endswith("error: no key\n")


def test_acknowledged_warnings_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_warnings([KNOWN])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_warnings_stand_apart_from_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_error(InvalidSiteError([BAD], [LOOSE, KNOWN]))
    assert capsys.readouterr().err == (
        "warning: a.yml:4: loose [HPC1052]\n\nhint: look\n\n"
        "error: a.yml:3: bad uid [HPC1504]\n\nhint: mend it\n\n"
        "`hpcsite explain CODE` tells more\n"
    )


def test_error_without_a_code_promises_no_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_error(CouldNotRunError("no", hint="do"))
    assert capsys.readouterr().err == "error: no\n\nhint: do\n"


def test_json_of_a_valid_site_has_warnings_and_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hpcsite.cli.validate.load_site", lambda _: site(tmp_path, LOOSE, KNOWN))
    assert run(monkeypatch, "validate", "x", "--json") == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out) == {
        "schema": 1,
        "valid": True,
        "problems": [],
        "warnings": [
            {
                "code": "HPC1052",
                "severity": "warning",
                "message": "loose",
                "path": "a.yml",
                "line": 4,
                "key": "site_y",
                "host": "",
                "hint": "look",
            }
        ],
        "acknowledged": [
            {
                "code": "HPC1052",
                "severity": "warning",
                "message": "known",
                "path": None,
                "line": None,
                "key": "gpu01",
                "host": "gpu01",
                "hint": "",
                "reason": "a spare",
            }
        ],
    }


def test_json_of_an_invalid_site_has_its_warnings_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(_: Path) -> Site:
        raise InvalidSiteError([BAD], [LOOSE, KNOWN])

    monkeypatch.setattr("hpcsite.cli.validate.load_site", load)
    assert run(monkeypatch, "validate", "x", "--json") == ExitCode.INVALID_SITE
    result = json.loads(capsys.readouterr().out)
    assert not result["valid"]
    assert [p["code"] for p in result["problems"]] == ["HPC1504"]
    assert [p["message"] for p in result["warnings"]] == ["loose"]
    assert [p["reason"] for p in result["acknowledged"]] == ["a spare"]
