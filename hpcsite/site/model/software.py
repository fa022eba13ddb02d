"""Pins of the software stack."""

from typing import Annotated

from pydantic import Field

from hpcsite.site.model.base import VERSION, Frozen

Version = Annotated[str, Field(pattern=VERSION)]


class Software(Frozen):
    """Versions that every node has, in quotes. What is not set is the distribution's."""

    kernel: Version | None = Field(
        None, description="Linux, as `uname -r` says", examples=["6.8.0-45-generic"]
    )
    slurm: Version | None = Field(None, description="Slurm", examples=["24.11.5"])
    nvidia_driver: Version | None = Field(None, description="NVIDIA driver", examples=["550.90.07"])
    fabric_manager: Version | None = Field(
        None, description="NVIDIA Fabric Manager; the same as the driver's"
    )
    cuda: Version | None = Field(None, description="CUDA toolkit", examples=["12.4"])
    nccl: Version | None = Field(None, description="NCCL", examples=["2.21.5-1+cuda12.4"])
    dcgm: Version | None = Field(None, description="DCGM")
    doca_ofed: Version | None = Field(None, description="DOCA-OFED, NVIDIA's RDMA stack")
    lustre: Version | None = Field(None, description="Lustre, client and server")
    beegfs: Version | None = Field(None, description="BeeGFS, client and server")
    pmix: Version | None = Field(None, description="PMIx")
    openmpi: Version | None = Field(None, description="Open MPI")
    ucx: Version | None = Field(None, description="UCX")
