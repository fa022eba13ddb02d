"""The profiles that a machine may be, by what it reports."""

import pytest

from hpcsite.site.catalogue import Observed, load_catalogue, nearest_profile
from hpcsite.site.catalogue.nearest import Candidate, is_gpu

CATALOGUE = load_catalogue()
H100 = "NVIDIA H100 80GB HBM3"


def _names(observed: Observed) -> list[str]:
    return [candidate.profile.name for candidate in nearest_profile(observed, CATALOGUE)]


@pytest.mark.parametrize(
    ("product", "gpu"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100-sxm-40"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80"),
        (H100, "h100-sxm-80"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H200", "h200-sxm-141"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GH200 480GB", "gh200-96"),
        ("NVIDIA GH200 144G HBM3e", "gh200-141"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-PCIE-40GB", None),
        ("NVIDIA GB200", None),
        ("NVIDIA L40", None),
    ],
)
def test_each_product_name_is_one_gpu(product: str, gpu: str | None) -> None:
    found = [known.name for known in CATALOGUE.gpus.values() if is_gpu(product, known)]
    assert found == ([gpu] if gpu else [])


def test_eight_h100_may_be_of_any_maker() -> None:
    names = _names(Observed(gpus=(H100,) * 8, hcas=10))
    assert set(names[:-1]) == {
        *("dgx-h100", "xe9680-h100", "supermicro-8xh100", "hpe-8xh100", "lenovo-8xh100"),
    }
    # Its adapters agree, and nothing is known of the others'.
    assert names[0] == "dgx-h100"
    assert names[-1] == "workstation-gpu"


def test_the_machines_own_name_decides() -> None:
    for product, name in (
        ("PowerEdge XE9680", "xe9680-h100"),
        ("ThinkSystem SR680a V3", "lenovo-8xh100"),
        ("DGXH100", "dgx-h100"),
        ("HPE Cray XD670", "hpe-8xh100"),
    ):
        candidates = nearest_profile(Observed(gpus=(H100,) * 8, hcas=8, product=product), CATALOGUE)
        assert candidates[0].profile.name == name
        assert f"product: {product}" in candidates[0].agrees
        assert f"product: {product}" in candidates[1].differs


def test_reasons_are_told() -> None:
    found = nearest_profile(Observed(sockets=2, gpus=(H100,) * 7, hcas=6), CATALOGUE)
    first = next(candidate for candidate in found if candidate.profile.name == "dgx-h100")
    assert first == Candidate(
        CATALOGUE.nodes["dgx-h100"],
        agrees=("GPU model: NVIDIA H100 SXM 80 GB",),
        differs=("GPUs: 7, the profile has 8", "HCAs: 6, the profile has 8"),
        unknown=(
            *("sockets not known of the profile", "cores in a socket not known of the host"),
            "memory in MiB not known of the host",
        ),
    )
    assert not first.exact


def test_gpus_decide_between_kinds() -> None:
    assert _names(Observed(gpus=("NVIDIA L40S",) * 4)) == ["generic-4xl40s", "workstation-gpu"]
    assert _names(Observed(gpus=("NVIDIA H100 NVL",) * 2))[0] == "generic-2xh100-nvl"
    assert _names(Observed(gpus=("NVIDIA GeForce RTX 4090",))) == ["workstation-gpu"]
    assert _names(Observed(gpus=(H100, "NVIDIA L40S"))) == ["workstation-gpu"]


def test_a_node_without_gpus() -> None:
    assert _names(Observed(sockets=2, cores_per_socket=32)) == ["generic-cpu"]


def test_memory_is_a_little_less_than_built_in() -> None:
    profile = CATALOGUE.nodes["lab-vm"].model_copy(
        update={"virtual": False, "gpu_count": CATALOGUE.nodes["generic-cpu"].gpu_count}
    )
    catalogue = CATALOGUE.model_copy(update={"nodes": {"lab-vm": profile}})
    for memory, agrees in ((1400, True), (1300, True), (1200, False), (1500, False)):
        (candidate,) = nearest_profile(
            Observed(sockets=1, cores_per_socket=2, memory_mib=memory), catalogue
        )
        assert candidate.exact is agrees
        assert any("memory" in reason for reason in candidate.differs) is not agrees


def test_labs_are_never_proposed() -> None:
    for count in (0, 4, 8):
        assert not {"lab-vm", "lab-nspawn"} & set(_names(Observed(gpus=("x",) * count)))
