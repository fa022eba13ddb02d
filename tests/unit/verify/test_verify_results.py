import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from hpcsite.errors import CouldNotRunError
from hpcsite.site.names import fold
from hpcsite.verify import store
from hpcsite.verify.results import Direction, Measurement, Reference, Result, Run, Status, Summary

GOLDEN = Path(__file__).parents[2] / "golden" / "verify" / "run.schema.json"
STARTED = datetime(2026, 11, 30, 12, 9, 15, tzinfo=UTC)


def result(status: Status, check: str = "c") -> Result:
    return Result(suite="s", check=check, status=status, reason="because")


def run_of(
    *results: Result, run_id: str = "20261130-120915-aaaa", interrupted: bool = False
) -> Run:
    return Run(
        hpcsite_version="0.1.0",
        run_id=run_id,
        site="lab",
        cluster="lab",
        user="alice",
        submit_host="login",
        suites=("s",),
        started=STARTED,
        finished=STARTED + timedelta(seconds=20),
        interrupted=interrupted,
        results=results,
        summary=Summary.of(results),
    )


def test_the_schema_is_what_was_promised() -> None:
    """A change here changes what other programs read: see the docstring of results.py.

    To accept one, run the tests with HPCSITE_GOLDEN=write.
    """
    schema = json.dumps(Run.model_json_schema(mode="serialization"), indent=2) + "\n"
    if os.environ.get("HPCSITE_GOLDEN") == "write":
        GOLDEN.write_text(schema)
    assert json.loads(GOLDEN.read_text()) == json.loads(schema)


@pytest.mark.parametrize(
    ("statuses", "verdict", "code"),
    [
        ([Status.PASS], "PASS", 0),
        ([Status.PASS, Status.SKIP], "PASS", 0),
        ([Status.PASS, Status.FAIL], "FAIL", 1),
        ([Status.ERROR, Status.FAIL], "FAIL", 1),
        ([Status.PASS, Status.ERROR], "ERROR", 4),
        ([Status.SKIP], "ERROR", 4),
        ([], "ERROR", 4),
    ],
)
def test_the_verdict_over_all(statuses: list[Status], verdict: str, code: int) -> None:
    run = run_of(*(result(status) for status in statuses))
    assert (run.summary.verdict, run.exit_code) == (verdict, code)


def test_an_interrupted_run_is_never_a_success() -> None:
    assert run_of(result(Status.PASS), interrupted=True).exit_code == 130


def test_only_a_pass_needs_no_reason() -> None:
    Result(suite="s", check="c", status=Status.PASS)
    for status in (Status.FAIL, Status.SKIP, Status.ERROR):
        with pytest.raises(ValidationError, match="without a reason"):
            Result(suite="s", check="c", status=status)


@pytest.mark.parametrize(
    ("value", "direction", "meets"),
    [
        (95, Direction.HIGHER, True),
        (94, Direction.HIGHER, False),
        (105, Direction.LOWER, True),
        (106, Direction.LOWER, False),
    ],
)
def test_a_measurement_against_its_reference(
    value: float, direction: Direction, *, meets: bool
) -> None:
    reference = Reference(value=100, tolerance=0.05, unit="GB/s", source="test")
    measured = Measurement(
        name="m", value=value, unit="GB/s", direction=direction, reference=reference
    )
    assert measured.meets is meets


def test_units_are_never_mixed_and_numbers_are_numbers() -> None:
    reference = Reference(value=1, unit="Gb/s", source="test")
    with pytest.raises(ValidationError, match="GB/s"):
        Measurement(name="m", value=1, unit="GB/s", direction=Direction.HIGHER, reference=reference)
    with pytest.raises(ValidationError):
        Measurement(name="m", value=float("nan"), unit="s", direction=Direction.LOWER)
    with pytest.raises(ValidationError):
        Reference(value=1, unit="s", source="")


def test_node_sets_keep_their_padding() -> None:
    assert fold(["gpu02", "gpu01", "gpu01", "head"]) == "gpu[01-02],head"
    assert fold([]) == ""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path))
    return tmp_path


def stored(run_id: str) -> Path:
    folder = store.make_run_folder("lab", run_id)
    store.save(folder, run_of(result(Status.PASS), run_id=run_id))
    return folder


def test_the_json_of_a_run_has_what_the_interface_promises() -> None:
    measured = Measurement(
        name="latency", value=4.5, unit="us", direction=Direction.LOWER, at={"message_bytes": 1}
    )
    found = Result(
        suite="mpi",
        check="pingpong",
        nodes="gpu[01-02]",
        status=Status.FAIL,
        reason="slow",
        measurements=(measured,),
    )
    run = json.loads(run_of(found).model_dump_json())
    assert (run["schema_version"], run["site"]) == (1, "lab")
    (result,) = run["results"]
    wanted = ("suite", "check", "nodes", "status", "reason")
    assert [result[key] for key in wanted] == ["mpi", "pingpong", "gpu[01-02]", "FAIL", "slow"]
    (one,) = result["measurements"]
    assert [one[key] for key in ("name", "value", "unit", "reference")] == [
        "latency",
        4.5,
        "us",
        None,
    ]


def test_a_run_is_found_again(state: Path) -> None:
    old, new = stored("20261130-120915-aaaa"), stored("20261130-130000-bbbb")
    assert store.find(None, None) == new
    assert store.find("20261130-12", None) == old
    assert store.find(str(old), None) == old
    assert store.load(new) == run_of(result(Status.PASS), run_id="20261130-130000-bbbb")
    assert store.folder_of(store.load(new)) == new
    assert new.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("wanted", "site", "said"),
    [
        ("2027", None, "no run 2027"),
        ("2026", None, "begins the names of 2 runs"),
        (None, "other", "no run of site other is stored yet"),
    ],
)
def test_a_run_that_is_not_there(
    state: Path, wanted: str | None, site: str | None, said: str
) -> None:
    stored("20261130-120915-aaaa")
    stored("20261130-130000-bbbb")
    with pytest.raises(CouldNotRunError, match=said) as error:
        store.find(wanted, site)
    assert error.value.hint


def test_a_run_of_another_version(state: Path) -> None:
    folder = stored("20261130-120915-aaaa")
    (folder / "run.json").write_text('{"schema_version": 99}')
    with pytest.raises(CouldNotRunError, match="not a run of this version"):
        store.load(folder)


def test_ids_sort_by_time_and_differ() -> None:
    first, second = store.new_run_id(STARTED), store.new_run_id(STARTED)
    assert first != second
    assert first.startswith("20261130-120915-")
