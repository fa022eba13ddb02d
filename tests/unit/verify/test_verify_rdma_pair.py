"""The script that runs on both nodes of a pair, with stand-ins for the tools and for srun."""

import os
import subprocess
from pathlib import Path

import pytest

from hpcsite.verify.fabric import script
from hpcsite.verify.parsers.perftest import read_bandwidth
from hpcsite.verify.parsers.rdma_pair import Side, read_sides
from tests.unit.verify.fakeslurm import FIXTURES

# The side that listens is heard half a second late, by a file; the other one has the address last.
TOOL = """#!/bin/bash
[ "$1" = --help ] && { echo "$HELP"; exit 0; }
port=$(sed 's/.*-p \\([0-9]*\\).*/\\1/' <<<"$*")
if [ -n "$ONCE" ] && mkdir "$FOLDER/$ONCE-$SLURMD_NODENAME" 2>/dev/null; then
  echo "Failed status 9: wr_id 0 syndrom 0x0"
  exit 1
fi
case " $* " in *" $BROKEN "*) echo "IB device rxe0 not found"; exit 1 ;; esac
if [ "${@: -1}" != 10.0.0.1 ]; then
  sleep 0.5
  touch "$FOLDER/$port"
  sleep "$LISTENS"
elif [ ! -e "$FOLDER/$port" ]; then
  echo "Couldn't connect to 10.0.0.1:$port"
  exit 1
fi
json=$(sed -n 's/.*--out_json_file=\\([^ ]*\\).*/\\1/p' <<<"$*")
[ -n "$json" ] && sed '1,/--- json/d' "$FIXTURE" >"$json"
sed '/--- json/,$d' "$FIXTURE"
"""
WORDS = [
    *("ib_write_bw", "-F --report_gbits", "-d rxe0 -x 1", "-d rxe0 -x 2"),
    *("ib_write_lat", "-F", "-d rxe0 -x 1", "-d rxe0 -x 2"),
]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    for name in ("ib_write_bw", "ib_write_lat"):
        (tmp_path / name).write_text(TOOL)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(tools: Path, *, limit: int = 5, tries: int = 1, **environment: str) -> dict[str, Side]:
    """Run both sides as srun would: with labels, the other ended when one ends badly."""
    common = os.environ | {
        "PATH": f"{tools}:/usr/bin:/bin",
        "SLURM_JOB_ID": "10017",
        "FOLDER": str(tools),
        "FIXTURE": str(FIXTURES / "rdma/write-bw.txt"),
        "HELP": "--out_json_file=<file>",
        "BROKEN": "-",
        "LISTENS": "1",
        "ONCE": "",
        **environment,
    }
    own = ["gpu01", "10.0.0.1", str(limit), str(tries), *WORDS]
    argv = ["bash", "-c", script("rdma_pair.sh"), "pair", *own]
    running = [
        subprocess.Popen(
            argv, env=common | {"SLURMD_NODENAME": node}, stdout=subprocess.PIPE, text=True
        )
        for node in ("gpu01", "gpu02")
    ]
    texts = [process.communicate(timeout=60)[0] for process in running]
    return read_sides(
        "".join(f"{task}: {line}\n" for task, text in enumerate(texts) for line in text.split("\n"))
    )


def test_the_side_that_is_not_heard_yet_is_asked_again(tools: Path) -> None:
    sides = run(tools)
    assert (sides["gpu01"].listens, sides["gpu02"].listens) == (True, False)
    for side in sides.values():
        assert [(test.tool, test.rc) for test in side.tests] == [
            ("ib_write_bw", 0),
            ("ib_write_lat", 0),
        ]
    assert read_bandwidth(sides["gpu02"].tests[0].text).average_gbit_s == 0.075003
    assert "--- json" in sides["gpu02"].tests[0].text
    # Each test has a port of its own.
    assert {path.name for path in tools.glob("1*")} == {"18622", "18626"}


def test_a_version_without_json_is_not_asked_for_it(tools: Path) -> None:
    (test, _) = run(tools, HELP="--report_gbits")["gpu02"].tests
    assert "--- json" not in test.text
    assert read_bandwidth(test.text).average_gbit_s == 0.075003


def test_a_side_that_fails_says_so_and_ends(tools: Path) -> None:
    side = run(tools, BROKEN="2", LISTENS="0")["gpu02"]
    (test,) = side.tests
    assert (test.rc, test.complaint) == (1, "IB device rxe0 not found")


@pytest.mark.parametrize(("tries", "rcs"), [(1, [1]), (2, [0, 0])])
def test_a_test_that_breaks_once_is_tried_again_if_it_may_be(
    tools: Path, tries: int, rcs: list[int]
) -> None:
    sides = run(tools, tries=tries, ONCE="broke")
    for side in sides.values():
        assert [test.rc for test in side.tests] == rcs


def test_a_side_that_never_listens_is_given_up(tools: Path) -> None:
    sides = run(tools, limit=1, BROKEN="1")
    (test,) = sides["gpu01"].tests
    assert test.complaint == "IB device rxe0 not found"
    (test,) = sides["gpu02"].tests
    assert test.complaint == "Couldn't connect to 10.0.0.1:18622"


def test_a_side_that_hangs_is_ended(tools: Path) -> None:
    (test,) = run(tools, limit=1, LISTENS="30")["gpu01"].tests
    assert (test.rc, test.complaint) == (124, "no traffic in time")


def test_a_missing_tool_is_said(tools: Path) -> None:
    (tools / "ib_write_bw").unlink()
    sides = run(tools)
    assert [side.missing for side in sides.values()] == ["ib_write_bw", "ib_write_bw"]


def test_output_that_is_cut_off_is_a_test_without_an_end() -> None:
    text = "0: @ side server gpu01\n0: @ begin 1 ib_write_bw\n0: half a li"
    (test,) = read_sides(text)["gpu01"].tests
    assert (test.rc, test.text) == (None, "half a li")
    assert test.complaint == "it was cut off"
    assert read_sides("srun: error\n0: nothing\n") == {}
