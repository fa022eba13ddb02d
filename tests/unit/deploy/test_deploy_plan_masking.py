"""Secrets stay out of what a plan shows."""

import base64
from pathlib import Path

import pytest

from hpcsite.deploy.plan.masking import MASK, Masker


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "munge.key").write_bytes(bytes(range(128)))
    (folder / "slurmdbd_password").write_text("aB3#x\\y-Zz9\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "the password is aB3#x\\y-Zz9, they say",
        "aB3\\#x\\\\y-Zz9",
        base64.b64encode(bytes(range(128))).decode(),
        bytes(range(128)).hex(),
        base64.b64encode(b"aB3#x\\y-Zz9").decode(),
    ],
)
def test_secrets_of_the_site_are_masked_in_every_spelling(secrets: Path, text: str) -> None:
    masker = Masker()
    masker.learn(secrets)
    masked = masker.text(f"before {text} after")
    assert text not in masked
    assert "aB3" not in masked
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


def test_a_folder_that_is_missing_has_no_secrets(tmp_path: Path) -> None:
    masker = Masker()
    masker.learn(tmp_path / "none")
    assert masker.text("a b c") == "a b c"


@pytest.mark.parametrize(
    "line",
    [
        "StoragePass=hunter2",
        "+StoragePass=hunter2 # comment",
        "-  password: hunter2",
        'smtp_auth_password: "hunter2"',
        "api_token = hunter2",
        "export AWS_SECRET_ACCESS_KEY=hunter2",
        '"private-key": "hunter2",',
        "AccountingStoragePass=hunter2",
    ],
)
def test_a_setting_that_is_a_secret_is_masked(line: str) -> None:
    masked = Masker().text(f"a=b\n{line}\nc=d")
    assert "hunter2" not in masked
    assert masked.startswith("a=b\n")
    assert masked.endswith("\nc=d")


@pytest.mark.parametrize(
    "line",
    [
        "NodeName=gpu[01-02] CPUs=8 RealMemory=4096 Gres=gpu:8",
        "PartitionName=gpu Nodes=gpu[01-02] Default=YES MaxTime=1-00:00:00",
        "AuthType=auth/munge",
        "10.1.0.21 gpu01.lab.example gpu01",
        "*  soft  memlock  unlimited",
    ],
)
def test_other_lines_are_left_alone(line: str) -> None:
    assert Masker().text(line) == line


def test_an_empty_setting_does_not_hide_the_next_line() -> None:
    assert Masker().text("password:\nhost: mail\n") == "password:\nhost: mail\n"


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/etc/munge/munge.key", True),
        ("/etc/slurm/slurmdbd.conf", True),
        ("/etc/shadow", True),
        ("/etc/ssl/private/host.pem", True),
        ("/root/.ssh/id_ed25519", True),
        ("/etc/slurm/slurm.conf", False),
        ("/etc/hosts", False),
        ("/etc/default/slurmd", False),
    ],
)
def test_files_of_secrets_are_known_by_their_paths(path: str, secret: bool) -> None:
    assert Masker().is_secret(path) is secret


def test_containers_are_masked_to_their_depth() -> None:
    value = {"a": ["password=hunter2", {"b": "token: hunter2"}], "n": 3}
    assert Masker().value(value) == {"a": [f"password={MASK}", {"b": f"token: {MASK}"}], "n": 3}
