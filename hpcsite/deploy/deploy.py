"""One deploy of a site: lock, secrets, playbooks, outcome."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from hpcsite.deploy.changes import group_changes
from hpcsite.deploy.events import Event, HostEvent, Output, PlayStarted
from hpcsite.deploy.explain import explained
from hpcsite.deploy.failures import group_failures
from hpcsite.deploy.interrupts import on_interrupt
from hpcsite.deploy.limit import chosen_hosts, critical_hosts
from hpcsite.deploy.lock import site_lock
from hpcsite.deploy.options import Options
from hpcsite.deploy.outcome import (
    Outcome,
    ended_early,
    summaries,
    untouched,
    verdict,
)
from hpcsite.deploy.plays import last_play
from hpcsite.deploy.progress import Progress
from hpcsite.deploy.rotation import check_rotation, own_munge_key_file
from hpcsite.deploy.rundir import RunDir, make_run_dir
from hpcsite.deploy.runner import Playbook
from hpcsite.deploy.secrets import (
    MUNGE_KEY,
    SECRET_VARIABLES,
    Change,
    ensure_secrets,
    missing_secrets,
    rotate_munge_key,
    sha256_of,
)
from hpcsite.deploy.tags import check_tags
from hpcsite.deploy.tally import Tally
from hpcsite.deploy.watch import Watch
from hpcsite.errors import UsageError
from hpcsite.paths import content_dir, site_state_dir
from hpcsite.site.ansible import Strategy
from hpcsite.site.model import Site
from hpcsite.site.names import fold
from hpcsite.site.record import remember_site

PLAYBOOK = "playbooks/site.yml"
# The task of the base layer that writes /etc/hosts carries this tag.
NAMES_TAG = "names"
_STRATEGIES: dict[str, Strategy] = {
    "": "auto",
    "auto": "auto",
    "linear": "linear",
    "mitogen_linear": "mitogen_linear",
}


def deploy(site: Site, options: Options, progress: Progress, watch: Watch | None = None) -> Outcome:
    """Make the site's machines match its description.

    With `watch`, the run is kept as a plan and not as a deploy.

    Raises `UsageError` for a limit or tag that names nothing, before anything is touched, and
    `CouldNotRunError` when another deploy runs or something here cannot be used. What happens on
    hosts is in the outcome, never an exception. Main thread only: signals are handled.
    """
    strategy = _strategy()
    check_rotation(site, options)
    chosen = chosen_hosts(site, options.limit)
    check_tags(options.tags)
    started, clock = datetime.now(UTC), time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(site_lock(site.name))
        run_dir = make_run_dir(site.name, "plan" if watch else "deploy")
        session = _Session(site, options, progress, strategy, run_dir, watch)
        stack.enter_context(on_interrupt(session.interrupt))
        stack.enter_context(progress)
        code = session.run(chosen)
        outcome = _outcome(session, code, started, time.monotonic() - clock)
        run_dir.outcome.write_text(outcome.model_dump_json(indent=2), encoding="utf-8")
    if not options.check and any(host.ok for host in outcome.hosts):
        remember_site(site)
    return outcome


@dataclass
class _Session:
    """State of a deploy while it runs."""

    site: Site
    options: Options
    progress: Progress
    strategy: Strategy
    run_dir: RunDir
    watch: Watch | None = None
    tally: Tally = field(default_factory=Tally)
    interrupted: bool = False
    secrets: Change = field(default_factory=Change)
    _playbook: Playbook | None = None
    _stopped: bool = False

    @cached_property
    def critical(self) -> frozenset[str]:
        """Hosts on which the site hangs."""
        return critical_hosts(self.site)

    def run(self, chosen: frozenset[str]) -> int:
        """Run the playbooks on the chosen hosts; returns the exit code of `ansible-playbook`."""
        others = frozenset(self.site.hosts) - chosen - self.critical
        limit = chosen | self.critical if others else None
        try:
            variables = self._secret_files()
            if self.watch is not None:
                self.watch.learn_secrets(self.site.secrets_dir)
                self.watch.learn_secrets(self.run_dir.spare_secrets)
            if others:
                self._run_names(others)
            return self._run(self._take, limit=limit, tags=self.options.tags, variables=variables)
        finally:
            shutil.rmtree(self.run_dir.spare_secrets, ignore_errors=True)
            if not self.tally.went_beyond("preflight"):
                self._undo_secrets()

    def interrupt(self) -> None:
        """End what runs: a first call asks, a second one forces. Called from a signal handler."""
        self.interrupted = True
        if self._playbook is not None:
            self._playbook.stop()

    def _secret_files(self) -> dict[str, str]:
        """Make the site's secrets. A check changes nothing, here neither: it uses others."""
        folder = self.site.secrets_dir
        if self.options.rotate_munge_key:
            self.secrets = rotate_munge_key(folder)
            self._note_secrets("made")
            return {}
        spare: dict[str, Path] = {}
        if self.options.check and (missing := missing_secrets(folder)):
            ensure_secrets(self.run_dir.spare_secrets)
            spare = {name: self.run_dir.spare_secrets / name for name in missing}
        else:
            self.secrets = Change(tuple(ensure_secrets(folder)))
            self._note_secrets("made")
        files = {SECRET_VARIABLES[name]: str(path) for name, path in spare.items()}
        return files | self._expected_key(spare.get(MUNGE_KEY, folder / MUNGE_KEY))

    def _expected_key(self, key: Path) -> dict[str, str]:
        """Tell the preflight which key the site has: it refuses a controller with another one."""
        if own_munge_key_file(self.site):
            return {}
        return {"preflight_munge_key_sha256": sha256_of(key)}

    def _undo_secrets(self) -> None:
        """Nothing was done on any host: the next run must not take these for the site's."""
        self._note_secrets("removed again")
        self.secrets.undo()

    def _note_secrets(self, verb: str) -> None:
        for path in self.secrets.made:
            self.progress.note(f"{verb}: the secret {path}")

    def _run_names(self, others: frozenset[str]) -> None:
        """Let the nodes outside of the limit know the names of those inside."""
        names = Tally()
        self.progress.note(f"names: /etc/hosts of {fold(others)}")
        self._run(names.add, limit=others, tags=(NAMES_TAG,), variables={})
        for failure in group_failures(names):
            reason = failure.message.partition("\n")[0]
            self.progress.note(f"{failure.nodes}: /etc/hosts is left as it is: {reason}")

    def _run(
        self,
        take: Callable[[Event], None],
        *,
        limit: frozenset[str] | None,
        tags: tuple[str, ...],
        variables: dict[str, str],
    ) -> int:
        if self.interrupted:
            return 1
        with self.run_dir.open_log() as log:

            def on_event(event: Event) -> None:
                if isinstance(event, HostEvent):
                    event = explained(self.site, event)
                if isinstance(event, Output):
                    log.write(event.text.rstrip("\n") + "\n")
                    log.flush()
                take(event)

            self._playbook = Playbook(
                playbook=content_dir() / PLAYBOOK,
                inventory=self.site.path,
                work=self.run_dir.work,
                lock=site_state_dir(self.site.name) / "ansible.lock",
                strategy=self.strategy,
                on_event=on_event,
                on_poll=self.progress.poll,
                on_raw=self.watch.raw if self.watch is not None else None,
                limit=",".join(sorted(limit)) if limit else None,
                tags=tags,
                variables=variables,
                arguments=self._arguments(),
                verbosity=self.options.verbosity,
            )
            return self._playbook.run()

    def _arguments(self) -> tuple[str, ...]:
        return (
            *(["--check"] if self.options.check else []),
            *(["--diff"] if self.options.diff else []),
        )

    def _take(self, event: Event) -> None:
        self.tally.add(event)
        self.progress.event(event, self.tally)
        if isinstance(event, HostEvent) and event.status == "ok" and event.message:
            self.progress.note(event.message)
        if isinstance(event, PlayStarted) and self.tally.out_of(self.critical):
            self._stop()

    def _stop(self) -> None:
        """Begin no other play: a host on which the site hangs dropped out."""
        if self._playbook is not None and not self._stopped:
            self._stopped = True
            self._playbook.stop()


def _outcome(session: _Session, code: int, started: datetime, duration_s: float) -> Outcome:
    tally, options = session.tally, session.options
    judged = verdict(tally, code=code, critical=session.critical, interrupted=session.interrupted)
    return Outcome(
        site=session.site.name,
        inventory=session.site.path,
        status=judged.status,
        exit_code=judged.exit_code,
        reason=judged.reason,
        started=started,
        duration_s=round(duration_s, 3),
        check=options.check,
        limit=options.limit,
        layers=tuple(tally.layers),
        hosts=summaries(tally),
        changes=group_changes(tally),
        failures=group_failures(tally),
        untouched=untouched(tally),
        ended_early=ended_early(tally, last_play(content_dir() / PLAYBOOK)),
        run_dir=session.run_dir.path,
        log=session.run_dir.log,
    )


def _strategy() -> Strategy:
    name = os.environ.get("HPCSITE_STRATEGY", "")
    if name not in _STRATEGIES:
        raise UsageError(
            f"HPCSITE_STRATEGY={name} is no strategy",
            hint=f"one of {', '.join(filter(None, _STRATEGIES))}",
        )
    return _STRATEGIES[name]
