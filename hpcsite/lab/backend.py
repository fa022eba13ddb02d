"""What a kind of machine must offer to the lab's orchestration."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hpcsite.errors import Problem
from hpcsite.lab.spec import LabSpec, Machine
from hpcsite.lab.state import LabDirs

Say = Callable[[str], None]


@dataclass(frozen=True)
class Nature:
    """What the machines of a lab stand on, as measured now."""

    words: str  # for people
    cgroup_controllers: tuple[str, ...] | None = None  # None: the machines' own kernels know
    kvm: bool | None = None  # None: no virtual machines, or not known yet
    fabric: bool = True  # whether the machines are connected to each other


class Backend(Protocol):
    """Makes, starts, stops and removes the machines of one lab, which is locked."""

    @property
    def boot_seconds(self) -> float:
        """How long a machine may take from its start to a login."""
        ...

    def prepare(self, machines: Collection[Machine], *, rebuild: bool, say: Say) -> None:
        """Have the images at hand of which `make` makes these machines."""
        ...

    def release(self) -> None:
        """Give up the images that no machine stands on any more."""
        ...

    def exists(self, node: str) -> bool:
        """Tell whether the machine was made, completely."""
        ...

    def running(self, node: str) -> bool:
        """Tell whether the machine is switched on."""
        ...

    def make(self, node: Machine, host_key: Path) -> None:
        """Make the machine anew from its image; it is not started."""
        ...

    def update(self, node: Machine, host_key: Path) -> bool:
        """Bring an existing machine in line with its description; tell whether it must restart."""
        ...

    def require_room(self, machines: Collection[Machine]) -> None:
        """Check that this computer can run these machines beside what it runs already."""
        ...

    def start(self, node: Machine, host_key: Path) -> None:
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

    def seems_up(self, node: str) -> bool:
        """Tell whether it is worth the while to try a login."""
        ...

    def stuck(self, node: str) -> str:
        """Tell why a running machine will never come up; empty if nothing says so."""
        ...

    def warnings(self) -> list[Problem]:
        """Return what the lab works with, but its user should know."""
        ...


class Kind(Protocol):
    """A backend as such: what is needed before a lab is opened, and without its inventory."""

    def require(self) -> None:
        """Check that this user and this computer can have labs of this kind at all."""
        ...

    def require_own(self, name: str, dirs: LabDirs) -> None:
        """Check that what carries the lab's name on this computer is the lab's own."""
        ...

    def require_free(self, spec: LabSpec, dirs: LabDirs) -> None:
        """Check that nothing else uses what the lab is going to use."""
        ...

    def open(self, spec: LabSpec, dirs: LabDirs, login_key: str) -> Backend:
        """Make, or mend, what the machines have in common."""
        ...

    def tear_down(self, name: str, dirs: LabDirs) -> None:
        """Remove the machines and all that was made for them outside of the lab's folders."""
        ...

    def exists(self, dirs: LabDirs, node: str) -> bool:
        """Tell whether a machine was made, completely."""
        ...

    def running(self, dirs: LabDirs, node: str) -> bool:
        """Tell whether a machine is switched on."""
        ...

    def trouble(self, dirs: LabDirs, node: str) -> str:
        """Tell why a machine that is on may not answer; empty if nothing says so."""
        ...

    def nature(self, dirs: LabDirs, running: Collection[str]) -> Nature:
        """Measure what the machines stand on; `running` are those that are on."""
        ...
