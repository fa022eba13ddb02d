"""The environment of every Ansible subprocess. Nothing here imports Ansible."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Literal

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import content_dir

Strategy = Literal["auto", "linear", "mitogen_linear"]


def ansible_environment(*, strategy: Strategy = "linear") -> dict[str, str]:
    """Environment in which Ansible finds hpcsite's configuration, and its own tools.

    Strategies: `linear` is Ansible's own; `mitogen_linear` is mitogen's, which needs far fewer
    round trips; `auto` takes mitogen's where it is installed. Raises `CouldNotRunError` when
    mitogen's is asked for and missing.
    """
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join(
        [str(tools_dir()), environment.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")]
    )
    environment["ANSIBLE_CONFIG"] = str(content_dir() / "ansible.cfg")
    # Ansible refuses to start without a UTF-8 locale, and its messages are read by machines.
    environment["LC_ALL"] = "C.UTF-8"
    environment["ANSIBLE_LOCALHOST_WARNING"] = "false"
    environment["ANSIBLE_INVENTORY_UNPARSED_WARNING"] = "false"
    return environment | _strategy_environment(strategy)


def tools_dir() -> Path:
    """Folder of the `ansible-*` tools that belong to this Python."""
    candidates = [
        Path(sys.executable).parent,
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))),
    ]
    for folder in candidates:
        if (folder / "ansible-inventory").is_file():
            return folder
    if found := shutil.which("ansible-inventory"):
        return Path(found).parent
    raise CouldNotRunError(
        "ansible-inventory is not installed beside this Python",
        hint=f"install it: {sys.executable} -m pip install ansible-core",
    )


def mitogen_strategy_dir() -> Path | None:
    """Folder of mitogen's strategy plugins; None where mitogen is not installed."""
    spec = importlib.util.find_spec("ansible_mitogen")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "plugins" / "strategy"
    return folder if folder.is_dir() else None


def _strategy_environment(strategy: Strategy) -> dict[str, str]:
    if strategy == "linear":
        return {}
    folder = mitogen_strategy_dir()
    if folder is None:
        if strategy == "auto":
            return {}
        raise CouldNotRunError(
            "the strategy mitogen_linear is not installed",
            hint=f"install it: {sys.executable} -m pip install mitogen",
        )
    return {"ANSIBLE_STRATEGY": "mitogen_linear", "ANSIBLE_STRATEGY_PLUGINS": str(folder)}
