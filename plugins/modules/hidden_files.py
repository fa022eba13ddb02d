#!/usr/bin/python
"""Say what would be hidden on a host if folders of its were mounted over. Changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: hidden_files
short_description: What mounts would hide
description:
  - Looks into folders that are to be mount points. Never into one that a network file system is
    mounted on, whose server may not answer.
options:
  mounts:
    description: The folders; one that is missing hides nothing.
    type: list
    elements: dict
    required: true
    suboptions:
      mount:
        description: The folder.
        type: str
        required: true
      unit:
        description: Its mount unit without suffix. If hpcsite wrote it, what is mounted is right.
        type: str
        required: true
  folder:
    description: Where the units' files are.
    type: path
    default: /etc/systemd/system
author: hpcsite
"""

EXAMPLES = """
- name: Look at what would be hidden
  hidden_files:
    mounts:
      - {mount: /home, unit: home}
"""

RETURN = """
problems:
  description: What would be hidden, a sentence a folder.
  returned: always
  type: list
"""

SHOWN = 5
NOBODY_S = ("lost+found",)
# A mount of these may be one of the site's before hpcsite described it.
NETWORK = ("nfs", "nfs4", "autofs")
MARK = "# Managed by hpcsite"


def mounted(mountinfo: str) -> dict[str, list[str]]:
    """Types of the file systems mounted on each folder in the text of /proc/self/mountinfo."""
    found: dict[str, list[str]] = {}
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        where = fields.split()[4].encode().decode("unicode_escape")
        found.setdefault(where, []).append(rest.split()[0])
    return found


def is_ours(unit: Path) -> bool:
    """Whether hpcsite wrote a unit's file."""
    try:
        return unit.read_text(encoding="utf-8").startswith(MARK)
    except OSError:
        return False


def problem(path: str, types: list[str], *, ours: bool) -> str | None:
    """Say what would be hidden on a folder; None if nothing would, or it is mounted already."""
    if types and (ours or any(kind in NETWORK for kind in types)):
        return None
    if types:
        return f"a file system of type {types[-1]} is mounted on {path}"
    try:
        names = sorted({*os.listdir(path)} - {*NOBODY_S})  # noqa: PTH208 - as fast as it gets
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return f"{path} is no folder"
    if not names:
        return None
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{path} holds {', '.join(names[:SHOWN])}{more}"


def main() -> None:
    """Run the module."""
    mount = {
        "mount": {"type": "str", "required": True},
        "unit": {"type": "str", "required": True},
    }
    module = AnsibleModule(
        argument_spec={
            "mounts": {"type": "list", "elements": "dict", "required": True, "options": mount},
            "folder": {"type": "path", "default": "/etc/systemd/system"},
        },
        supports_check_mode=True,
    )
    types = mounted(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    folder = Path(module.params["folder"])
    found = [
        problem(
            entry["mount"],
            types.get(entry["mount"], []),
            ours=is_ours(folder / f"{entry['unit']}.mount"),
        )
        for entry in module.params["mounts"]
    ]
    module.exit_json(changed=False, problems=[each for each in found if each])


if __name__ == "__main__":
    main()
