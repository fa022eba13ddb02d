"""One verification run of a site, from the lock to the stored result."""

import contextlib
import getpass
import json
import os
import secrets
import signal
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from hpcsite import __version__
from hpcsite.errors import CouldNotRunError
from hpcsite.paths import site_state_dir
from hpcsite.site.model import Site
from hpcsite.slurm.node_records import SlurmOutputError
from hpcsite.verify import stale
from hpcsite.verify.access import find_identity, ordinary_user, submit_host
from hpcsite.verify.choices import require_known
from hpcsite.verify.context import Context, Core, Options
from hpcsite.verify.engine import Check, Listener, run_checks
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.measure import measure_cluster
from hpcsite.verify.results import Result, Run, Summary
from hpcsite.verify.store import make_run_folder, new_run_id, save, save_text
from hpcsite.verify.suites import choose
from hpcsite.verify.transport import Identity, SshTransport, Transport, UnreachableError


class Silent:
    """A listener for callers that need none."""

    def planned(self, checks: Sequence[Check]) -> None:
        """Say nothing."""

    def started(self, check: Check) -> None:
        """Say nothing."""

    def finished(self, result: Result) -> None:
        """Say nothing."""


def run_suites(
    site: Site,
    suites: Sequence[str],
    *,
    checks: Sequence[str] = (),
    options: Options | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run suites on a site and store the run, in `store.folder_of(run)`.

    `checks` chooses among the suites' checks by name. One run a site at a time. Raises
    `UsageError` for a name that the suites or Slurm do not know, `CouldNotRunError` if nothing
    could be run at all. An interrupt (Ctrl-C) ends in a stored run that says so, with no job left.
    """
    chosen = choose(suites, checks)
    return _run_stored(site, chosen, options or Options(), listener or Silent())


def _run_stored(site: Site, checks: Sequence[Check], options: Options, listener: Listener) -> Run:
    host, user = submit_host(site), ordinary_user(site)
    with _only_run(site):
        started = datetime.now(UTC)
        run_id = new_run_id(started)
        identities: dict[str, Identity] = {}
        with SshTransport(site, identities) as transport:
            identities[user] = find_identity(transport, host, user)
            folder = make_run_folder(site.name, run_id)
            core = Core(
                site, transport, host, user, options, run_id, folder, origin=_origin(site), by=_by()
            )
            results, interrupted = _run(core, checks, listener)
        run = Run(
            hpcsite_version=__version__,
            run_id=run_id,
            site=site.name,
            cluster=site.cluster_name,
            user=user,
            submit_host=host.name,
            suites=tuple(dict.fromkeys(check.suite for check in checks)),
            started=started,
            finished=datetime.now(UTC),
            interrupted=interrupted,
            results=tuple(results),
            summary=Summary.of(results),
        )
        save(folder, run)
        return run


def _run(core: Core, checks: Sequence[Check], listener: Listener) -> tuple[list[Result], bool]:
    evidence = Evidence(core.folder, "run")
    cluster = measure_cluster(core, evidence)
    core.start = Evidence(core.folder, "run")
    core.start.add(evidence)
    context = Context(core, cluster, evidence)
    require_known(context)
    _cancel_stale(context)
    try:
        return run_checks(core, cluster, checks, listener)
    finally:
        _leave_nothing(context, core.transport)


def _cancel_stale(context: Context) -> None:
    try:
        stale.cancel_stale(context)
    except (NotMeasuredError, SlurmOutputError) as error:
        raise CouldNotRunError(
            str(error),
            hint=f"try `squeue --me --json` as {context.core.user} on {context.core.host.name}; "
            "hpcsite verifies Slurm 22.05 and newer, built with JSON",
        ) from error


def _leave_nothing(context: Context, transport: Transport) -> None:
    """Cancel what is left of this run's jobs and remove its folders; a second Ctrl-C waits."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        transport.resume()
        with contextlib.suppress(UnreachableError):
            stale.cancel_all(context)
            if leftovers := context.core.leftovers:
                context.user(["rm", "-rf", "--", *leftovers], "clean-up", timeout_s=15)
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _only_run(site: Site) -> Iterator[None]:
    """Hold the site's lock, with the holder's name in it; raises `CouldNotRunError`."""
    folder = site_state_dir(site.name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CouldNotRunError(
            f"cannot make {folder}: {error.strerror}",
            hint="set HPCSITE_STATE_DIR to a folder that you may write to",
        ) from error
    holder = folder / "verify.holder"
    try:
        with FileLock(folder / "verify.lock", timeout=0):
            holder.write_text(json.dumps(_self()), encoding="utf-8")
            try:
                yield
            finally:
                holder.unlink(missing_ok=True)
    except Timeout:
        raise CouldNotRunError(
            f"site {site.name} is being verified already{_who(holder)}",
            hint="wait until that run is over, or end it; one run a site at a time, since runs "
            "would disturb each other's measurements",
        ) from None


def _origin(site: Site) -> str:
    """Name of the folder that holds the site's lock; the lock must be held."""
    file = site_state_dir(site.name) / "verify.origin"
    if not file.is_file():
        save_text(file, f"{secrets.token_hex(8)}\n")
    return file.read_text(encoding="utf-8").strip()


def _by() -> str:
    return "{user} on {host}".format(**_self())


def _self() -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "user": os.environ.get("SUDO_USER") or getpass.getuser(),
        "host": socket.gethostname(),
        "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    }


def _who(holder: Path) -> str:
    try:
        known = json.loads(holder.read_text(encoding="utf-8"))
        return " by {user} on {host}, process {pid}, since {since}".format(**known)
    except (OSError, ValueError, KeyError):
        return ""
