"""Hosts with RDMA, by software over the machines' own network."""

import json

from testinfra.host import Host

GROUP = "rdma"


def test_the_device_is_made_now_and_at_boot(host: Host) -> None:
    service = host.service("hpcsite-soft-roce")
    assert service.is_running
    assert service.is_enabled


def test_its_link_is_up_on_the_fabric(host: Host) -> None:
    (link,) = json.loads(host.check_output("rdma --json link show"))
    assert (link["ifname"], link["netdev"], link["state"]) == ("rxe0", "fabric0", "ACTIVE")
    assert host.interface("fabric0").exists
    assert host.file("/sys/class/net/fabric0/mtu").content_string.strip() == "9000"


def test_modules_are_loaded_at_boot(host: Host) -> None:
    wanted = host.file("/etc/modules-load.d/hpcsite-rdma.conf").content_string.splitlines()
    modules = {line for line in wanted if line and not line.startswith("#")}
    assert "rdma_rxe" in modules
    assert modules <= {
        line.split()[0] for line in host.file("/proc/modules").content_string.splitlines()
    }


def test_jobs_may_lock_memory(host: Host) -> None:
    limits = host.check_output(
        "cat /proc/$(systemctl show --property MainPID --value slurmd)/limits"
    )
    (line,) = (line for line in limits.splitlines() if line.startswith("Max locked memory"))
    assert line.split()[3:5] == ["unlimited", "unlimited"]
