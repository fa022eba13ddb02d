"""Names of what a lab makes on this computer, all derived from the site's name."""

import hashlib

# The kernel's IFNAMSIZ is 16 with the final zero byte.
INTERFACE_NAME_MAX = 15
_SHORT_NAME_MAX = 10
_DIGEST_LENGTH = 4

TABLE_PREFIX = "hpcsite_"
BRIDGE_PREFIX = "hpc-"


def short_name(site_name: str) -> str:
    """Return the site's name, or a start of it and a digest where it is too long.

    At most 10 characters, so that an interface's name has room for a prefix.
    """
    if len(site_name) <= _SHORT_NAME_MAX:
        return site_name
    digest = hashlib.sha256(site_name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{site_name[: _SHORT_NAME_MAX - _DIGEST_LENGTH - 1].rstrip('-_')}-{digest}"


def bridge(site_name: str) -> str:
    """Return the name of the lab's bridge."""
    return BRIDGE_PREFIX + short_name(site_name)


def table(site_name: str) -> str:
    """Return the name of the lab's nftables table; nft identifiers know no hyphen."""
    return TABLE_PREFIX + short_name(site_name).replace("-", "_")


def machine(site_name: str, node: str) -> str:
    """Return the name under which systemd-nspawn runs a node."""
    return f"{short_name(site_name)}-{node}"


def machine_interface(site_name: str, node: str) -> str:
    """Return the host's end of a machine's link.

    systemd-nspawn shortens a name that is longer than the kernel allows, and keeps the long one
    as the interface's alternative name: `ip` finds it under both.
    """
    return f"vb-{machine(site_name, node)}"


def unit(site_name: str, node: str) -> str:
    """Return the name of the transient systemd unit that holds a machine."""
    return f"hpcsite-{machine(site_name, node)}.service"
