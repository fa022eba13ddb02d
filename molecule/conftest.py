"""The lab that a scenario works on, for the tests of all scenarios.

A test that takes `host` runs once on each host of the group that its module names in GROUP.
"""

import pytest
from testinfra.host import Host

from tests.labs import Lab, chosen_lab


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `host` on each host of its module's GROUP."""
    if "host" in metafunc.fixturenames:
        site, group = chosen_lab().site, metafunc.module.GROUP
        hosts = [each.name for each in site.hosts.values() if group in {"all", *each.groups}]
        # Without hosts pytest would skip the test.
        assert hosts, f"site {site.name} has no hosts in the group {group}"
        metafunc.parametrize("host", hosts, indirect=True, scope="session")


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's lab."""
    return chosen_lab()


@pytest.fixture(scope="session")
def host(request: pytest.FixtureRequest, lab: Lab) -> Host:
    """One machine, by ssh as root."""
    return lab.host(request.param)


@pytest.fixture(scope="session")
def controller(lab: Lab) -> Host:
    """The machine with slurmctld."""
    (found,) = lab.site.in_group("slurm_controller")
    return lab.host(found.name)
