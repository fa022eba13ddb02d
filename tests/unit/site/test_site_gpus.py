"""Rules about hardware profiles, and about GPUs that are cut or shared."""

import pytest

from hpcsite.errors import Problem
from tests.unit.site.mini import SLURM, SiteFolder

FILE = "group_vars/all/slurm.yml"
OLD = SLURM.partition("site_partitions")[0]
OWN = """\
nodes:
  ours:
    title: Ours
    gpu: h100-sxm-80
    gpu_count: 4
    sockets: 2
    cores_per_socket: 8
    threads_per_core: 2
    memory_mib: 8000
"""
HARDWARE = "hardware: {{sockets: {}, cores_per_socket: {}, memory_mib: {}}}"
SEVEN = "profiles: {1g.10gb: 7}"


def declare(folder: SiteFolder, *lines: str) -> None:
    """Write the only node group, a key a line."""
    text = "site_node_groups:\n  gpu:\n" + "".join(f"    {line}\n" for line in lines)
    folder.edit(FILE, OLD, text)


def found(folder: SiteFolder) -> list[Problem]:
    """Give mistakes, or the warnings of a site without any."""
    return folder.problems() or list(folder.load().warnings)


GOOD = (
    (),
    ("hardware_profile: dgx-h100",),
    ("hardware_profile: dgx-h100", "gpus: {count: 8, type: h100, device: /dev/x}"),
    ("hardware_profile: ours",),
    ("hardware_profile: ours", HARDWARE.format(2, 8, 8000)),
    ("hardware_profile: ours", "virtual: true"),
    ("hardware_profile: dgx-h100", HARDWARE.format(2, 56, 2064000)),
    ("hardware_profile: dgx-h100", f"mig: [{{{SEVEN}}}]"),
    ("hardware_profile: dgx-h100", f'mig: [{{nodes: gpu01, gpus: "0-3,7", {SEVEN}}}]'),
    (
        "hardware_profile: dgx-h100",
        "mig:",
        f'  - {{nodes: gpu01, gpus: "0-3", {SEVEN}}}',
        f'  - {{nodes: gpu01, gpus: "4-7", {SEVEN}}}',
        f'  - {{nodes: gpu02, gpus: "0-3", {SEVEN}}}',
    ),
    ("gpus: {count: 8, type: h100}", f"mig: [{{{SEVEN}}}]"),
    ("gpus: {count: 8}", "hardware_profile: dgx-h100", f"mig: [{{{SEVEN}}}]"),
    ("gpus: {count: 8}", "shards: 32"),
    ("gpus: {count: 8}", "mps: 800"),
)


@pytest.mark.parametrize("lines", GOOD, ids=lambda lines: "; ".join(lines) or "nothing")
def test_good(folder: SiteFolder, lines: tuple[str, ...]) -> None:
    folder.write("hardware/ours.yml", OWN)
    if lines:
        declare(folder, *lines)
    assert found(folder) == []


