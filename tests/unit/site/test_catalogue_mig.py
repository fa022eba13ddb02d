"""MIG layouts: what fits, what does not, and what nobody knows."""

from itertools import product

import pytest

from hpcsite.site.catalogue import Catalogue, load_catalogue, mig_layout_problems

CATALOGUE: Catalogue = load_catalogue()


@pytest.mark.parametrize(
    "layout",
    [
        {"1g.10gb": 7},
        {"7g.80gb": 1},
        {"3g.40gb": 2},
        {"4g.40gb": 1, "3g.40gb": 1},
        {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1},
        {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2},
        {"2g.20gb": 3, "1g.10gb": 1},
        {"2g.20gb": 3, "1g.20gb": 1},
        {"1g.20gb": 4},
        {"1g.10gb+me": 1, "1g.10gb": 6},
        {"3g.40gb": 1, "1g.10gb": 4},
    ],
)
def test_layouts_that_fit(layout: dict[str, int]) -> None:
    assert mig_layout_problems(CATALOGUE.gpus["h100-sxm-80"], layout) == []


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ({"1g.10gb": 8}, "at most 7 of 1g.10gb, not 8"),
        ({"7g.80gb": 1, "1g.10gb": 1}, "takes 8 compute slices"),
        ({"3g.40gb": 2, "1g.10gb": 1}, "takes 9 memory slices"),
        ({"4g.40gb": 2}, "at most 1 of 4g.40gb"),
        ({"1g.20gb": 4, "1g.10gb": 1}, "takes 9 memory slices"),
        ({"1g.10gb+me": 2}, "at most 1 of 1g.10gb+me"),
        ({"1g.10gb": 0}, "0 instances"),
        ({"2g.20gb": -1}, "-1 instances"),
        ({"1g.5gb": 7}, "no MIG profile 1g.5gb"),
        ({"2g.24gb": 1}, "no MIG profile 2g.24gb"),
    ],
)
def test_layouts_that_do_not_fit(layout: dict[str, int], says: str) -> None:
    (problem,) = mig_layout_problems(CATALOGUE.gpus["h100-sxm-80"], layout)
    assert says in problem.message
    assert problem.hint
    assert not problem.unknown


def test_slices_enough_but_no_place_for_them() -> None:
    gpu = CATALOGUE.gpus["a100-sxm-40"]
    assert gpu.mig is not None
    narrow = gpu.mig.profiles["2g.10gb"].model_copy(update={"placements": (1, 3)})
    mig = gpu.mig.model_copy(update={"profiles": {**gpu.mig.profiles, "2g.10gb": narrow}})
    (problem,) = mig_layout_problems(
        gpu.model_copy(update={"mig": mig}), {"3g.20gb": 1, "2g.10gb": 2}
    )
    assert "no places that do not overlap" in problem.message


@pytest.mark.parametrize("name", ["b200", "l40s", "gh200-96", "h100-nvl"])
def test_an_unknown_geometry_never_fits(name: str) -> None:
    for layout in ({"1g.10gb": 1}, {}):
        (problem,) = mig_layout_problems(CATALOGUE.gpus[name], layout)
        assert problem.unknown
        assert problem.message.startswith("unknown")


def test_names_follow_the_memory_of_the_gpu() -> None:
    full = {gpu.name: list(gpu.mig.profiles)[-1] for gpu in CATALOGUE.gpus.values() if gpu.mig}
    assert full == {
        "a100-sxm-40": "7g.40gb",
        "a100-sxm-80": "7g.80gb",
        "h100-sxm-80": "7g.80gb",
        "h200-sxm-141": "7g.141gb",
    }
    for gpu in CATALOGUE.gpus.values():
        for name, profile in (gpu.mig.profiles if gpu.mig else {}).items():
            assert name.startswith(f"{profile.compute_slices}g.")
            assert gpu.mig is not None
            assert max(profile.placements) + profile.memory_slices <= gpu.mig.memory_slices


def test_every_small_layout_agrees_with_a_search_by_brute_force() -> None:
    gpu = CATALOGUE.gpus["h100-sxm-80"]
    assert gpu.mig is not None
    names = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb"]
    fits = 0
    for counts in product(range(4), repeat=len(names)):
        layout = {name: count for name, count in zip(names, counts, strict=True) if count}
        wanted = [gpu.mig.profiles[name] for name, count in layout.items() for _ in range(count)]
        if len(wanted) > 4:
            continue
        expected = sum(profile.compute_slices for profile in wanted) <= 7 and any(
            len(taken) == len(set(taken))
            for places in product(*(profile.placements for profile in wanted))
            for taken in [
                [
                    begin + step
                    for begin, profile in zip(places, wanted, strict=True)
                    for step in range(profile.memory_slices)
                ]
            ]
        )
        assert (mig_layout_problems(gpu, layout) == []) is expected, layout
        fits += expected
    assert fits > 40
