"""Whether KVM works is known only from a guest that booted, and for as long as nothing changed."""

import json
import os
from pathlib import Path

import pytest

from hpcsite.lab.qemu import kvm
from hpcsite.lab.qemu.kvm import Acceleration


def test_a_guest_that_came_as_far_as_its_root_booted() -> None:
    console = "Linux version 6.12\r\nKernel panic - not syncing: VFS: Unable to mount root fs on 0"
    assert kvm.parse_probe(console, "").kvm


@pytest.mark.parametrize("console", ["", "SeaBIOS\r\n", "Linux version 6.12\r\n"])
def test_one_that_printed_less_did_not(console: str) -> None:
    found = kvm.parse_probe(console, "x\nqemu: KVM: entry failed\n")
    assert not found.kvm
    assert found.reason.endswith("(qemu: KVM: entry failed)")
    assert "emulation" in found.in_words()


def test_an_answer_holds_under_its_own_circumstances_only() -> None:
    text = json.dumps({"key": "a", "kvm": True, "reason": "booted"})
    assert kvm.parse_answer(text, "a") == Acceleration(kvm=True, reason="booted")
    assert kvm.parse_answer(text, "b") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"key": "a"}'])
def test_half_an_answer_is_none(text: str) -> None:
    assert kvm.parse_answer(text, "a") is None


def test_without_the_device_nothing_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm, "DEVICE", tmp_path / "kvm")
    found = kvm.known()
    assert found is not None
    assert not found.kvm
    assert "has no" in found.reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open anything")
def test_a_device_that_may_not_be_opened_says_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "kvm"
    device.touch(mode=0o000)
    monkeypatch.setattr(kvm, "DEVICE", device)
    found = kvm.known()
    assert found is not None
    assert "group kvm" in found.reason


def test_a_guest_is_booted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(kvm, "DEVICE", device)
    monkeypatch.setattr(kvm, "SYSTEM", "true")
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))
    tried = []

    def probe(kernel: Path) -> Acceleration:
        tried.append(kernel)
        return Acceleration(kvm=False, reason="it did not boot")

    monkeypatch.setattr(kvm, "_probe", probe)
    assert kvm.known() is None
    first = kvm.acceleration(Path("/vmlinuz"))
    assert kvm.acceleration(Path("/vmlinuz")) == first == kvm.known()
    assert tried == [Path("/vmlinuz")]
