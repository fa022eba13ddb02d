"""An inventory folder → `Site`. Every command begins here."""

from pathlib import Path

from pydantic import ValidationError

from hpcsite.errors import InvalidSiteError, Location, Problem
from hpcsite.site.inventory import Inventory, read_inventory
from hpcsite.site.model import Host, Site, SiteKeys


def load_site(path: Path) -> Site:
    """Read and check an inventory folder.

    Raises `InvalidSiteError` with every mistake found, `CouldNotRunError` when
    `ansible-inventory` cannot be used.
    """
    if not path.is_dir():
        raise InvalidSiteError([Problem("this is not an inventory folder", Location(path))])
    inventory = read_inventory(path)
    first = next(iter(inventory.hosts.values()), {})
    raw = {k.removeprefix("site_"): v for k, v in first.items() if k.startswith("site_")}
    raw.pop("address", None)
    try:
        keys = SiteKeys.model_validate(raw)
    except ValidationError as error:
        raise InvalidSiteError(
            [Problem(f"{e['loc']}: {e['msg']}", Location(path)) for e in error.errors()]
        ) from error
    return Site(path=path.resolve(), keys=keys, hosts=_hosts(inventory))


def _hosts(inventory: Inventory) -> dict[str, Host]:
    return {
        name: Host(
            name=name,
            groups=inventory.groups_of(name),
            address=str(values.get("site_address") or values.get("ansible_host") or ""),
            vars=values,
        )
        for name, values in inventory.hosts.items()
    }
