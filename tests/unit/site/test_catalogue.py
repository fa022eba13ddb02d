"""The catalogue's own data: the profiles that there must be, their figures and their sources."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from hpcsite.site.catalogue import (
    Catalogue,
    gpu_gres,
    heat_w,
    load_catalogue,
    power_w,
    references,
    slurm_hardware,
    unknown,
)
from hpcsite.site.catalogue.load import DATA, named_sources, read_catalogue
from hpcsite.site.catalogue.models import Mig, Reference, Sourced

ROOT = Path(__file__).resolve().parents[3]
NODES = (
    *("dgx-a100-40", "dgx-a100-80", "dgx-h100", "dgx-h200", "dgx-b200"),
    *("xe9680-h100", "xe9680-h200", "supermicro-8xh100", "hpe-8xh100", "lenovo-8xh100"),
    *("generic-4xl40s", "generic-2xh100-nvl", "gh200", "generic-cpu", "workstation-gpu"),
    *("lab-nspawn", "lab-vm"),
)
SWITCHES = ("qm9700", "qm8700", "sn5600", "sn3700")


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def sourced(model: BaseModel) -> Iterator[Sourced]:
    """Every figure below a model."""
    if isinstance(model, Sourced):
        yield model
    for name in type(model).model_fields:
        value = getattr(model, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, BaseModel):
                yield from sourced(item)


def test_own_files_have_no_problem() -> None:
    assert read_catalogue()[1] == []


def test_profiles_that_there_must_be(catalogue: Catalogue) -> None:
    assert set(NODES) <= catalogue.nodes.keys()
    assert set(SWITCHES) <= catalogue.switches.keys()


def test_every_figure_has_a_source_that_is_listed(catalogue: Catalogue) -> None:
    known = set(named_sources().values())
    profiles = (*catalogue.nodes.values(), *catalogue.switches.values())
    figures = [figure for profile in profiles for figure in sourced(profile)]
    assert len(figures) > 300
    assert [figure for figure in figures if figure.source not in known] == []


def test_every_listed_source_is_used() -> None:
    text = "".join(
        path.read_text(encoding="utf-8") for path in DATA.glob("*.yml") if path.stem != "sources"
    )
    assert [name for name in named_sources() if f"source: {name}" not in text] == []


def test_data_is_inside_of_the_package_that_the_wheel_takes() -> None:
    assert DATA.is_relative_to(ROOT / "hpcsite")
    assert 'packages = ["hpcsite"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "site"), [("lab-nspawn", "lab"), ("lab-vm", "vmlab")])
def test_lab_nodes_are_what_their_inventories_declare(
    catalogue: Catalogue, name: str, site: str
) -> None:
    path = ROOT / "inventory" / site / "group_vars" / "all" / "slurm.yml"
    group = yaml.safe_load(path.read_text(encoding="utf-8"))["site_node_groups"]["gpu"]
    profile = catalogue.nodes[name]
    assert slurm_hardware(profile)._asdict() == group["hardware"]
    gres = gpu_gres(profile)
    assert gres is not None
    assert (str(gres), gres.count) == (f"gpu:{group['gpus']['count']}", group["gpus"]["count"])
    assert unknown(profile) == []


@pytest.mark.parametrize(
    ("name", "units", "kw", "supplies"),
    [
        ("dgx-a100-80", 6, 6.5, (6, 3000, 3, None)),
        ("dgx-h100", 8, 10.2, (6, 3300, 4, 3)),
        ("dgx-h200", 8, 10.2, (6, 3300, 4, 3)),
        ("dgx-b200", 10, 14.3, (6, 3300, 5, 3)),
        ("xe9680-h200", 6, None, (6, 2800, 5, None)),
        ("supermicro-8xh100", 8, None, (6, 3000, 4, None)),
        ("lenovo-8xh100", 8, None, (None, None, None, None)),
    ],
)
def test_what_racks_are_planned_with(
    catalogue: Catalogue, name: str, units: int, kw: float | None, supplies: tuple[int | None, ...]
) -> None:
    profile = catalogue.nodes[name]
    psu = profile.psu
    assert profile.rack_units is not None
    assert profile.rack_units.value == units
    assert power_w(profile) == (kw and kw * 1000)
    figures = (psu.count, psu.rating_w, psu.needed_full, psu.needed_degraded)
    assert tuple(figure and figure.value for figure in figures) == supplies


def test_supplies_that_are_enough_carry_the_power(catalogue: Catalogue) -> None:
    checked = 0
    for profile in catalogue.nodes.values():
        psu, power = profile.psu, power_w(profile)
        if psu.count and psu.needed_full:
            assert psu.needed_full.value <= psu.count.value
        if psu.rating_w and psu.needed_full and power:
            assert power <= psu.needed_full.value * psu.rating_w.value
            checked += 1
        if psu.needed_degraded and psu.needed_full:
            assert psu.needed_degraded.value < psu.needed_full.value
    assert checked >= 5


def test_heat_is_the_larger_of_power_and_btu(catalogue: Catalogue) -> None:
    heat = {name: heat_w(catalogue.nodes[name]) for name in ("dgx-h100", "dgx-b200", "gh200")}
    assert heat["dgx-h100"] == pytest.approx(11_300, abs=1)
    assert heat["dgx-b200"] == pytest.approx(14_300, abs=1)
    assert heat["gh200"] is None


def test_switches(catalogue: Catalogue) -> None:
    switch = catalogue.switches["qm9700"]
    assert switch.ports is not None
    assert switch.speed_gbit_s is not None
    assert (switch.ports.value, switch.speed_gbit_s.value, power_w(switch)) == (64, 400, 1720)
    assert power_w(catalogue.switches["sn5600"]) is None
    assert unknown(catalogue.switches["sn5600"]) == ["max_power_w"]
    assert {"depth_mm", "weight_kg", "max_power_w"} <= set(unknown(catalogue.switches["qm8700"]))


def test_what_no_source_gives_is_unknown(catalogue: Catalogue) -> None:
    profile = catalogue.nodes["dgx-h100"]
    assert slurm_hardware(profile) == (None, None, None, None)
    assert unknown(profile) == [
        *("sockets", "cores_per_socket", "threads_per_core", "memory_mib"),
        *("nvme.count", "nvme.size_gb"),
    ]
    assert "nics" in unknown(catalogue.nodes["dgx-h200"])
    assert "gpu" in unknown(catalogue.nodes["workstation-gpu"])
    assert "gpu" not in unknown(catalogue.nodes["generic-cpu"])
    assert "gpu.tdp_w" in unknown(catalogue.nodes["gh200"])
    assert "gpu.mig" in unknown(catalogue.nodes["dgx-b200"])


def test_gres(catalogue: Catalogue) -> None:
    gres = {name: str(gpu_gres(catalogue.nodes[name])) for name in NODES}
    assert gres["dgx-h100"] == "gpu:h100:8"
    assert gres["generic-2xh100-nvl"] == "gpu:h100_nvl:2"
    assert gres["generic-4xl40s"] == "gpu:l40s:4"
    assert gres["lab-vm"] == "gpu:4"
    assert gres["generic-cpu"] == gres["workstation-gpu"] == "None"


def test_references_are_those_of_the_node(catalogue: Catalogue) -> None:
    h100 = references(catalogue.nodes["dgx-h100"])
    writes = sorted(ref.value for ref in h100 if ref.metric == "ib_write_bw" and ref.kind == "gate")
    # The gate of H200 (360) is beside the same adapter, and not this node's.
    assert writes == [380, 384]
    sums = [ref for ref in references(catalogue.nodes["dgx-h200"]) if ref.gpus]
    assert {ref.gpus for ref in sums} == {8}
    assert max(ref.value for ref in sums) == 482


def test_known_wrong_thresholds_are_not_in_the_catalogue(catalogue: Catalogue) -> None:
    every: list[tuple[str, Reference]] = [
        (gpu.name, ref) for gpu in catalogue.gpus.values() for ref in gpu.references
    ]
    gates = {(name, ref.metric, ref.value) for name, ref in every if ref.kind == "gate"}
    assert [gate for gate in gates if gate[:2] == ("h200-sxm-141", "hbm")] == []
    assert [gate for gate in gates if gate[:2] == ("a100-sxm-40", "hbm")] == []
    assert ("h100-nvl", "p2p", 335) not in gates
    assert ("h200-sxm-141", "nccl_all_reduce_busbw", 470) not in gates
    # AWS's 300 (A100), 800 (H100 and H200) and 900 (B200) are above every measurement.
    assert {gate[2] for gate in gates} & {300, 800, 900} == set()


def test_mig_is_of_the_guide_only(catalogue: Catalogue) -> None:
    migs = {gpu.name: gpu.mig for gpu in catalogue.gpus.values() if gpu.mig}
    assert set(migs) == {"a100-sxm-40", "a100-sxm-80", "h100-sxm-80", "h200-sxm-141"}
    assert all(isinstance(mig, Mig) and "User Guide" in mig.source.title for mig in migs.values())
