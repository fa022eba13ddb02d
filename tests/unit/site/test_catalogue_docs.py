"""docs/catalogue.md says what the data say, and its example is valid."""

import re
from pathlib import Path

import yaml

from hpcsite.site.catalogue import load_catalogue, power_w
from hpcsite.site.hardware import gres_of, with_profiles
from hpcsite.site.model import NodeGroup
from tests.unit.site.catalogue_tables import PAGE, tables, with_tables


def test_tables_are_those_of_the_data() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for text in tables().values():
        assert text in page, "run: python -m tests.unit.site.catalogue_tables"
    assert page == with_tables(page)


def examples() -> list[str]:
    """Give the examples: of a node group, and of a site's own profiles."""
    return re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_example_of_a_node_group_is_valid() -> None:
    groups, _ = examples()
    group = NodeGroup.model_validate(yaml.safe_load(groups)["site_node_groups"]["gpu"])
    filled = with_profiles({"gpu": group}, load_catalogue())["gpu"]
    assert [str(gres) for gres in gres_of(filled, "gpu031")] == ["gpu:h100:4", "gpu:1g.10gb:28"]


def test_example_of_the_page_is_valid(tmp_path: Path) -> None:
    _, example = examples()
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "ours.yml").write_text(example, encoding="utf-8")
    nodes = load_catalogue(tmp_path).nodes
    assert nodes["dgx-h100"].memory_mib is not None
    assert nodes["ours-4xl40s"].gpu == load_catalogue().gpus["l40s"]
    assert power_w(nodes["ours-4xl40s"]) == 2400


def test_every_unknown_is_on_the_page() -> None:
    listed = tables()["unknown"]
    catalogue = load_catalogue()
    for name in (*catalogue.nodes, *catalogue.gpus, *catalogue.switches):
        assert f"- `{name}`: " in listed
    assert "- `sn5600`: max_power_w" in listed
    assert "- `lab-vm`: nothing" in listed