# Lines of the group; code, key below site_node_groups.gpu, message, hint.
BAD = (
    (("virtual: true",), "HPC1701", "virtual", "has no hardware", "declare `hardware:`"),
    (
        ("virtual: true", "hardware_profile: dgx-h100"),
        *("HPC1701", "virtual", "has no hardware", "declare `hardware:`"),
    ),
    (
        ("hardware_profile: dgx_h100",),
        *("HPC1702", "hardware_profile", "no hardware profile dgx_h100", "did you mean dgx-h100?"),
    ),
    (
        ("hardware_profile: dgx-h101",),
        *("HPC1702", "hardware_profile", "profile dgx-h101", "did you mean dgx-h100?"),
    ),
    (
        ("hardware_profile: zzz",),
        *("HPC1702", "hardware_profile", "profile zzz", "docs/catalogue.md lists all"),
    ),
    (
        ("hardware_profile: oars",),
        *("HPC1702", "hardware_profile", "no hardware profile oars", "did you mean ours?"),
    ),
    (
        ("hardware_profile: dgx-h100", "gpus: {count: 4}"),
        *("HPC1703", "gpus.count", "4 GPUs by `gpus`, and 8 by their profile dgx-h100", "remove"),
    ),
    (
        ("hardware_profile: dgx-h100", "gpus: {count: 8, type: h200}"),
        *("HPC1704", "gpus.type", "are h200 by `gpus`, and h100 by the profile", "remove `type`"),
    ),
    (
        ("hardware_profile: ours", HARDWARE.format(2, 8, 8001)),
        *("HPC1705", "hardware.memory_mib", "8001 MiB of memory", "lower memory_mib"),
    ),
    (
        ("hardware_profile: ours", HARDWARE.format(2, 9, 8000)),
        *("HPC1705", "hardware.cores_per_socket", "18 cores by `hardware`, and 16", "correct"),
    ),
    (
        ("hardware_profile: ours", HARDWARE.format(2, 7, 8000)),
        *("HPC1706", "hardware.cores_per_socket", "14 cores by `hardware`, and 16", "acknowledge"),
    ),
    (
        (f"mig: [{{{SEVEN}}}]",),
        *("HPC1708", "mig", "have no GPUs, and `mig` divides them", "declare `gpus`"),
    ),
    (("shards: 8",), "HPC1708", "shards", "have no GPUs", "declare `gpus`"),
    (
        ("hardware_profile: dgx-h100", f"mig: [{{nodes: head, {SEVEN}}}]"),
        *("HPC1709", "mig[0].nodes", "not in the node group gpu: head", "its nodes are gpu[01-02]"),
    ),
    (
        ("hardware_profile: dgx-h100", f'mig: [{{nodes: "gpu[01-", {SEVEN}}}]'),
        *("HPC1709", "mig[0].nodes", "gpu[01- is no set of nodes", "as Slurm does"),
    ),
    (
        ("hardware_profile: dgx-h100", f'mig: [{{gpus: "0-8", {SEVEN}}}]'),
        *("HPC1710", "mig[0].gpus", "have 8 GPUs, and this is of GPU 8", "the last is 7"),
    ),
    (
        ("hardware_profile: dgx-h100", f'mig: [{{gpus: "3-0", {SEVEN}}}]'),
        *("HPC1710", "mig[0].gpus", "it runs backwards", "lower number first"),
    ),
    (
        (
            "hardware_profile: dgx-h100",
            f'mig: [{{nodes: gpu01, gpus: "0-3", {SEVEN}}}, {{gpus: "3-5", {SEVEN}}}]',
        ),
        *("HPC1711", "mig[1]", "the same GPUs of gpu01 are cut by an earlier entry", "one entry"),
    ),
    (
        ("hardware_profile: dgx-h100", "mig: [{profiles: {1g.10gb: 8}}]"),
        *("HPC1712", "mig[0].profiles", "holds at most 7 of 1g.10gb, not 8", "fewer"),
    ),
    (
        ("hardware_profile: dgx-h100", "mig: [{profiles: {1g.5gb: 7}}]"),
        *("HPC1712", "mig[0].profiles", "has no MIG profile 1g.5gb", "it offers 1g.10gb"),
    ),
    (
        ("gpus: {count: 8, type: a100}", "mig: [{profiles: {1g.12gb: 7}}]"),
        *("HPC1712", "mig[0].profiles", "has no MIG profile 1g.12gb", "it offers"),
    ),
    (
        ("gpus: {count: 8, type: l40s}", f"mig: [{{{SEVEN}}}]"),
        *("HPC1713", "mig[0].profiles", "unknown: whether l40s can be cut so", "hardware_profile"),
    ),
    (
        ("gpus: {count: 8}", f"mig: [{{{SEVEN}}}]"),
        *("HPC1713", "mig[0].profiles", "unknown: whether these GPUs", "hardware_profile"),
    ),
    (
        ("hardware_profile: dgx-h100", f"mig: [{{{SEVEN}}}]", "shards: 8"),
        *("HPC1714", "shards", "cut by `mig` and shared by `shards`", "a node group of their own"),
    ),
    (
        ("gpus: {count: 8}", "shards: 12"),
        *("HPC1715", "shards", "12 shards on 8 GPUs of a node", "a multiple of 8"),
    ),
    (("gpus: {count: 8}", "mps: 100"), "HPC1715", "mps", "100 mps on 8 GPUs", "a multiple of 8"),
)


@pytest.mark.parametrize(
    ("lines", "code", "key", "says", "hint"), BAD, ids=[f"{b[1]}-{b[0]}" for b in BAD]
)
def test_bad(
    folder: SiteFolder, lines: tuple[str, ...], code: str, key: str, says: str, hint: str
) -> None:
    folder.write("hardware/ours.yml", OWN)
    declare(folder, *lines)
    (problem,) = found(folder)
    assert (problem.code, problem.key) == (code, f"site_node_groups.gpu.{key}")
    assert says in problem.message
    assert hint in problem.hint
    assert problem.where
    field = key.partition("[")[0].partition(".")[0]
    assert problem.where.path.name == "slurm.yml"
    assert problem.where.line == folder.line(FILE, f"    {field}:")


def test_figures_that_no_node_can_have(folder: SiteFolder) -> None:
    folder.write("hardware/ours.yml", OWN.replace("8000", "8").replace("count: 4", "count: 99"))
    declare(folder, "hardware_profile: ours")
    problems = found(folder)
    assert [problem.code for problem in problems] == ["HPC1707", "HPC1707"]
    assert "of its CPUs and memory that no node can have" in problems[0].message
    assert "of its GPUs that no node can have" in problems[1].message


def test_whole_gpus_beside_instances_need_a_type(folder: SiteFolder) -> None:
    lines = ("gpus: {count: 8}", f'mig: [{{nodes: gpu01, gpus: "0", {SEVEN}}}]')
    declare(folder, *lines)
    (problem,) = folder.problems()
    assert (problem.code, problem.key) == ("HPC1716", "site_node_groups.gpu.gpus")
    folder.edit(FILE, "count: 8", "count: 8, type: h100")
    assert found(folder) == []


def test_a_type_that_is_several_models_may_be_cut_as_any_of_them(folder: SiteFolder) -> None:
    """GRES types do not tell 40 GB from 80 GB."""
    for profile in ("1g.5gb", "1g.10gb"):
        folder.write(FILE, SLURM)
        declare(folder, "gpus: {count: 8, type: a100}", f"mig: [{{profiles: {{{profile}: 7}}}}]")
        assert found(folder) == []


def test_of_a_broken_group_only_what_is_broken_is_told(folder: SiteFolder) -> None:
    declare(
        folder,
        "hardware_profile: dgx-h100",
        "gpus: {count: x}",
        "hardware: {sockets: 2}",
        'mig: [{gpus: "9", profiles: {1g.10gb: x}}, {nodes: 5, profiles: {9g.1gb: 1}}]',
    )
    assert {problem.code[:5] for problem in folder.problems()} == {"HPC10"}
