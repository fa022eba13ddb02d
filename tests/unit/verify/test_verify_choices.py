"""A partition, account, QOS or reservation that Slurm does not know is one usage error."""

from pathlib import Path

import pytest

from hpcsite.errors import UsageError
from hpcsite.verify.choices import require_known
from tests.unit.verify.fakeslurm import FakeSlurm, context_for

LISTS = {
    "sinfo": "gpu\ncpu\n",
    "show reservations": "No reservations in the system\n",
    "format=Account": "research\n",
    "format=QOS": "normal,high\n",
}


@pytest.mark.parametrize(
    ("option", "refusal", "said"),
    [
        ("partition", "Invalid partition name specified", "no partition nope; there are: cpu, gpu"),
        ("reservation", "Requested reservation is invalid", "no reservation nope; there is none"),
        (
            "account",
            "Invalid account or account/partition combination specified",
            "alice cannot use account nope; alice has: research",
        ),
        (
            "qos",
            "Invalid qos specification",
            "alice cannot use QOS nope; alice has: high, normal",
        ),
    ],
)
def test_what_slurm_does_not_know(tmp_path: Path, option: str, refusal: str, said: str) -> None:
    refused = (1, "", f"allocation failure: {refusal}\n")
    slurm = FakeSlurm(answers={"--test-only": refused, **LISTS})
    with pytest.raises(UsageError) as raised:
        require_known(context_for(tmp_path, slurm, None, **{option: "nope"}))
    assert raised.value.message == said
    assert f"--{option}" in raised.value.hint
    assert f"--{option}=nope" in slurm.asked[0]


def test_an_account_that_slurm_takes_unseen_is_no_error(tmp_path: Path) -> None:
    slurm = FakeSlurm(answers={"--test-only": (0, "", "sbatch: Job 4 to start at 2026\n")})
    require_known(context_for(tmp_path, slurm, account="nope"))


def test_other_refusals_are_for_the_checks(tmp_path: Path) -> None:
    busy = (1, "", "allocation failure: Requested nodes are busy\n")
    require_known(context_for(tmp_path, FakeSlurm(answers={"--test-only": busy}), partition="gpu"))


def test_without_a_choice_nothing_is_asked(tmp_path: Path) -> None:
    slurm = FakeSlurm()
    require_known(context_for(tmp_path, slurm))
    assert not slurm.asked
