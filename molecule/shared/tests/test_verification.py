"""`hpcsite verify` says that the site works, and has looked."""

import json

from tests.labs import Lab


def test_hpcsite_verify_passes(lab: Lab) -> None:
    done = lab.hpcsite("verify", "--json")
    # Not done.stdout: the report that a person reads is in stderr.
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    passed = {each["suite"] for each in results if each["status"] == "PASS"}
    assert passed >= lab.suites
    if lab.skipped is not None:
        assert {_name(each) for each in results if each["status"] == "SKIP"} == lab.skipped


def _name(result: dict[str, str]) -> str:
    return f"{result['suite']}/{result['check']}"
