"""References against physics; and that a wrong one is caught, among them those once published."""

import pytest

from hpcsite.site.catalogue import Catalogue, load_catalogue, reference_problems
from hpcsite.site.catalogue.limits import band, pcie_gbyte_s
from hpcsite.site.catalogue.models import UNITS, Gpu, Metric, Nic, NodeProfile, Reference, Source

CATALOGUE: Catalogue = load_catalogue()
OWNERS: dict[str, Gpu | Nic | NodeProfile] = {
    **CATALOGUE.gpus,
    **CATALOGUE.nics,
    **{f"node {name}": node for name, node in CATALOGUE.nodes.items()},
}
REFERENCES = [
    (name, number) for name, owner in OWNERS.items() for number in range(len(owner.references))
]


def _with(owner: Gpu | Nic | NodeProfile, number: int, value: float) -> Gpu | Nic | NodeProfile:
    changed = list(owner.references)
    changed[number] = changed[number].model_copy(update={"value": value})
    return owner.model_copy(update={"references": tuple(changed)})


def _reference(metric: Metric, value: float, gpus: int | None = None, **more: str) -> Reference:
    values = {"metric": metric, "value": value, "unit": UNITS[metric], "gpus": gpus}
    given = {"kind": "gate", "applies": "here", "source": Source(title="test"), **more}
    return Reference.model_validate(values | given)


@pytest.mark.parametrize(("name", "number"), REFERENCES)
def test_every_reference_is_within_a_limit_that_is_known(name: str, number: int) -> None:
    owner = OWNERS[name]
    gpu = owner if isinstance(owner, Gpu) else None
    nic = owner if isinstance(owner, Nic) else None
    if isinstance(owner, NodeProfile):
        gpu = owner.gpu
    reference = owner.references[number]
    assert band(reference, gpu, nic) is not None
    assert number not in reference_problems(owner)


@pytest.mark.parametrize(("name", "number"), REFERENCES)
@pytest.mark.parametrize("factor", [8, 10, 1000, 1 / 8, 1 / 10, 1 / 1000])
def test_slips_of_the_pen_are_caught_in_every_reference(
    name: str, number: int, factor: float
) -> None:
    owner = OWNERS[name]
    wrong = _with(owner, number, owner.references[number].value * factor)
    (message,) = reference_problems(wrong).values()
    assert ("too low" in message) is (factor < 1)


def test_there_are_references_of_every_kind() -> None:
    found = {OWNERS[name].references[number].metric for name, number in REFERENCES}
    assert found == UNITS.keys()


@pytest.mark.parametrize(
    ("gpu", "metric", "value", "more"),
    [
        # DCGM: 2333 in a field of MB/s, and 137500 for 1372500.
        ("h200-sxm-141", "hbm", 2.333, {}),
        ("a100-sxm-80", "hbm", 137.5, {}),
        ("l40s", "hbm", 49.05, {}),
        # AWS: 300 on A100, 800 on H100 and H200.
        ("a100-sxm-80", "nccl_all_reduce_busbw", 300, {"gpus": 8}),
        ("h100-sxm-80", "nccl_all_reduce_busbw", 800, {"gpus": 8, "algorithm": "nvls"}),
        # Azure's gate of eight GPUs, on a pair that has two thirds of the links.
        ("h100-nvl", "p2p", 335, {}),
        # What a ring cannot do.
        ("h100-sxm-80", "nccl_all_reduce_busbw", 480, {"gpus": 8, "algorithm": "ring"}),
        # More than PCIe carries; NVLink where there is none.
        ("a100-sxm-80", "h2d", 32, {}),
        ("h100-sxm-80", "d2h", 64, {}),
        ("gh200-96", "h2d", 450, {}),
        ("l40s", "p2p", 20, {}),
    ],
)
def test_published_mistakes_are_caught(
    gpu: str, metric: Metric, value: float, more: dict[str, str]
) -> None:
    reference = _reference(metric, value, **more)  # type: ignore[arg-type]
    owner = CATALOGUE.gpus[gpu].model_copy(update={"references": (reference,)})
    assert list(reference_problems(owner)) == [0]


def test_pcie_after_its_encoding() -> None:
    assert pcie_gbyte_s(3, 16) == pytest.approx(15.75, abs=0.01)
    assert pcie_gbyte_s(4, 16) == pytest.approx(31.51, abs=0.01)
    assert pcie_gbyte_s(5, 16) == pytest.approx(63.02, abs=0.01)
    assert pcie_gbyte_s(2, 8) == pytest.approx(4.0)


@pytest.mark.parametrize(("gpus", "limit"), [(4, 540), (8, 700)])
def test_sums_in_the_switch_have_a_limit_of_their_own(gpus: int, limit: float) -> None:
    reference = _reference("nccl_all_reduce_busbw", 400, gpus, algorithm="nvls")
    found = band(reference, CATALOGUE.gpus["h200-sxm-141"])
    assert found is not None
    assert found.high == pytest.approx(limit)


def test_bits_are_held_against_bits_and_bytes_against_bytes() -> None:
    nic = CATALOGUE.nics["ndr-400"]
    bits, sums = _reference("ib_write_bw", 380), _reference("nccl_busbw_per_nic", 46)
    highs = [found.high for found in (band(bits, None, nic), band(sums, None, nic)) if found]
    assert highs == [400, 50]


def test_a_metric_in_another_unit_is_no_reference() -> None:
    with pytest.raises(ValueError, match="ib_write_bw is given in Gb/s, not GB/s"):
        _reference("ib_write_bw", 380, unit="GB/s")


def test_all_reduce_needs_the_number_of_gpus() -> None:
    with pytest.raises(ValueError, match="needs gpus"):
        _reference("nccl_all_reduce_busbw", 400)


def test_nothing_is_said_where_the_limit_is_unknown() -> None:
    gpu = CATALOGUE.gpus["h100-nvl"]
    owner = gpu.model_copy(update={"references": (_reference("hbm", 1e9),)})
    assert band(owner.references[0], owner) is None
    assert reference_problems(owner) == {}
