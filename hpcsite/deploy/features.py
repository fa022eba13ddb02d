"""What a site describes and this version does not set up: refused, or said."""

from hpcsite.errors import CouldNotRunError
from hpcsite.site.groups import FEATURES, NOT_APPLIED
from hpcsite.site.model import Site, SiteKeys
from hpcsite.site.names import fold


def require_deployed_features(site: Site) -> None:
    """Raise `CouldNotRunError` for hosts in a feature that this version does not set up.

    They would not get what the group promises, and whoever relies on it would find out late.
    """
    found = {
        feature.name: [host.name for host in site.in_group(feature.name)]
        for feature in FEATURES.values()
        if not feature.deployed
    }
    if left := {name: hosts for name, hosts in found.items() if hosts}:
        told = "; ".join(f"{name}: {fold(hosts)}" for name, hosts in left.items())
        raise CouldNotRunError(
            f"this version of hpcsite does not set up {told}",
            hint="no host was touched; take these groups out of hosts.yml to deploy the rest. "
            "validate checks them as they stand",
        )


def not_applied(site: Site) -> str:
    """Say which keys of the site no role applies yet; empty if none of them is set."""
    unset = SiteKeys(name=site.name)
    left = [
        f"site_{key} ({what})"
        for key, what in NOT_APPLIED.items()
        if getattr(site.keys, key) != getattr(unset, key)
    ]
    return f"checked, but not applied by this version: {', '.join(left)}" if left else ""
