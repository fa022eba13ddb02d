"""What other parts ask of a profile. None is unknown, never zero."""

from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel

from hpcsite.site.catalogue.models import (
    Figure,
    Gpu,
    Nic,
    NodeProfile,
    Reference,
    Sourced,
    SwitchProfile,
    Whole,
)

BTU_H_PER_W = 3.412
# What a machine of the lab cannot have: it is no thing of its own, and its GPUs are files.
_PHYSICAL = frozenset(
    {
        *("gpu", "nics"),
        *("nvme", "rack_units", "depth_mm", "weight_kg", "max_power_w", "heat_btu_h", "psu"),
        *("inlet", "inlet_volts_min", "inlet_volts_max", "inlet_amps", "airflow", "airflow_cfm"),
        *("inlet_celsius_min", "inlet_celsius_max"),
    }
)


class SlurmHardware(NamedTuple):
    """What a site's `hardware` of a node group asks for, as far as the profile knows it."""

    sockets: int | None
    cores_per_socket: int | None
    threads_per_core: int | None
    memory_mib: int | None


@dataclass(frozen=True)
class Gres:
    """The GPUs of a node, as NodeName has them; without a type where their model is unknown."""

    type: str | None
    count: int

    def __str__(self) -> str:
        return f"gpu:{self.type}:{self.count}" if self.type else f"gpu:{self.count}"


def _value(figure: Figure | None) -> float | None:
    return figure.value if figure else None


def _whole(figure: Whole | None) -> int | None:
    return figure.value if figure else None


def slurm_hardware(profile: NodeProfile) -> SlurmHardware:
    """Give the sockets, cores, threads and memory of a profile."""
    return SlurmHardware(
        _whole(profile.sockets),
        _whole(profile.cores_per_socket),
        _whole(profile.threads_per_core),
        _whole(profile.memory_mib),
    )


def gpu_gres(profile: NodeProfile) -> Gres | None:
    """Give the GRES of a profile's GPUs; None for no GPUs, and where their count is unknown."""
    count = _whole(profile.gpu_count)
    return Gres(profile.gpu.gres_type if profile.gpu else None, count) if count else None


def power_w(profile: NodeProfile | SwitchProfile) -> float | None:
    """Give the most that it draws, in watts."""
    return _value(profile.max_power_w)


def heat_w(profile: NodeProfile) -> float | None:
    """Give the heat to be cooled, in watts: the larger of power and published BTU/h.

    The two differ: a DGX H100's published BTU/h are 11.3 kW, its power 10.2 kW.
    """
    btu = _value(profile.heat_btu_h)
    known = [watts for watts in (power_w(profile), btu and btu / BTU_H_PER_W) if watts]
    return max(known, default=None)


def references(profile: NodeProfile) -> tuple[Reference, ...]:
    """All that a node must reach: of its GPUs, its adapters, and of the node as a whole.

    What holds for another number of GPUs, or beside another model of GPU, is left out.
    """
    of_gpu = profile.gpu.references if profile.gpu else ()
    of_nics = [reference for nics in profile.nics or () for reference in nics.nic.references]
    gpus = gpu_gres(profile)
    return tuple(
        reference
        for reference in (*of_gpu, *of_nics, *profile.references)
        if reference.gpus is None or (gpus and reference.gpus == gpus.count)
        if reference.gpu_type is None or (gpus and reference.gpu_type == gpus.type)
    )


def unknown(profile: NodeProfile | SwitchProfile | Gpu | Nic) -> list[str]:
    """Name every figure that has no source, as `field` or `field.below`."""
    skip = _PHYSICAL if isinstance(profile, NodeProfile) and profile.virtual else frozenset[str]()
    if isinstance(profile, NodeProfile) and profile.gpu_count and not profile.gpu_count.value:
        skip |= {"gpu"}
    return _unknown(profile, skip)


def _unknown(model: BaseModel, skip: frozenset[str]) -> list[str]:
    names: list[str] = []
    if isinstance(model, Gpu):
        # One of the two leads to the host.
        skip |= {"c2c_gbyte_s"} if model.c2c_gbyte_s is None else {"pcie"}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name in skip or isinstance(value, Sourced):
            continue
        if value is None:
            names.append(name)
        elif isinstance(value, tuple):
            below = [item for item in value if isinstance(item, BaseModel)]
            names += [
                f"{name}[{n}].{path}"
                for n, item in enumerate(below)
                if not isinstance(item, Reference)
                for path in _unknown(item, frozenset())
            ]
        elif isinstance(value, BaseModel):
            names += [f"{name}.{path}" for path in _unknown(value, frozenset())]
    return names
