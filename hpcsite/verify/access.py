"""Who runs the checks and where from: an ordinary user on a login node."""

from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Host, Site
from hpcsite.verify.transport import Answer, Identity, Transport, UnreachableError

PROBE = 'id -un; getent passwd "$1"; command -v runuser || true; command -v sudo || true'
_TIMEOUT_S = 15
_PASSWD_FIELDS = 7


def submit_host(site: Site) -> Host:
    """Where jobs are submitted: the first login node, else the controller.

    Raises `CouldNotRunError` for a site without either.
    """
    for group in ("slurm_login", "slurm_controller"):
        if hosts := site.in_group(group):
            return hosts[0]
    raise CouldNotRunError(
        f"site {site.name} has no host to submit jobs from",
        hint="put a host into the group slurm_login, or slurm_controller",
    )


def ordinary_user(site: Site) -> str:
    """Return the user who runs verification; raises `CouldNotRunError` if the site names none."""
    if site.keys.verify_user:
        return site.keys.verify_user
    raise CouldNotRunError(
        f"site {site.name} names no ordinary user to run verification",
        hint="set site_verify_user to a user who may submit jobs, e.g. in "
        f"{site.path}/group_vars/all/site.yml",
    )


def find_identity(transport: Transport, host: Host, user: str) -> Identity:
    """How to become `user` on `host`; raises `CouldNotRunError` with what is missing."""
    try:
        probe = ["sh", "-c", PROBE, "sh", user]
        answer = transport.run(host, probe, user=None, timeout_s=_TIMEOUT_S)
    except UnreachableError as error:
        raise CouldNotRunError(
            f"cannot reach the submit host: {error}",
            hint=f"try `ssh` to {host.address} by hand; the lab's machines are shown by "
            "`hpcsite lab status`",
        ) from error
    return read_identity(answer, user)


def read_identity(answer: Answer, user: str) -> Identity:
    """Read the answer to `PROBE`.

    Raises `CouldNotRunError` if the user cannot be become, or the host gave no answer.
    """
    # getent fails for a user who is not there, and what follows it does not.
    if not answer.ok:
        raise CouldNotRunError(
            f"cannot ask {answer.host} who {user} is: {answer.complaint}",
            hint="its load, or the service that knows its users, may hold it up; try again",
        )
    own, *rest = answer.stdout.splitlines() or [""]
    entry = next((line.split(":") for line in rest if line.startswith(f"{user}:")), None)
    if entry is None or len(entry) != _PASSWD_FIELDS:
        raise CouldNotRunError(
            f"there is no user {user} on {answer.host}",
            hint="`hpcsite deploy` makes the users of site_users; site_verify_user must name one "
            "of them or a user that the site's directory knows",
        )
    home = entry[5]
    if own == user:
        return Identity(user, home)
    if own == "root" and any(line.endswith("/runuser") for line in rest):
        return Identity(user, home, ("runuser", "-u", user, "--"))
    if any(line.endswith("/sudo") for line in rest):
        return Identity(user, home, ("sudo", "-n", "-u", user, "--"))
    raise CouldNotRunError(
        f"{own} cannot become {user} on {answer.host}",
        hint=f"connect as root or as {user}, or install sudo there",
    )
