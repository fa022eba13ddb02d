"""What a kind of machine must offer to the lab's orchestration."""

from pathlib import Path
from typing import Protocol

from hpcsite.image.roots import Image
from hpcsite.lab.spec import Machine


class Backend(Protocol):
    """Makes, starts, stops and removes machines; each call concerns one machine."""

    def exists(self, node: str) -> bool:
        """Tell whether the machine was made, completely."""
        ...

    def images(self) -> set[Path]:
        """Return the roots of the images that the lab's machines stand on."""
        ...

    def running(self, node: str) -> bool:
        """Tell whether the machine is switched on."""
        ...

    def make(self, node: Machine, image: Image, host_key: Path) -> None:
        """Make the machine anew from an image; it is not started."""
        ...

    def update(self, node: Machine, host_key: Path) -> bool:
        """Bring an existing machine in line with its description; tell whether it must restart."""
        ...

    def start(self, node: Machine) -> None:
        """Switch the machine on and connect it; does nothing to one that runs."""
        ...

    def stop(self, node: str) -> None:
        """Shut the machine down in order, or switch it off if that takes too long."""
        ...

    def remove(self, node: str) -> None:
        """Switch the machine off at once and remove all of it; works on a half-made one."""
        ...

    def console(self, node: str) -> str:
        """Return the end of what the machine printed on its console since its last start."""
        ...
