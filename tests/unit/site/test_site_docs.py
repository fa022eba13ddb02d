"""docs/inventory.md says what the model and the table of groups say, and its example is valid."""

import re

from tests.unit.site.key_tables import PAGE, tables, with_tables
from tests.unit.site.mini import SiteFolder


def test_tables_are_those_of_the_model() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for text in tables().values():
        assert text in page, "run: python -m tests.unit.site.key_tables"
    assert page == with_tables(page)


def test_example_of_the_page_is_valid(folder: SiteFolder) -> None:
    page = PAGE.read_text(encoding="utf-8")
    hosts, site = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (folder.path / "group_vars/all/slurm.yml").unlink()
    folder.write("hosts.yml", hosts)
    folder.write("group_vars/all/site.yml", site)
    assert folder.problems() == []
