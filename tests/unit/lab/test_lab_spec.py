"""From a site to its lab's machines."""

from pathlib import Path

import pytest

from hpcsite.errors import InvalidSiteError
from hpcsite.lab.spec import lab_spec
from hpcsite.site.model import Host, Site, SiteKeys


def site(hosts: list[Host], **keys: object) -> Site:
    lab = {"network": "10.213.0.0/24"}
    model = SiteKeys.model_validate({"name": "lab", "lab": lab, **keys})
    return Site(path=Path("/srv/lab"), keys=model, hosts={host.name: host for host in hosts})


def machine(name: str, address: str, *groups: str, **variables: object) -> Host:
    return Host(name=name, groups=frozenset(groups), address=address, vars=variables)


NODE_GROUPS = {"gpu": {"gpus": {"count": 2}}, "cpu": {}}


def test_gpus_come_from_the_node_group_or_from_the_machine_itself() -> None:
    spec = lab_spec(
        site(
            [
                machine("gpu01", "10.213.0.21", "gpu"),
                machine("gpu02", "10.213.0.22", "gpu", site_lab_gpus=1),
                machine("cpu01", "10.213.0.31", "cpu"),
                machine("head", "10.213.0.10"),
            ],
            node_groups=NODE_GROUPS,
        )
    )
    assert [each.gpu_devices for each in spec.machines] == [
        ("/dev/nvidia0", "/dev/nvidia1"),
        ("/dev/nvidia0",),
        (),
        (),
    ]


@pytest.mark.parametrize(
    "address", ["10.214.0.5", "10.213.0.0", "10.213.0.1", "10.213.0.255", "head.example", ""]
)
def test_an_address_that_no_machine_can_have_is_refused(address: str) -> None:
    with pytest.raises(InvalidSiteError) as caught:
        lab_spec(site([machine("head", address), machine("login", "10.213.0.300")]))
    assert [problem.message.split(":")[0] for problem in caught.value.problems] == ["head", "login"]
    assert "10.213.0.1, the gateway" in caught.value.problems[0].hint


@pytest.mark.parametrize("count", [-1, 65, "8", True])
def test_a_wrong_number_of_devices_is_refused(count: object) -> None:
    with pytest.raises(InvalidSiteError, match="1 error"):
        lab_spec(site([machine("gpu01", "10.213.0.21", "gpu", site_lab_gpus=count)]))


def test_a_site_without_a_lab_says_so() -> None:
    with pytest.raises(InvalidSiteError) as caught:
        lab_spec(site([machine("head", "10.213.0.10")], lab=None))
    assert "site_lab" in caught.value.problems[0].message
