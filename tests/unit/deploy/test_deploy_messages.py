from typing import Any

import pytest

from hpcsite.deploy.messages import CENSORED, MAX_LINES, failure_message


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"msg": "No package matching 'x'"}, "No package matching 'x'"),
        ({"msg": "Task failed: Module failed: no space"}, "no space"),
        ({"msg": ["first", "second"]}, "first\nsecond"),
        ({"msg": "non-zero return code", "rc": 3, "stderr": "bad thing"}, "exit code 3: bad thing"),
        ({"msg": "non-zero return code", "rc": 1, "stdout": "a\nb"}, "exit code 1\na\nb"),
        ({"msg": "Task failed: Module failed: non-zero return code", "rc": 1}, "exit code 1"),
        ({"msg": "MODULE FAILURE", "module_stderr": "no python"}, "no python"),
        ({"msg": "it says no", "stderr": "it says no"}, "it says no"),
        ({"reason": "syntax"}, "syntax"),
        ({}, "failed without a message"),
        (
            {
                "msg": "Task failed: EOF on stream; last 100 lines received:\n"
                "ssh: connect to x: No route to host"
            },
            "ssh: connect to x: No route to host",
        ),
        (
            {"msg": "Mitogen was disconnected from the remote environment while a call was…"},
            "the connection broke while the task ran",
        ),
    ],
)
def test_the_message_is_what_a_person_needs(result: dict[str, Any], message: str) -> None:
    assert failure_message(result) == message


def test_a_loop_tells_each_item_that_failed() -> None:
    results = [
        {"item": "a", "changed": True},
        {"item": "b", "failed": True, "msg": "no b"},
        {"item": {"name": "c", "password": "x"}, "failed": True, "msg": "no c"},
    ]
    result = {"msg": "One or more items failed", "results": results}
    assert failure_message(result) == "b: no b\nc: no c"


def test_a_secret_stays_hidden() -> None:
    assert failure_message({"censored": "hidden", "msg": "s3cret"}) == CENSORED
    items = [{"failed": True, "censored": "hidden", "_ansible_item_label": "key"}]
    assert failure_message({"results": items}) == f"key: {CENSORED}"


def test_a_long_journal_is_cut_in_its_middle() -> None:
    text = "\n".join(f"line {number}" for number in range(500))
    lines = failure_message({"msg": text}).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[0] == "line 0"
    assert lines[-1] == "line 499"
