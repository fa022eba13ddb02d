"""PCIe links as sysfs has them, one line a device: what it runs at, what it and its slot can have.

`0000:1b:00.0 0x030200 0x10de 16 16 16 32.0 32.0 32.0`: address, class, vendor; then width now, the
most of the device, the most of the port above; then the same of the speed in GT/s. What the kernel
does not know is `-` (it also says 0 lanes, 63 lanes, or `Unknown` speed).
"""

import re
from dataclasses import dataclass

GPU, ADAPTER, DRIVE = "GPUs", "adapters", "drives"
KINDS = (GPU, ADAPTER, DRIVE)
_CLASSES = {"0x0300": GPU, "0x0302": GPU, "0x0200": ADAPTER, "0x0207": ADAPTER, "0x0108": DRIVE}
# GT/s of a lane, by generation (PCI Express Base Specification).
_GENERATIONS = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
_WIDTH = re.compile(r"[1-9]\d?", re.ASCII)
_MOST_LANES = 32
_WORDS = 9


@dataclass(frozen=True)
class PcieDevice:
    """A device and its link. The best is what both ends can have."""

    address: str
    kind: str
    vendor: str
    width: int
    width_best: int
    generation: int
    generation_best: int

    def __str__(self) -> str:
        return f"{self.kind.removesuffix('s')} {self.address}"

    @property
    def link(self) -> str:
        """The link as it could be, for a comparison of nodes, and the width that it has."""
        narrow = f", x{self.width} now" if self.width < self.width_best else ""
        return f"{self.vendor} x{self.width_best} PCIe {self.generation_best}{narrow}"


def read_device(text: str) -> PcieDevice | None:
    """Read one line; None for other devices, and for one whose link is not told."""
    words = text.split()
    if len(words) != _WORDS or (kind := _CLASSES.get(words[1][:6])) is None:
        return None
    width, width_most, width_slot = (_lanes(word) for word in words[3:6])
    speed, speed_most, speed_slot = (_GENERATIONS.get(word, 0) for word in words[6:9])
    if not (width and width_most and speed and speed_most):
        return None
    return PcieDevice(
        words[0],
        kind,
        words[2],
        width,
        min(width_most, width_slot or width_most),
        speed,
        min(speed_most, speed_slot or speed_most),
    )


def _lanes(word: str) -> int:
    number = int(word) if _WIDTH.fullmatch(word) else 0
    return number if number <= _MOST_LANES else 0
