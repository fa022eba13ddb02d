"""The clients of the NFS server."""

from testinfra.host import Host

from tests.labs import Lab

GROUP = "nfs_client"


def test_all_exports_are_mounted_as_they_should(host: Host, lab: Lab) -> None:
    for export in lab.site.keys.nfs_exports:
        mount = host.mount_point(export.mount_point)
        assert mount.exists
        assert mount.filesystem == "nfs4"
        assert {"vers=4.2", "hard", "rw"} <= set(mount.options)


def test_they_are_mounted_at_boot_and_no_boot_waits_for_them(host: Host, lab: Lab) -> None:
    for export in lab.site.keys.nfs_exports:
        unit = host.check_output("systemd-escape --path --suffix=mount %s", export.mount_point)
        assert host.check_output("systemctl is-enabled %s", unit) == "enabled"
        required = host.check_output("systemctl show --property RequiredBy --value %s", unit)
        assert "remote-fs.target" not in required.split()


def test_slurmd_starts_after_them(host: Host, lab: Lab) -> None:
    after = host.check_output("systemctl show --property After --value slurmd").split()
    for export in lab.site.keys.nfs_exports:
        assert f"{export.mount_point.strip('/')}.mount" in after


def test_homes_are_their_owners(host: Host, lab: Lab) -> None:
    for user in lab.site.keys.users:
        home = host.file(f"/home/{user.name}")
        assert (home.uid, home.user, home.group) == (user.uid, user.name, user.group)
