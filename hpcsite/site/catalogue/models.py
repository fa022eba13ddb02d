"""The frozen models of the hardware catalogue. What is None is unknown."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

NAME = r"^[a-z][a-z0-9.-]*$"

Name = Annotated[str, Field(pattern=NAME, max_length=63)]
Unit = Literal["GB/s", "Gb/s", "TFLOPS"]
Metric = Literal[
    "h2d",
    "d2h",
    "p2p",
    "hbm",
    "gemm_bf16",
    "gemm_fp64",
    "nccl_all_reduce_busbw",
    "nccl_busbw_per_nic",
    "ib_write_bw",
]
Algorithm = Literal["ring", "nvls", "any"]

# The one unit that each metric is given in: bits and bytes can then never be mixed.
UNITS: dict[Metric, Unit] = {
    "h2d": "GB/s",
    "d2h": "GB/s",
    "p2p": "GB/s",
    "hbm": "GB/s",
    "gemm_bf16": "TFLOPS",
    "gemm_fp64": "TFLOPS",
    "nccl_all_reduce_busbw": "GB/s",
    "nccl_busbw_per_nic": "GB/s",
    "ib_write_bw": "Gb/s",
}


class Frozen(BaseModel):
    """Base of every model: immutable, and a field that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Frozen):
    """Where a figure comes from."""

    title: str = Field(min_length=1)
    url: str = ""
    grade: Literal["A", "B", "C", "D", ""] = Field(
        "",
        description="A: the maker's own text; B: quoted by others; C: others only; D: arithmetic",
    )


class Sourced(Frozen):
    """Base of everything that carries its source."""

    source: Source
    note: str = ""


class Whole(Sourced):
    """A whole number."""

    value: int = Field(ge=0, strict=True)


class Figure(Sourced):
    """A measure in the unit that its field names."""

    value: float = Field(gt=0, allow_inf_nan=False, strict=True)


class Bandwidth(Sourced):
    """A bandwidth; zero where there is no such link."""

    value: float = Field(ge=0, allow_inf_nan=False, strict=True)


class Celsius(Sourced):
    """A temperature; it may be below zero."""

    value: float = Field(ge=-50, le=150, allow_inf_nan=False, strict=True)


class Words(Sourced):
    """What is said in words, e.g. a plug."""

    value: str = Field(min_length=1)


class Reference(Sourced):
    """What hardware must reach, or what others have measured on it.

    A gate is a lower limit as it stands. Of a measured figure, `tolerance_percent` says how far
    below it is still good; None is unknown, and such a figure judges nothing by itself.
    """

    metric: Metric
    value: float = Field(gt=0, allow_inf_nan=False, strict=True)
    unit: Unit
    kind: Literal["gate", "measured"]
    applies: str = Field(min_length=1, description="in words: to what it applies")
    gpus: int | None = Field(None, ge=1, description="GPUs that take part in a collective")
    algorithm: Algorithm = "any"
    gpu_direct: bool = False
    gpu_type: str | None = Field(None, description="holds for nodes with this GRES type only")
    tolerance_percent: float | None = Field(None, ge=0, lt=100)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.unit != UNITS[self.metric]:
            raise ValueError(f"{self.metric} is given in {UNITS[self.metric]}, not {self.unit}")
        if self.metric == "nccl_all_reduce_busbw" and (self.gpus or 0) < 2:
            raise ValueError("a reference of all-reduce needs gpus: 2 or more")
        return self


class PcieGeneration(Whole):
    """A generation of PCIe."""

    value: int = Field(ge=1, le=6, strict=True)


class PcieLanes(Whole):
    """Lanes of a PCIe link."""

    value: int = Field(ge=1, le=32, strict=True)


class Pcie(Frozen):
    """The link between a device and its host."""

    generation: PcieGeneration | None = None
    lanes: PcieLanes | None = None


