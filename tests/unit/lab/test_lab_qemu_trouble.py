"""What a console says of a machine that does not answer."""

from pathlib import Path

import pytest

from hpcsite.lab.qemu.trouble import stuck, trouble

PANIC = """\
[  374.968643] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI
[  375.002693] Kernel panic - not syncing: Fatal exception in interrupt
"""
OOPS = """\
[  167.218031] BUG: kernel NULL pointer dereference, address: 0000000000000000
[  167.226255] Oops: Oops: 0010 [#1] PREEMPT SMP NOPTI
"""


@pytest.mark.parametrize(
    ("text", "hopeless", "why"),
    [
        (PANIC, "its kernel gave up", "its kernel gave up"),
        (OOPS, "", "its kernel met a fault"),
        (
            "(initramfs) ",
            "its initrd found no system to start",
            "its initrd found no system to start",
        ),
        ("[  OK  ] Started ssh.service\n", "", ""),
    ],
)
def test_a_console_tells_why(tmp_path: Path, text: str, hopeless: str, why: str) -> None:
    console = tmp_path / "console.log"
    console.write_text(text)
    assert (stuck(console), trouble(console)) == (hopeless, why)


def test_no_console_tells_nothing(tmp_path: Path) -> None:
    assert trouble(tmp_path / "console.log") == ""
