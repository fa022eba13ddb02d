"""Every reference lies below what physics allows, and above what nobody would mean.

Published thresholds have been ten and a thousand times too low, and above what a link carries:
such a figure makes a check that never fails, or one that fails on good hardware.
"""

from dataclasses import dataclass

from hpcsite.site.catalogue.models import Bandwidth, Figure, Gpu, Nic, NodeProfile, Reference

# Gigatransfers in a second on a lane, and the share that its encoding leaves for data.
_PCIE = {
    1: (2.5, 8 / 10),
    2: (5.0, 8 / 10),
    3: (8.0, 128 / 130),
    4: (16.0, 128 / 130),
    5: (32.0, 128 / 130),
    6: (64.0, 242 / 256),
}
_LANES = 16
# Where a GPU's generation is unknown, it is in no faster slot than the fastest known here.
_GENERATION = 5
# Below this share of its limit, a reference is a slip of the pen: an eighth (bits taken for bytes)
# is one; the lowest real gate is at 32 %.
LOWEST_SHARE = 0.2
# No source gives peaks of arithmetic, so these bands are plausible rather than physical: TFLOPS in
# a watt of TDP, and TFLOPS where the TDP is unknown.
_BF16_PER_W = (0.4, 3.0)
_BF16 = (200.0, 2500.0)
_FP64 = (10.0, 100.0)


@dataclass(frozen=True)
class Band:
    """What a reference may be: above `low`, below `high`, because of `why`."""

    low: float
    high: float
    why: str


def pcie_gbyte_s(generation: int, lanes: int) -> float:
    """Bandwidth of a PCIe link in one direction, after its encoding, in GB/s."""
    transfers, share = _PCIE[generation]
    return transfers * lanes * share / 8


def band(reference: Reference, gpu: Gpu | None, nic: Nic | None = None) -> Band | None:
    """Give the band of a reference of a GPU or an adapter; None where its limit is unknown."""
    if nic is not None:
        return _nic_band(reference, nic)
    if gpu is None:
        return None
    match reference.metric:
        case "h2d" | "d2h":
            return _host_band(gpu)
        case "hbm":
            return _of(gpu.hbm_gbyte_s, "the peak of the GPU's memory")
        case "p2p":
            return _of(gpu.nvlink_gbyte_s, "NVLink in one direction")
        case "nccl_all_reduce_busbw":
            return _all_reduce_band(reference, gpu)
        case "gemm_bf16":
            return _bf16_band(gpu)
        case "gemm_fp64":
            return Band(*_FP64, "what GPUs of this kind do in FP64")
        case _:
            return None


def _of(figure: Figure | Bandwidth | None, why: str) -> Band | None:
    return Band(figure.value * LOWEST_SHARE, figure.value, why) if figure else None


def _host_band(gpu: Gpu) -> Band:
    if gpu.c2c_gbyte_s:
        return Band(gpu.c2c_gbyte_s.value * LOWEST_SHARE, gpu.c2c_gbyte_s.value, "C2C one way")
    generation = gpu.pcie.generation.value if gpu.pcie.generation else _GENERATION
    lanes = gpu.pcie.lanes.value if gpu.pcie.lanes else _LANES
    limit = pcie_gbyte_s(generation, lanes)
    return Band(limit * LOWEST_SHARE, limit, f"PCIe generation {generation} x{lanes}")


def _all_reduce_band(reference: Reference, gpu: Gpu) -> Band | None:
    """Limit bus bandwidth, which overstates the wire where the switch does the sum (NVLS).

    There, of S bytes a GPU sends S to be summed and S/n of the result, so that algorithm bandwidth
    is at most B n/(n+1) and bus bandwidth, 2(n-1)/n times that, at most B 2(n-1)/(n+1).
    """
    if gpu.nvlink_gbyte_s is None or reference.gpus is None:
        return None
    limit, why = gpu.nvlink_gbyte_s.value, "NVLink in one direction"
    if reference.algorithm == "nvls":
        limit *= 2 * (reference.gpus - 1) / (reference.gpus + 1)
        why += f", summed in the switch for {reference.gpus} GPUs"
    return Band(limit * LOWEST_SHARE, limit, why)


def _bf16_band(gpu: Gpu) -> Band:
    if gpu.tdp_w is None:
        return Band(*_BF16, "what GPUs of this kind do in BF16")
    low, high = (per_w * gpu.tdp_w.value for per_w in _BF16_PER_W)
    return Band(low, high, f"what {gpu.tdp_w.value:g} W can do in BF16")


def _nic_band(reference: Reference, nic: Nic) -> Band | None:
    if nic.speed_gbit_s is None:
        return None
    rate = nic.speed_gbit_s.value
    if reference.metric == "nccl_busbw_per_nic":
        rate /= 8
    elif reference.metric != "ib_write_bw":
        return None
    return Band(rate * LOWEST_SHARE, rate, f"the adapter's {nic.speed_gbit_s.value:g} Gb/s")


def reference_problems(profile: NodeProfile | Gpu | Nic) -> dict[int, str]:
    """Say which references of a profile, or of one of its parts, cannot be right, by number.

    Where the part that limits one is unknown (`band` is None), nothing is said.
    """
    gpu = profile.gpu if isinstance(profile, NodeProfile) else None
    if isinstance(profile, Gpu):
        gpu = profile
    nic = profile if isinstance(profile, Nic) else None
    found = {
        number: _problem(reference, band(reference, gpu, nic))
        for number, reference in enumerate(profile.references)
    }
    return {number: problem for number, problem in found.items() if problem}


def _problem(reference: Reference, limit: Band | None) -> str:
    if limit is None:
        return ""
    said = f"{reference.metric} of {reference.value:g} {reference.unit} ({reference.applies})"
    if reference.value >= limit.high:
        return f"{said} is not below the limit of {limit.high:.4g}: {limit.why}"
    if reference.value <= limit.low:
        return f"{said} is too low to mean anything; the limit is {limit.high:.4g}: {limit.why}"
    return ""
