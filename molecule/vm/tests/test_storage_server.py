"""The NFS server."""

from testinfra.host import Host

from tests.labs import Lab

GROUP = "nfs_server"


def test_it_serves_now_and_after_a_boot(host: Host) -> None:
    # A unit that ends at once when the kernel's threads run.
    assert host.check_output("systemctl is-active nfs-server") == "active"
    assert host.service("nfs-server").is_enabled
    assert int(host.file("/proc/fs/nfsd/threads").content_string) >= 16
    assert "+4.2" in host.file("/proc/fs/nfsd/versions").content_string.split()


def test_only_the_sites_clients_may_mount_and_their_root_is_nobody(host: Host, lab: Lab) -> None:
    clients = {each.address for each in lab.site.in_group("nfs_client")}
    shown = host.check_output("exportfs -s").splitlines()
    found = {(path, client.partition("(")[0]) for path, client in map(str.split, shown)}
    assert found == {
        (export.path, client) for export in lab.site.keys.nfs_exports for client in clients
    }
    assert all("root_squash" in line and "no_root_squash" not in line for line in shown)


def test_homes_are_their_owners(host: Host, lab: Lab) -> None:
    for user in lab.site.keys.users:
        home = host.file(f"/home/{user.name}")
        assert (home.user, home.group) == (user.name, user.group)
        assert home.mode & 0o022 == 0
        assert host.file(f"/home/{user.name}/.bashrc").user == user.name
