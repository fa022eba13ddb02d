"""NCCL: what must not hold for a whole site, and what /etc/nccl.conf can say."""

import re
from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean

_KEY, _HCA = "site_nccl", "NCCL_IB_HCA"
# Variable → what it takes away.
_OFF = {
    "NCCL_P2P_DISABLE": "NVLink and PCIe between GPUs",
    "NCCL_SHM_DISABLE": "shared memory",
    "NCCL_IB_DISABLE": "RDMA",
}
# Variable → the value that leaves it to NCCL; None: there is none.
_BETTER_LEFT = {
    "NCCL_ALGO": None,
    "NCCL_NET_GDR_LEVEL": None,
    "NCCL_MIN_NCHANNELS": None,
    "NCCL_IB_ADAPTIVE_ROUTING": None,
    "NCCL_IB_GID_INDEX": "-1",
}
_NOT_BARE = re.compile(r"[\s\"'#]")
# A name such as mlx5_1 or bnxt_re0, in contrast to mlx5, which is the beginning of several.
_ONE_DEVICE = re.compile(r"_\w*\d$")


def variables_are_for_a_site(draft: Draft) -> Iterator[Problem]:
    """Check that nothing is set for all jobs that is for one of them."""
    for name, value in draft.keys.nccl.items():
        if name in _OFF and str(value) != "0" and value is not False:
            yield draft.problem(
                f"{name} takes {_OFF[name]} away from every job of the site",
                (_KEY, name),
                "remove it; set it in the one job that is to be examined",
                code="HPC1801",
            )
        elif name == "NCCL_PROTO":
            yield draft.problem(
                "NCCL_PROTO is forced for every job of the site, which can corrupt data",
                (_KEY, name),
                "remove it: NCCL knows which protocols the hardware supports",
                code="HPC1802",
            )
        elif name in _BETTER_LEFT and str(value) != _BETTER_LEFT[name]:
            yield draft.problem(
                f"{name} is set for every job of the site; NCCL finds it for each",
                (_KEY, name),
                "remove it, or say in site_acknowledged what it was measured to be good for",
                code="HPC1803",
            )


def values_are_bare(draft: Draft) -> Iterator[Problem]:
    """Check that NCCL reads from its file what is written here."""
    for name, value in draft.keys.nccl.items():
        if isinstance(value, bool):
            what, hint = f"{str(value).lower()}, which NCCL does not know", f"write {int(value)}"
        elif isinstance(value, str) and not value:
            what, hint = "empty", "give it a value, or remove it"
        elif isinstance(value, str) and _NOT_BARE.search(value):
            what = f"{value!r}: NCCL takes blanks, quotes and # as parts of it"
            hint = "write the bare value"
        else:
            continue
        yield draft.problem(f"{name} is {what}", (_KEY, name), hint, code="HPC1807")


def hcas_are_meant(draft: Draft) -> Iterator[Problem]:
    """Check that NCCL_IB_HCA matches the devices that it names, and no others."""
    value = draft.keys.nccl.get(_HCA)
    if not isinstance(value, str) or _NOT_BARE.search(value):
        return
    mark, listed = value[: len(value) - len(value.lstrip("^="))], value.lstrip("^=")
    names = [name.partition(":")[0] for name in listed.split(",") if name]
    known = _devices(draft)
    exact = "=" in mark
    path = (_KEY, _HCA)
    for name in () if exact else names:
        more = sorted({d for d in known if d.startswith(name)} - set(names))
        if more and name in known:
            yield draft.problem(
                f"{_HCA}: {name} also matches {', '.join(more)}",
                path,
                f'write it exactly: {_HCA}: "{mark}={listed}"',
                code="HPC1804",
            )
            return
    if not exact and (single := [name for name in names if _ONE_DEVICE.search(name)]):
        yield draft.problem(
            f"{_HCA}: {single[0]} is taken for the beginning of names",
            path,
            f'write it exactly: {_HCA}: "{mark}={listed}"',
            code="HPC1805",
        )
    for name in names if known and "^" not in mark else ():
        if not any(device == name if exact else device.startswith(name) for device in known):
            yield draft.problem(
                f"{_HCA} names {name}, which no fabric and no host of the site has",
                path,
                did_you_mean(name, known, f"the site has {', '.join(sorted(known))}"),
                code="HPC1806",
            )


def _devices(draft: Draft) -> set[str]:
    """List the RDMA devices that fabrics and hosts name."""
    known = {hca for fabric in draft.keys.fabrics.values() for hca in fabric.hcas}
    for variables in draft.inventory.hosts.values():
        devices = variables.get("rdma_devices")
        known.update(str(device) for device in (devices if isinstance(devices, list) else ()))
    return known


RULES = (variables_are_for_a_site, values_are_bare, hcas_are_meant)
