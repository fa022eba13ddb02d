"""The modules behind NFS: mounts without force, homes made once, files that a mount hides."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.test_modules import load, run_module

mounts = load("modules", "mounts")
home_folders = load("modules", "home_folders")
hidden_files = load("modules", "hidden_files")
nfs = load("filter", "hpcsite_nfs")
YOUNG, OLD = 10**15, 1


class FailedError(Exception):
    """What fail_json raises here."""


class Host:
    """An AnsibleModule on a host whose systemd knows these units."""

    def __init__(self, folder: Path, units: dict[str, dict[str, str]]) -> None:
        self.units, self.busy, self.check_mode = units, set[str](), False
        self.refused: set[str] = set()
        self.params = {
            "folder": str(folder),
            "units": [{"name": "home", "automount": False}],
            "read_anew": [],
        }
        self.calls: list[str] = []

    def get_bin_path(self, name: str, *, required: bool) -> str:
        assert required
        return name

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        verb, *rest = argv[1:]
        if argv[0] == "journalctl":
            return 0, "mount.nfs: Connection refused\n", ""
        if verb == "show":
            state = self.units.get(rest[0], {"LoadState": "not-found", "ActiveState": "inactive"})
            return 0, "".join(f"{key}={value}\n" for key, value in state.items()), ""
        self.calls.append(" ".join(argv[1:]))
        unit = self.units.get(rest[0], {}) if rest else {}
        if (verb == "stop" and rest[0] in self.busy) or (
            verb == "start" and rest[0] in self.refused
        ):
            return 1, "", "target is busy"
        unit.update({"stop": {"ActiveState": "inactive"}, "start": mounted()}.get(verb, {}))
        unit.update({"enable": {"UnitFileState": "enabled"}}.get(verb, {}))
        return 0, "", ""

    def fail_json(self, *, msg: str, **_: object) -> None:
        raise FailedError(msg)

    def keep(self, *, automount: bool = False) -> Any:  # noqa: ANN401 - loaded at run time
        kept = mounts.Mounts(self)
        kept.read_anew()
        kept.keep({"name": "home", "automount": automount})
        return kept


def mounted(*, entered: int = YOUNG, enabled: bool = True) -> dict[str, str]:
    return {
        "LoadState": "loaded",
        "ActiveState": "active",
        "UnitFileState": "enabled" if enabled else "disabled",
        "NeedDaemonReload": "no",
        "ActiveEnterTimestampMonotonic": str(entered),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home.mount").write_text("[Mount]\n")
    return tmp_path


def test_what_is_mounted_by_its_present_file_is_left_alone(folder: Path) -> None:
    host = Host(folder, {"home.mount": mounted()})
    assert host.keep().actions == []
    assert host.calls == []


def test_a_new_unit_is_read_mounted_and_enabled(folder: Path) -> None:
    host = Host(folder, {})
    assert host.keep().actions == ["start home.mount", "enable home.mount"]
    assert host.calls == [
        *("daemon-reload", "reset-failed home.mount", "start home.mount", "enable home.mount")
    ]


def test_a_changed_unit_is_mounted_anew_where_nobody_uses_it(folder: Path) -> None:
    host = Host(folder, {"home.mount": mounted(entered=OLD)})
    kept = host.keep()
    assert (kept.actions, kept.in_use) == (["stop home.mount", "start home.mount"], [])


def test_a_changed_unit_in_use_waits_and_is_no_change(folder: Path) -> None:
    host = Host(folder, {"home.mount": mounted(entered=OLD)})
    host.busy.add("home.mount")
    kept = host.keep()
    assert (kept.actions, kept.in_use) == ([], ["home.mount"])
    assert "drain" in mounts.message(kept.in_use)
    assert mounts.message([]) == ""


def test_a_mount_that_fails_shows_why(folder: Path) -> None:
    host = Host(folder, {})
    host.refused.add("home.mount")
    with pytest.raises(FailedError, match="Connection refused"):
        host.keep()


def test_an_automount_takes_the_place_of_a_mount(folder: Path) -> None:
    host = Host(folder, {"home.mount": mounted(), "home.automount": {"ActiveState": "inactive"}})
    kept = host.keep(automount=True)
    assert kept.actions[:2] == ["stop home.mount", "enable home.automount"]
    assert kept.actions[2] == "start home.automount"
    assert "disable home.mount" in kept.actions
    assert "start home.mount" not in kept.actions


def test_an_automount_in_use_waits(folder: Path) -> None:
    host = Host(folder, {"home.mount": mounted(), "home.automount": {"ActiveState": "inactive"}})
    host.busy.add("home.mount")
    kept = host.keep(automount=True)
    assert kept.in_use == ["home.mount"]
    # The next reboot is enough.
    assert kept.actions == ["enable home.automount", "disable home.mount"]


@pytest.mark.parametrize("busy", [False, True])
def test_what_is_no_longer_described_goes(folder: Path, busy: bool) -> None:
    host = Host(folder, {"home.mount": mounted()})
    host.busy = {"home.mount"} if busy else set()
    kept = mounts.Mounts(host)
    kept.remove("home.mount")
    # A later deploy finds a unit that is in use by its file.
    assert (folder / "home.mount").exists() is busy
    assert "disable home.mount" in kept.actions
    assert kept.in_use == (["home.mount"] if busy else [])


def test_an_automount_is_not_stopped_over_a_mount_in_use(folder: Path) -> None:
    """It would take the mount away from under those who use it."""
    host = Host(folder, {"home.mount": mounted(), "home.automount": mounted()})
    host.busy = {"home.mount"}
    kept = mounts.Mounts(host)
    kept.remove("home.automount")
    assert kept.in_use == ["home.automount"]
    assert host.calls == ["stop home.mount", "disable home.automount"]
    host.busy = set()
    kept.remove("home.automount")
    assert host.calls[2:4] == ["stop home.mount", "stop home.automount"]


def test_inner_mounts_go_first_and_before_their_automounts() -> None:
    units = ["a.automount", "a.mount", "a-b.mount", r"a\x2db.mount"]
    assert sorted(units, key=mounts.depth, reverse=True) == [
        *(r"a\x2db.mount", "a-b.mount", "a.mount", "a.automount")
    ]


def test_a_check_changes_nothing(folder: Path) -> None:
    host = Host(folder, {"home.mount": mounted(entered=OLD)})
    host.check_mode = True
    kept = host.keep()
    kept.remove("home.mount")
    assert kept.actions[0] == "stop home.mount"
    assert host.calls == []
    assert (folder / "home.mount").exists()


def test_a_home_folder_is_made_whole(tmp_path: Path) -> None:
    skeleton = tmp_path / "skel"
    (skeleton / ".config").mkdir(parents=True)
    (skeleton / ".config/x").write_text("x")
    (skeleton / "link").symlink_to("/nowhere")
    home = tmp_path / "home/students/alice"
    draft = home.with_name(".alice.hpcsite-new")
    draft.mkdir(parents=True)
    (draft / "half").touch()
    home_folders.make_home(home, os.getuid(), os.getgid(), skeleton)
    assert home.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in home.iterdir()) == [".config", "link"]
    assert (home / "link").is_symlink()
    assert not draft.exists()


def test_without_a_skeleton_a_home_folder_is_empty(tmp_path: Path) -> None:
    home_folders.make_home(tmp_path / "bob", os.getuid(), os.getgid(), tmp_path / "missing")
    assert list((tmp_path / "bob").iterdir()) == []


def test_one_home_folder_keeps_no_other_user_from_one(tmp_path: Path) -> None:
    """Not one that is somebody else's, nor one that cannot be made."""
    uid, gid = os.getuid(), os.getgid()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "file").touch()
    paths = {"alice": "theirs", "bob": "file/bob", "carol": "new", "dave": "mine"}
    (tmp_path / "mine").mkdir()
    homes = [
        {"name": name, "path": str(tmp_path / path), "uid": uid + (name == "alice"), "gid": gid}
        for name, path in paths.items()
    ]
    result = run_module("home_folders", homes=homes, skeleton=str(tmp_path / "missing"))
    assert result["left_out"] == [
        f"alice: {tmp_path}/theirs belongs to uid {uid}, not {uid + 1}",
        f"bob: {tmp_path}/file: File exists",
    ]
    assert result["made"] == [str(tmp_path / "new")]
    assert (tmp_path / "new").is_dir()


