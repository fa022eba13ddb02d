"""Which profiles a machine may be, from what it says of itself; with the reasons."""

import re
from dataclasses import dataclass, field

from hpcsite.site.catalogue.facts import slurm_hardware
from hpcsite.site.catalogue.models import Catalogue, Gpu, NodeProfile

_WORD = re.compile(r"[a-z0-9]+")
# Firmware keeps some memory: what a machine reports is a little below what is built in.
_MEMORY_SHARE = 0.9


@dataclass(frozen=True)
class Observed:
    """What a machine reports. None is not known; `gpus` has one product name for each GPU."""

    sockets: int | None = None
    cores_per_socket: int | None = None
    memory_mib: int | None = None
    gpus: tuple[str, ...] = ()
    hcas: int | None = None
    product: str = ""


@dataclass(frozen=True)
class Candidate:
    """A profile that fits, at least in its GPUs: what agrees, what differs, what is unknown."""

    profile: NodeProfile
    agrees: tuple[str, ...] = field(default=())
    differs: tuple[str, ...] = field(default=())
    unknown: tuple[str, ...] = field(default=())

    @property
    def exact(self) -> bool:
        """Whether something agrees and nothing differs."""
        return bool(self.agrees) and not self.differs


@dataclass
class _Reasons:
    agrees: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    named: bool = False

    def compare(self, what: str, seen: int | None, said: int | None) -> None:
        if seen is None or said is None:
            self.unknown.append(f"{what} not known of the {'host' if seen is None else 'profile'}")
        elif seen == said:
            self.agrees.append(f"{what}: {seen}")
        else:
            self.differs.append(f"{what}: {seen}, the profile has {said}")


def is_gpu(product: str, gpu: Gpu) -> bool:
    """Whether a product name as nvidia-smi gives it is this model of GPU."""
    words = set(_WORD.findall(product.lower()))
    return words >= set(gpu.words) and not words & set(gpu.not_words)


def nearest_profile(observed: Observed, catalogue: Catalogue) -> list[Candidate]:
    """List the profiles that a machine may be, the nearest first; a wrong GPU is none of them."""
    found: list[tuple[tuple[int, int, int, int, int, str], Candidate]] = []
    for profile in catalogue.nodes.values():
        reasons = _compared(observed, profile)
        if reasons is None:
            continue
        candidate = Candidate(
            profile, tuple(reasons.agrees), tuple(reasons.differs), tuple(reasons.unknown)
        )
        rank = (
            -int(reasons.named),
            # A profile that knows no GPU fits every one: it is the last resort.
            int(profile.gpu is None),
            len(reasons.differs),
            -len(reasons.agrees),
            # Among equals, a profile of no maker in particular is the more honest proposal.
            len(profile.product_names),
            profile.name,
        )
        found.append((rank, candidate))
    return [candidate for _, candidate in sorted(found, key=lambda item: item[0])]


def _compared(observed: Observed, profile: NodeProfile) -> _Reasons | None:
    if profile.virtual or not _same_kind(observed, profile):
        return None
    reasons = _Reasons()
    _compare_product(observed, profile, reasons)
    if profile.gpu and observed.gpus:
        reasons.agrees.append(f"GPU model: {profile.gpu.title}")
    count = profile.gpu_count.value if profile.gpu_count else None
    reasons.compare("GPUs", len(observed.gpus), count)
    hardware = slurm_hardware(profile)
    reasons.compare("sockets", observed.sockets, hardware.sockets)
    reasons.compare("cores in a socket", observed.cores_per_socket, hardware.cores_per_socket)
    _compare_memory(observed.memory_mib, hardware.memory_mib, reasons)
    _compare_hcas(observed.hcas, _hcas(profile), reasons)
    return reasons


def _same_kind(observed: Observed, profile: NodeProfile) -> bool:
    """Whether both have GPUs or neither, and all of them the same model where it is known."""
    without = profile.gpu_count is not None and profile.gpu_count.value == 0
    if not observed.gpus or without:
        return not observed.gpus and without
    gpu = profile.gpu
    return gpu is None or all(is_gpu(product, gpu) for product in observed.gpus)


def _compare_product(observed: Observed, profile: NodeProfile, reasons: _Reasons) -> None:
    """Compare the machine's own name, if it says one; letters and digits only."""
    if not observed.product:
        return
    said = "".join(_WORD.findall(observed.product.lower()))
    names = ["".join(_WORD.findall(name.lower())) for name in profile.product_names]
    if any(name in said for name in names):
        reasons.named = True
        reasons.agrees.append(f"product: {observed.product}")
    elif names:
        reasons.differs.append(f"product: {observed.product}")


def _compare_memory(seen: int | None, said: int | None, reasons: _Reasons) -> None:
    if seen is not None and said is not None and said * _MEMORY_SHARE <= seen <= said:
        reasons.agrees.append(f"memory: {seen} MiB of {said}")
    else:
        reasons.compare("memory in MiB", seen, said)


def _compare_hcas(seen: int | None, said: int | None, reasons: _Reasons) -> None:
    """More than the profile knows of is no difference: storage has adapters of its own."""
    if seen is not None and said is not None and seen > said:
        reasons.agrees.append(f"HCAs: {seen}, of which the profile knows {said}")
    else:
        reasons.compare("HCAs", seen, said)


def _hcas(profile: NodeProfile) -> int | None:
    if profile.nics is None or any(nics.count is None for nics in profile.nics):
        return None
    return sum(nics.count.value for nics in profile.nics if nics.count)
