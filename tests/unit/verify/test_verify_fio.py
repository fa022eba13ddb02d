import json

import pytest

from hpcsite.verify.fio import FioError, lacks_engine, read_fio

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
    with pytest.raises(FioError) as error:
        read_fio(text)
    assert said in str(error.value)


def test_an_engine_that_an_old_version_lacks() -> None:
    assert lacks_engine("fio: engine filedelete not loadable\nfio: failed to load engine\n")
    assert not lacks_engine("fio: pid=1, err=30/file:filesetup.c, error=Read-only file system\n")