def test_a_check_makes_no_home_folder(tmp_path: Path) -> None:
    home = {"name": "carol", "path": str(tmp_path / "new"), "uid": os.getuid(), "gid": os.getgid()}
    result = run_module("home_folders", homes=[home], _ansible_check_mode=True)
    assert (result["made"], result["left_out"]) == ([home["path"]], [])
    assert not (tmp_path / "new").exists()


MOUNTINFO = """\
23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 23 0:50 / /home rw,relatime shared:9 - nfs4 10.1.0.1:/srv/home rw
91 23 254:16 / /data\\040one rw - xfs /dev/vdb rw
"""


def test_files_that_a_mount_would_hide_are_told(tmp_path: Path) -> None:
    types = hidden_files.mounted(MOUNTINFO)
    assert types["/home"] == ["nfs4"]
    assert types["/data one"] == ["xfs"]
    assert hidden_files.problem("/home", ["nfs4"], ours=False) is None
    assert "type xfs" in hidden_files.problem("/data", ["xfs"], ours=False)
    assert hidden_files.problem("/data", ["ext4"], ours=True) is None
    assert hidden_files.problem(str(tmp_path / "missing"), [], ours=False) is None
    (tmp_path / "lost+found").mkdir()
    assert hidden_files.problem(str(tmp_path), [], ours=True) is None
    for number in range(7):
        (tmp_path / f"user{number}").mkdir()
    said = hidden_files.problem(str(tmp_path), [], ours=True)
    assert said.endswith("holds user0, user1, user2, user3, user4 and 2 more")
    assert "is no folder" in hidden_files.problem("/dev/null", [], ours=False)


def test_only_hpcsite_s_own_units_are_ours(tmp_path: Path) -> None:
    assert not hidden_files.is_ours(tmp_path / "home.mount")
    (tmp_path / "home.mount").write_text("[Mount]\n")
    assert not hidden_files.is_ours(tmp_path / "home.mount")
    (tmp_path / "home.mount").write_text("# Managed by hpcsite (nfs_server).\n")
    assert hidden_files.is_ours(tmp_path / "home.mount")


def test_units_are_named_as_systemd_does() -> None:
    assert nfs.nfs_unit("/home") == "home"
    assert nfs.nfs_unit("/data-1/a.b_c") == r"data\x2d1-a.b_c"


def test_a_home_folder_lies_on_the_innermost_mount() -> None:
    exports = nfs.nfs_exports([{"path": "/home"}, {"path": "/s", "mount": "/home/x"}], ["head"])
    users = [{"name": name, "uid": 1, "home": f"/home/{name}"} for name in ("x", "x/a", "xy")]
    homes = {home["name"]: home["path"] for home in nfs.nfs_homes(users, exports, [])}
    assert homes == {"x": "/home/x", "x/a": "/s/a", "xy": "/home/xy"}
