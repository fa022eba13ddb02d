"""`--rotate-munge-key`: only for the whole site, and only where the key is hpcsite's to make."""

from hpcsite.deploy.options import Options
from hpcsite.deploy.secrets import MUNGE_KEY, SECRET_VARIABLES
from hpcsite.errors import UsageError
from hpcsite.site.model import Site

_FILE_VARIABLE = SECRET_VARIABLES[MUNGE_KEY]


def check_rotation(site: Site, options: Options) -> None:
    """Raise `UsageError` for a rotation that would leave hosts behind or change nothing."""
    if not options.rotate_munge_key:
        return
    others = {"--limit": options.limit, "--tags": options.tags, "--check": options.check}
    if given := [name for name, value in others.items() if value]:
        raise UsageError(
            f"--rotate-munge-key does not go with {', '.join(given)}",
            hint="all hosts must take the new key in one run, else they no longer understand "
            "each other",
        )
    if own := own_munge_key_file(site):
        raise UsageError(
            f"--rotate-munge-key: the inventory names a munge key of its own, {own}",
            hint=f"put a new key there ({_FILE_VARIABLE}), and deploy",
        )


def own_munge_key_file(site: Site) -> str | None:
    """Name the key file that the inventory sets instead of the site's own secret."""
    files = (host.vars.get(_FILE_VARIABLE) for host in site.hosts.values())
    return next((str(file) for file in files if file), None)
