import pytest
import yaml

from hpcsite.deploy.deploy import NAMES_TAG
from hpcsite.deploy.limit import chosen_hosts, critical_hosts
from hpcsite.deploy.tags import check_tags, parse_tags
from hpcsite.errors import ExitCode, UsageError
from hpcsite.paths import content_dir
from hpcsite.site.model import Site
from hpcsite.site.names import fold


@pytest.mark.parametrize(
    ("limit", "hosts"),
    [
        (None, "gpu[01-02,10],head,login"),
        ("all", "gpu[01-02,10],head,login"),
        ("gpu02", "gpu02"),
        ("gpu[01-02],login", "gpu[01-02],login"),
        ("gpu", "gpu[01-02,10]"),
        ("@gpu", "gpu[01-02,10]"),
        ("slurm_controller,gpu10", "gpu10,head"),
    ],
)
def test_a_limit_names_nodes_and_groups(site: Site, limit: str | None, hosts: str) -> None:
    assert fold(chosen_hosts(site, limit)) == hosts


@pytest.mark.parametrize(
    ("limit", "hint"),
    [
        ("gpu3", "the site's hosts are gpu[01-02,10]"),
        ("logn", "did you mean login?"),
        ("gpu[01-03]", "gpu[01-02,10],head,login"),
        ("gpu[01", "write nodes as Slurm does"),
        ("ib_subnet_manager", "the site's hosts are"),
        ("", "the site's hosts are"),
    ],
)
def test_a_limit_that_names_nothing_is_refused(site: Site, limit: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen_hosts(site, limit)
    assert caught.value.exit_code == ExitCode.USAGE
    assert hint in caught.value.hint


def test_the_site_hangs_on_controller_and_database(site: Site) -> None:
    assert critical_hosts(site) == {"head"}


def test_tags_are_read_from_ansibles_list() -> None:
    output = "play #1 (all): x\tTAGS: [base]\n      TASK TAGS: [always, base, names]\n"
    assert parse_tags(output) == {"always", "base", "names"}


def test_a_layer_is_a_tag_without_asking_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpcsite.deploy.tags.known_tags", lambda: pytest.fail("asked"))
    check_tags(("scheduler", "base"))


def test_a_check_gives_names_without_having_looked_for_packages() -> None:
    # The tag selects single tasks: what others of the role register is not there.
    folder = content_dir() / "roles" / "base" / "tasks"
    assert f"tags: [{NAMES_TAG}]" in (folder / "configure.yml").read_text("utf-8")
    tasks = yaml.safe_load((folder / "main.yml").read_text("utf-8"))
    (configure,) = (task for task in tasks if task["name"] == "Configure")
    assert "common_packages_state.missing | default([])" in configure["when"]