class MigProfile(Frozen):
    """One kind of GPU instance: what it takes, and on which memory slice it may begin."""

    compute_slices: int = Field(ge=1)
    memory_slices: int = Field(ge=1)
    placements: tuple[int, ...] = Field(min_length=1)
    max_instances: int = Field(ge=1)


class Mig(Sourced):
    """How a GPU divides into instances."""

    compute_slices: int = Field(ge=1)
    memory_slices: int = Field(ge=1)
    profiles: dict[str, MigProfile] = Field(min_length=1)


class Gpu(Frozen):
    """A model of GPU."""

    name: Name
    title: str
    gres_type: str = Field(pattern=r"^[a-z][a-z0-9_.-]*$", description="Type in gres.conf")
    words: tuple[str, ...] = Field(
        min_length=1, description="all of them stand in the name that nvidia-smi gives"
    )
    not_words: tuple[str, ...] = Field((), description="and none of these")
    memory_gb: Figure | None = None
    hbm_gbyte_s: Figure | None = None
    nvlink_gbyte_s: Bandwidth | None = Field(None, description="of one GPU, one direction")
    c2c_gbyte_s: Figure | None = Field(None, description="CPU to GPU, in the place of PCIe")
    pcie: Pcie = Pcie()
    tdp_w: Figure | None = None
    mig: Mig | None = None
    references: tuple[Reference, ...] = ()


class Nic(Frozen):
    """A model of network adapter, per port."""

    name: Name
    title: str
    speed_gbit_s: Figure | None = None
    references: tuple[Reference, ...] = ()


class NicSet(Frozen):
    """Adapters of one kind in a node."""

    nic: Nic
    count: Whole | None = None
    rails: Whole | None = None
    use: Literal["compute", "storage", "any"] = "any"


class Nvme(Frozen):
    """Local drives."""

    count: Whole | None = None
    size_gb: Figure | None = None


class Psu(Frozen):
    """Power supplies. How many are needed is not how many feeds can be lost."""

    count: Whole | None = None
    rating_w: Figure | None = None
    needed_full: Whole | None = Field(None, description="for full power")
    needed_degraded: Whole | None = Field(None, description="to run at all, at reduced power")


class NodeProfile(Frozen):
    """A kind of node."""

    name: Name
    title: str
    product_names: tuple[str, ...] = Field((), description="words in the firmware's product name")
    virtual: bool = Field(default=False, description="no machine of its own: the lab's nodes")
    sockets: Whole | None = None
    cores_per_socket: Whole | None = None
    threads_per_core: Whole | None = None
    memory_mib: Whole | None = None
    gpu: Gpu | None = None
    gpu_count: Whole | None = None
    nics: tuple[NicSet, ...] | None = None
    nvme: Nvme = Nvme()
    rack_units: Whole | None = None
    depth_mm: Figure | None = None
    weight_kg: Figure | None = None
    max_power_w: Figure | None = None
    heat_btu_h: Figure | None = None
    psu: Psu = Psu()
    inlet: Words | None = None
    inlet_volts_min: Figure | None = None
    inlet_volts_max: Figure | None = None
    inlet_amps: Figure | None = None
    airflow: Words | None = None
    airflow_cfm: Figure | None = None
    inlet_celsius_min: Celsius | None = None
    inlet_celsius_max: Celsius | None = None
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()


class SwitchProfile(Frozen):
    """A kind of switch. `ports` are those of its main speed."""

    name: Name
    title: str
    fabric: Literal["infiniband", "ethernet"]
    ports: Whole | None = None
    speed_gbit_s: Figure | None = None
    connector: Words | None = None
    rack_units: Whole | None = None
    depth_mm: Figure | None = None
    weight_kg: Figure | None = None
    typical_power_w: Figure | None = None
    max_power_w: Figure | None = None
    notes: tuple[str, ...] = ()


class Catalogue(Frozen):
    """All profiles by name: hpcsite's own and, over them, the site's."""

    gpus: dict[str, Gpu] = {}
    nics: dict[str, Nic] = {}
    nodes: dict[str, NodeProfile] = {}
    switches: dict[str, SwitchProfile] = {}
