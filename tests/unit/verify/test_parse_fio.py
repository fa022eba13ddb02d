import json

import pytest

from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.fio import lacks_engine, read_fio
from tests.unit.verify.parsing import golden, raises_nothing_else

JOB = {
    "jobname": "random_read",
    "error": 0,
    "read": {
        "io_bytes": 4096000,
        "bw_bytes": 2048000,
        "bw": 2000,
        "iops": 500.0,
        "runtime": 2000,
        "total_ios": 1000,
    },
    "write": {"io_bytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0},
}


def output(**changes: object) -> str:
    return json.dumps({"fio version": "fio-3.39", "jobs": [{**JOB, **changes}]})


def test_the_busier_direction_is_read() -> None:
    run = read_fio(output())
    job = run.jobs["random_read"]
    assert (run.version, job.side, job.bytes_per_s, job.iops) == ("fio-3.39", "read", 2048000, 500)


def test_notes_before_and_after_the_json_are_passed_over() -> None:
    text = (
        "fio: this platform does not support process shared mutexes, forcing use of threads.\n"
        "random_read: Laying out IO file (1 file / 16MiB)\n"
        f"{json.dumps(json.loads(output()), indent=2)}\nfio: file hash not empty on exit\n"
    )
    assert read_fio(text).jobs["random_read"].iops == 500


@pytest.mark.parametrize("word", ["nan", "-nan", "inf", "-inf", "NaN"])
def test_numbers_that_json_does_not_know(word: str) -> None:
    text = output().replace('"iops": 500.0', f'"iops": {word}')
    # Without the figure, operations and time tell it.
    assert read_fio(text).jobs["random_read"].iops == 500


def test_old_versions_tell_bandwidth_in_kib_only() -> None:
    read = {key: value for key, value in JOB["read"].items() if key != "bw_bytes"}  # type: ignore[attr-defined]
    assert read_fio(output(read=read)).jobs["random_read"].bytes_per_s == 2000 * 1024


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "fio printed no JSON: nothing"),
        ("fio: engine x not loadable\n", "fio printed no JSON: fio: engine x not loadable"),
        ("{", "fio's JSON cannot be read"),
        ("{}", "fio's output has no jobs"),
        ('{"jobs": [{"jobname": "x"}]}', "fio's job x has neither read nor write"),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(UnreadableError) as error:
        read_fio(text)
    assert said in str(error.value)


def test_an_engine_that_an_old_version_lacks() -> None:
    assert lacks_engine("fio: engine filedelete not loadable\nfio: failed to load engine\n")
    assert not lacks_engine("fio: pid=1, err=30/file:filesetup.c, error=Read-only file system\n")


@pytest.mark.parametrize(
    "name",
    [
        "3.39-json-plus.json",
        "3.39-warnings-around.txt",
        "3.39-srun-label.txt",
        "3.39-mpirun-tags.txt",
    ],
)
def test_one_run_reads_alike_however_it_is_wrapped(name: str) -> None:
    run = read_fio(golden("fio", name))
    assert run.version == "fio-3.39"
    write, read = run.jobs["sequential_write"], run.jobs["random_read"]
    assert (write.side, read.side) == ("write", "read")
    assert write.bytes_per_s > 1e6
    assert read.iops > 100
    assert read.p99_us is not None
    assert 10 < read.p99_us < 100_000


def test_json_between_the_lines_for_people() -> None:
    run = read_fio(golden("fio", "3.39-normal-and-json.txt"))
    assert run.jobs["sequential_read"].ios == 4


def test_output_of_version_2() -> None:
    job = read_fio(golden("fio", "2.2-made.json")).jobs["sequential_write"]
    assert (job.bytes_per_s, job.iops, job.p99_us) == (131072 * 1024, 128, 2608)


def test_output_of_a_client_of_servers() -> None:
    assert list(read_fio(golden("fio", "3.39-client-made.json")).jobs) == ["sequential_write"]


def test_output_that_is_cut_off_names_its_last_line() -> None:
    with pytest.raises(UnreadableError, match=r"fio's JSON cannot be read: .*: \S"):
        read_fio(golden("fio", "3.39-truncated.txt"))


def test_figures_that_are_no_numbers_are_reckoned() -> None:
    run = read_fio(golden("fio", "3.39-nan.txt"))
    assert run.jobs["random_read"].iops > 100


def test_any_text_is_read_or_unreadable() -> None:
    raises_nothing_else(read_fio, "fio")
