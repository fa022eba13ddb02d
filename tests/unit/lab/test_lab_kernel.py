"""Kernel settings are raised and put back."""

from pathlib import Path

import pytest

from hpcsite.lab import kernel
from hpcsite.lab.kernel import Setting


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setattr(kernel, "_BEFORE", tmp_path / "run" / "kernel")
    # An absolute name is a path of its own below /proc/sys as well.
    found = Setting(str(tmp_path / "ip_forward"), 1)
    found.path.write_text("0\n")
    return found


def raise_it(setting: Setting) -> None:
    kernel.raise_settings((setting,))


def restore_it(setting: Setting) -> None:
    kernel.restore_settings((setting,))


def test_a_setting_is_raised_once_and_put_back(setting: Setting) -> None:
    raise_it(setting)
    raise_it(setting)
    assert setting.path.read_text() == "1"
    restore_it(setting)
    assert setting.path.read_text() == "0"
    assert not setting.before.exists()


def test_one_that_is_high_enough_is_never_touched(setting: Setting) -> None:
    setting.path.write_text("2\n")
    raise_it(setting)
    restore_it(setting)
    assert setting.path.read_text() == "2\n"


def test_one_that_was_changed_since_stays(setting: Setting) -> None:
    raise_it(setting)
    setting.path.write_text("5\n")
    restore_it(setting)
    assert setting.path.read_text() == "5\n"
