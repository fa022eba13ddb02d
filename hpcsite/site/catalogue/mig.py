"""Whether a GPU can hold a MIG layout: its slices and the places where instances may begin."""

from collections.abc import Mapping
from dataclasses import dataclass

from hpcsite.site.catalogue.models import Gpu, Mig


@dataclass(frozen=True)
class LayoutProblem:
    """Why a layout is not known to fit; `unknown` where the catalogue cannot tell."""

    message: str
    hint: str = ""
    unknown: bool = False


def mig_layout_problems(gpu: Gpu, layout: Mapping[str, int]) -> list[LayoutProblem]:
    """Say why one GPU cannot hold a layout, e.g. {"1g.10gb": 7}; nothing means that it fits."""
    if gpu.mig is None:
        return [
            LayoutProblem(
                f"unknown: the catalogue does not say how {gpu.title} divides into MIG instances",
                hint="give its `mig` in the site's own hardware files",
                unknown=True,
            )
        ]
    problems = [
        problem for name, count in layout.items() for problem in _alone(gpu, gpu.mig, name, count)
    ]
    return problems or _together(gpu, gpu.mig, layout)


def _alone(gpu: Gpu, mig: Mig, name: str, count: int) -> list[LayoutProblem]:
    profile = mig.profiles.get(name)
    if profile is None:
        offered = f"it offers {', '.join(mig.profiles)}"
        return [LayoutProblem(f"{gpu.title} has no MIG profile {name}", offered)]
    if count < 1:
        return [LayoutProblem(f"{count} instances of {name}", "give 1 or more, or leave it out")]
    if count > profile.max_instances:
        return [
            LayoutProblem(
                f"{gpu.title} holds at most {profile.max_instances} of {name}, not {count}",
                "ask for fewer, or for a smaller profile",
            )
        ]
    return []


def _together(gpu: Gpu, mig: Mig, layout: Mapping[str, int]) -> list[LayoutProblem]:
    compute = sum(mig.profiles[name].compute_slices * count for name, count in layout.items())
    if compute > mig.compute_slices:
        return [_too_much(gpu, compute, mig.compute_slices, "compute")]
    memory = sum(mig.profiles[name].memory_slices * count for name, count in layout.items())
    if memory > mig.memory_slices:
        return [_too_much(gpu, memory, mig.memory_slices, "memory")]
    # The widest first: they have the fewest places.
    wanted = sorted(
        (name for name, count in layout.items() for _ in range(count)),
        key=lambda name: (-mig.profiles[name].memory_slices, name),
    )
    if _placed(mig, wanted, frozenset()):
        return []
    return [
        LayoutProblem(
            f"the instances have slices enough on {gpu.title}, but no places that do not overlap",
            "look at the placements with `nvidia-smi mig -lgipp`",
        )
    ]


def _too_much(gpu: Gpu, wanted: int, there: int, kind: str) -> LayoutProblem:
    return LayoutProblem(
        f"the layout takes {wanted} {kind} slices; {gpu.title} has {there}",
        "take an instance away, or a smaller profile",
    )


def _placed(mig: Mig, wanted: list[str], taken: frozenset[int]) -> bool:
    """Try every place of the first instance, then of the rest; at most seven deep."""
    if not wanted:
        return True
    profile = mig.profiles[wanted[0]]
    for begin in profile.placements:
        slices = frozenset(range(begin, begin + profile.memory_slices))
        if not slices & taken and _placed(mig, wanted[1:], taken | slices):
            return True
    return False
