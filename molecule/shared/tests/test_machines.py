"""What every machine of a site has."""

from testinfra.host import Host

from tests.labs import Lab

GROUP = "all"


def test_no_unit_failed(host: Host) -> None:
    assert host.check_output("systemctl --failed --no-legend --plain") == ""


def test_munge_runs_now_and_after_a_boot(host: Host) -> None:
    munge = host.service("munge")
    assert munge.is_running
    assert munge.is_enabled


def test_the_munge_key_is_the_sites_and_nobody_elses(host: Host, lab: Lab) -> None:
    key = host.file("/etc/munge/munge.key")
    assert (key.user, key.group, key.mode) == ("munge", "munge", 0o400)
    assert key.content == (lab.folder / "secrets" / "munge.key").read_bytes()


def test_secrets_on_this_computer_are_their_owners_alone(lab: Lab) -> None:
    folder = lab.folder / "secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o077 for file in folder.iterdir()} == {0}


def test_every_host_is_known_by_name(host: Host, lab: Lab) -> None:
    hosts = lab.site.hosts.values()
    found = host.check_output("getent ahostsv4 " + " ".join(["%s"] * len(hosts)), *lab.site.hosts)
    pairs = {(line.split()[0], line.split()[-1]) for line in found.splitlines() if "STREAM" in line}
    assert {(each.address, each.name) for each in hosts} <= {
        (address, name.partition(".")[0]) for address, name in pairs
    }


def test_users_have_the_same_ids_everywhere(host: Host, lab: Lab) -> None:
    gids = {group.name: group.gid for group in lab.site.keys.groups}
    for user in lab.site.keys.users:
        found = host.user(user.name)
        assert found.uid == user.uid
        assert found.gid == gids[str(user.group)]
        home = host.file(found.home)
        assert (home.is_directory, home.uid) == (True, user.uid)
        assert home.mode & 0o022 == 0, "others may write there"
