#!/usr/bin/python
"""Write users' authorized_keys as root, and never anywhere but in their own folders."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import Any, Iterator  # noqa: UP035 - nodes may have Python 3.8

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: ssh_keys
short_description: The keys by which users log in
description:
  - Writes C(.ssh/authorized_keys) below the home folders of all users in one call.
  - A user may put a link, or somebody else's folder, in the place of each folder at any time. So
    each is opened from the one above, links refused, and owner and mode are looked at and set
    by what was opened, never by a path.
  - A user whose folders are not as they must be is left out and named; the others get their keys.
options:
  users:
    description: The users.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Login name.
        type: str
        required: true
      path:
        description: Home folder, which must be the user's. In check mode, it may be missing.
        type: str
        required: true
      uid:
        description: Number of the user.
        type: int
        required: true
      gid:
        description: Number of the user's group.
        type: int
        required: true
      ssh_keys:
        description: Public keys, one line each; none makes an empty file.
        type: list
        elements: str
        required: true
author: hpcsite
"""

EXAMPLES = """
- name: Keep the users' ssh keys
  ssh_keys:
    users:
      - {name: alice, path: /home/alice, uid: 2001, gid: 2000, ssh_keys: [ssh-ed25519 AAAA]}
"""

RETURN = """
left_out:
  description: Users whose keys could not be written, and why, a sentence each.
  returned: always
  type: list
  elements: str
results:
  description: The other users, each with item (the name) and changed.
  returned: always
  type: list
  elements: dict
"""

FOLDER, FILE = ".ssh", "authorized_keys"
DRAFT = f".{FILE}.hpcsite-new"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without blocking: the user may have made it a pipe.
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Of what stands there, more is neither compared nor shown.
READ = 1 << 20


class LeftOutError(Exception):
    """A folder is not as it must be."""


def content(keys: list[str]) -> bytes:
    """Text of the file."""
    return "".join(f"{key.strip()}\n" for key in keys).encode()


@contextmanager
def opened(name: str, path: str, above: int | None = None) -> Iterator[int]:
    """Open a folder that is no link; `path` is what it is called in messages."""
    try:
        folder = os.open(name, OPEN_FOLDER, dir_fd=above)
    except NotADirectoryError:
        problem = f"{path} is a link, or no folder"
        raise LeftOutError(problem) from None
    try:
        yield folder
    finally:
        os.close(folder)


def foreign(path: str, owner: int, uid: int) -> LeftOutError:
    """Say, in the words of the module home_folders, that a folder is not its user's."""
    return LeftOutError(f"{path} belongs to uid {owner}, not {uid}")


def keep_folder(folder: int, path: str, user: dict[str, Any], *, write: bool) -> bool:
    """Give the opened .ssh its owner and mode; whether that changes something."""
    status = os.fstat(folder)
    # What root has just made, or had when it was killed, is empty. Any other folder of root's may
    # have been moved here by the user, who would be given what is in it.
    if status.st_uid != user["uid"] and (status.st_uid != os.geteuid() or os.listdir(folder)):
        raise foreign(path, status.st_uid, user["uid"])
    wanted = (user["uid"], user["gid"], FOLDER_MODE)
    if (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == wanted:
        return False
    if write:
        os.fchown(folder, user["uid"], user["gid"])
        os.fchmod(folder, FOLDER_MODE)
    return True


def present(folder: int) -> tuple[tuple[int, int, int], bytes] | None:
    """Owner, group and mode of the file that is there, and what it says; None if it is no file."""
    try:
        file = os.open(FILE, OPEN_FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return None
        with os.fdopen(os.dup(file), "rb") as stream:
            text = stream.read(READ)
        return (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)), text
    finally:
        os.close(file)


def write_file(folder: int, user: dict[str, Any], text: bytes) -> None:
    """Put a new file in the place of what is there, which is never opened for writing."""
    with suppress(FileNotFoundError):
        os.unlink(DRAFT, dir_fd=folder)  # left by a run that was killed
    with os.fdopen(os.open(DRAFT, NEW_FILE, FILE_MODE, dir_fd=folder), "wb") as stream:
        stream.write(text)
        stream.flush()
        os.fchown(stream.fileno(), user["uid"], user["gid"])
        os.fchmod(stream.fileno(), FILE_MODE)
    os.rename(DRAFT, FILE, src_dir_fd=folder, dst_dir_fd=folder)


def keep_keys(user: dict[str, Any], *, write: bool) -> dict[str, str] | None:
    """Write a user's keys; a diff if that changes something."""
    path, text = user["path"], content(user["ssh_keys"])
    where = f"{path}/{FOLDER}"
    diff = {"before": "", "after": text.decode()}
    diff["before_header"] = diff["after_header"] = f"{where}/{FILE}"
    try:
        with opened(path, path) as home:
            if (owner := os.fstat(home).st_uid) != user["uid"]:
                raise foreign(path, owner, user["uid"])
            if write:
                with suppress(FileExistsError):
                    os.mkdir(FOLDER, FOLDER_MODE, dir_fd=home)
            with opened(FOLDER, where, home) as folder:
                changed = keep_folder(folder, where, user, write=write)
                there = present(folder)
                if there == ((user["uid"], user["gid"], FILE_MODE), text):
                    diff["before"] = diff["after"]
                    return diff if changed else None
                if there and there[0][0] == user["uid"]:
                    diff["before"] = there[1].decode(errors="replace")
                if write:
                    write_file(folder, user, text)
    except FileNotFoundError:
        # A check looks before what is missing is made.
        if write:
            raise
    return diff


def main() -> None:
    """Run the module."""
    user = {
        "name": {"type": "str", "required": True},
        "path": {"type": "str", "required": True},
        "uid": {"type": "int", "required": True},
        "gid": {"type": "int", "required": True},
        "ssh_keys": {"type": "list", "elements": "str", "required": True, "no_log": False},
    }
    module = AnsibleModule(
        argument_spec={
            "users": {"type": "list", "elements": "dict", "required": True, "options": user}
        },
        supports_check_mode=True,
    )
    results, diffs, left_out = [], [], []
    for each in module.params["users"]:
        try:
            diff = keep_keys(each, write=not module.check_mode)
        except LeftOutError as error:
            left_out.append(f"{each['name']}: {error}")
        except OSError as error:
            left_out.append(f"{each['name']}: {each['path']}: {error.strerror}")
        else:
            results.append({"item": each["name"], "changed": diff is not None})
            diffs += [diff] if diff else []
    module.exit_json(changed=bool(diffs), diff=diffs, results=results, left_out=left_out)


if __name__ == "__main__":
    main()
