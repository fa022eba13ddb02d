"""A site's stack of software, what is found wrong with it, and the matrix as data."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Severity = Literal["error", "warning"]
Grade = Literal["A", "B", "C"]


@dataclass(frozen=True)
class OperatingSystem:
    """What the hosts run, as /etc/os-release has it: ID and VERSION_ID."""

    distribution: str
    version: str

    @property
    def is_deb(self) -> bool:
        """Whether its packages are dpkg's."""
        return self.distribution.lower() in ("debian", "ubuntu")


@dataclass(frozen=True)
class Stack:
    """The versions that a site pins; None where it takes what the distribution has."""

    os: OperatingSystem | None = None
    gpu_models: tuple[str, ...] = ()
    nvswitch: bool = False
    kernel: str | None = None
    slurm: str | None = None
    nvidia_driver: str | None = None
    fabric_manager: str | None = None
    cuda: str | None = None
    nccl: str | None = None
    nccl_cuda: str | None = None
    """The CUDA that NCCL was built with; not set: what NCCL's own version says (+cuda12.4)."""
    dcgm: str | None = None
    doca_ofed: str | None = None
    lustre: str | None = None
    beegfs: str | None = None
    pmix: str | None = None
    openmpi: str | None = None
    ucx: str | None = None

    def pin(self, name: str) -> str | None:
        """Give the version pinned for a piece of software."""
        version: str | None = getattr(self, name)
        return version


@dataclass(frozen=True)
class Finding:
    """Something about a stack that cannot be, or that nobody knows."""

    rule: str
    message: str
    hint: str
    source: str
    """Where the fact is from; empty where the finding says that there is none."""
    severity: Severity = "error"
    pins: tuple[str, ...] = field(default=())
    """The pins that it is about, the one to change first."""


# As a site writes it: key of site_software, which a message names.
PINS = (
    "kernel",
    "slurm",
    "nvidia_driver",
    "fabric_manager",
    "cuda",
    "nccl",
    "nccl_cuda",
    "dcgm",
    "doca_ofed",
    "lustre",
    "beegfs",
    "pmix",
    "openmpi",
    "ucx",
)
TITLES = {
    "kernel": "the kernel",
    "slurm": "Slurm",
    "nvidia_driver": "the NVIDIA driver",
    "fabric_manager": "Fabric Manager",
    "cuda": "CUDA",
    "nccl": "NCCL",
    "nccl_cuda": "the CUDA that NCCL was built with",
    "dcgm": "DCGM",
    "doca_ofed": "DOCA-OFED",
    "lustre": "Lustre",
    "beegfs": "BeeGFS",
    "pmix": "PMIx",
    "openmpi": "Open MPI",
    "ucx": "UCX",
}

Text = Annotated[str, Field(min_length=1)]


class Datum(BaseModel):
    """A fact of the matrix. Grade A: the owner's own text was read; B: quoted; C: a third party."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Text
    grade: Grade


class Advisory(Datum):
    """Security holes of Slurm, and the first version without them in each release."""

    cves: tuple[Text, ...] = Field(min_length=1)
    fixed: tuple[Text, ...] = Field(min_length=1)


class Backport(Datum):
    """A distribution's package of an older Slurm that carries an advisory's fixes."""

    distribution: Text
    version: Text
    package: Text
    cves: tuple[Text, ...] = Field(min_length=1)


class Offered(Datum):
    """The Slurm that a distribution installs where a site pins none, and its PMIx plugin."""

    distribution: Text
    version: Text
    package: Text
    pmix: int | None = None


class CudaFloor(Datum):
    """The oldest driver on which programs of a CUDA major version run at all."""

    cuda: int
    driver: Text


class CudaToolkit(Datum):
    """The oldest driver that serves a CUDA toolkit whole."""

    cuda: Text
    driver: Text


class DcgmFloor(Datum):
    """The oldest DCGM for a branch of the driver and the CUDA that comes with it."""

    driver: int
    cuda: int
    dcgm: int


class Note(Datum):
    """A rule without figures, or a report of what went wrong; the rule's code is in `checks`."""

    text: Text


class Kernels(Datum):
    """Kernels that a version of a module is known to build and run with."""

    version: Text
    kernels: tuple[Text, ...] = Field(min_length=1)


class Module(BaseModel):
    """A kernel module that does not come with the kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    judged: bool = Field(description="whether its kernels are part of the matrix")
    known: tuple[Kernels, ...] = ()
    reports: tuple[Note, ...] = Field(min_length=1)


class Together(Datum):
    """Two modules of which one builds against the other."""

    modules: tuple[Text, Text]
    text: Text


class SlurmPmix(Datum):
    """The first Slurm with a plugin for a major version of PMIx; none: older than the table."""

    pmix: int
    slurm: str | None


class OpenMpiPmix(Datum):
    """The oldest PMIx for a major version of Open MPI."""

    openmpi: int
    pmix: Text


class Matrix(BaseModel):
    """All that is known of which versions go together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    advisories: tuple[Advisory, ...]
    backports: tuple[Backport, ...]
    offered: tuple[Offered, ...]
    cuda_floors: tuple[CudaFloor, ...]
    cuda_toolkits: tuple[CudaToolkit, ...]
    dcgm_floors: tuple[DcgmFloor, ...]
    fabric_manager: tuple[Note, ...] = Field(min_length=1)
    modules: tuple[Module, ...]
    together: tuple[Together, ...]
    slurm_pmix: tuple[SlurmPmix, ...]
    openmpi_pmix: tuple[OpenMpiPmix, ...]
