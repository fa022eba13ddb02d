"""Where hpcsite finds its own content and keeps what it makes.

Content (playbooks, roles, plugins, example inventories) lies at the root of a checkout, and in
`hpcsite/content/` of an installed wheel. State and caches follow the XDG base directories, or for
root the system's own folders.
"""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def content_dir() -> Path:
    """Folder that holds `playbooks/`, `roles/`, `plugins/`, `inventory/` and `ansible.cfg`."""
    installed = _PACKAGE / "content"
    return installed if installed.is_dir() else _PACKAGE.parent


def state_dir() -> Path:
    """Folder for runs and for what is known of sites.

    `$HPCSITE_STATE_DIR`, else `/var/lib/hpcsite` for root, else `$XDG_STATE_HOME/hpcsite`.
    """
    return _base("HPCSITE_STATE_DIR", "/var/lib/hpcsite", "XDG_STATE_HOME", ".local/state")


def cache_dir() -> Path:
    """Folder for what can be made again: lab images and packages.

    `$HPCSITE_CACHE_DIR`, else `/var/cache/hpcsite` for root, else `$XDG_CACHE_HOME/hpcsite`.
    """
    return _base("HPCSITE_CACHE_DIR", "/var/cache/hpcsite", "XDG_CACHE_HOME", ".cache")


def site_state_dir(site_name: str) -> Path:
    """Folder for the runs, locks and records of one site."""
    return state_dir() / "sites" / site_name


def _base(override: str, system: str, xdg: str, home: str) -> Path:
    if chosen := os.environ.get(override):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path(system)
    base = os.environ.get(xdg)
    return (Path(base) if base else Path.home() / home) / "hpcsite"
