"""The docs say what the model and the table of groups say, and their examples are valid."""

import re

from hpcsite.site.explain import model_in
from hpcsite.site.model import SiteKeys
from tests.unit.site.key_tables import DOCS, PAGE, REFERENCE, reference, tables, with_tables
from tests.unit.site.mini import SiteFolder

AGAIN = "run: python -m tests.unit.site.key_tables"


def test_tables_are_those_of_the_model() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for text in tables().values():
        assert text in page, AGAIN
    assert page == with_tables(page)


def test_reference_is_made_from_the_model() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference(), AGAIN


def test_every_link_to_a_key_leads_to_its_section() -> None:
    sections = set(re.findall(r"^## (\w+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE))
    linked = {
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"inventory-keys\.md#(\w+)", page.read_text(encoding="utf-8"))
    }
    assert linked == sections
    nested = {n for n, field in SiteKeys.model_fields.items() if model_in(field.annotation)}
    assert sections == {f"site_{name}" for name in nested}


def test_nested_lists_and_mappings_are_in_the_reference() -> None:
    text = reference()
    for key in ("contents[].u", "feeds.*.kw", "hardware.sockets", "links[].nodes", "grp_tres"):
        assert f"| `{key}` |" in text


def test_example_of_the_page_is_valid(folder: SiteFolder) -> None:
    page = PAGE.read_text(encoding="utf-8")
    hosts, site, *_ = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (folder.path / "group_vars/all/slurm.yml").unlink()
    folder.write("hosts.yml", hosts)
    folder.write("group_vars/all/site.yml", site)
    assert folder.problems() == []
