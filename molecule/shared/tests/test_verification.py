"""`hpcsite verify` says that the site works, and has looked."""

import json

from tests.labs import Lab


def test_hpcsite_verify_passes(lab: Lab) -> None:
    done = lab.hpcsite("verify", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout)["results"]
    passed = {each["suite"] for each in results if each["status"] == "PASS"}
    assert passed >= lab.suites
