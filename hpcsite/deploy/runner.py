"""Runs one playbook with ansible-runner, the only module that imports it.

ansible-runner is kept from leaving anything behind: no environment, no event, no fact is written
to a file that stays. What is kept is what `on_event` does with the events.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_runner.interface import init_runner

from hpcsite.deploy import guard
from hpcsite.deploy.events import Event, parse_event
from hpcsite.deploy.options import INSTALL_TAG
from hpcsite.errors import CouldNotRunError
from hpcsite.paths import content_dir
from hpcsite.site.ansible import Strategy, ansible_environment

# What a user's own environment may say to Ansible: how to unlock secrets and reach hosts. The
# rest (callbacks, colours, caches, kept remote files…) would change what is run or recorded.
_USER_SETTINGS = (
    "ANSIBLE_BECOME_PASSWORD_FILE",
    "ANSIBLE_CONNECTION_PASSWORD_FILE",
    "ANSIBLE_FORKS",
    "ANSIBLE_PRIVATE_KEY_FILE",
    "ANSIBLE_REMOTE_USER",
    "ANSIBLE_SSH_",
    "ANSIBLE_TIMEOUT",
    "ANSIBLE_VAULT_",
)
# A node that dies while a task runs is noticed after a minute; mitogen's own 300 s would hold up
# all the others, and OpenSSH's default is for ever.
_ALIVE_INTERVAL_S, _ALIVE_COUNT = 15, 4
_SSH_ARGS = (
    "-o ControlMaster=auto -o ControlPersist=60s "
    f"-o ServerAliveInterval={_ALIVE_INTERVAL_S} -o ServerAliveCountMax={_ALIVE_COUNT}"
)
_VARIABLES: dict[str, object] = {
    "mitogen_ssh_keepalive_interval": _ALIVE_INTERVAL_S,
    "mitogen_ssh_keepalive_count": _ALIVE_COUNT,
}
# Stands on ansible-runner's own, and says more of each result.
_CALLBACK = "hpcsite_events"
# Ansible's own default, ~/.ansible/tmp, stays behind on each host when a run is over. Folders in
# this one are made with mode 0700 and removed.
_CHECK_REMOTE_TMP = "/tmp"  # noqa: S108
# Seconds between looks at whether a run should stop; ansible-runner's own default is 5.
_POLL_S = 1


@dataclass
class Playbook:
    """One run of `ansible-playbook`.

    `work` is ansible-runner's folder and is removed at the end; `lock` is held while anything of
    the run is alive. `on_raw` sees each event before it is read, with what hpcsite's own callback
    adds to it, and may take things out of it.
    """

    playbook: Path
    inventory: Path
    work: Path
    lock: Path
    strategy: Strategy
    on_event: Callable[[Event], None]
    on_poll: Callable[[], None] = lambda: None
    on_raw: Callable[[dict[str, Any]], None] | None = None
    limit: str | None = None
    tags: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    verbosity: int = 0
    _stops_wanted: int = field(default=0, init=False)
    _stops_sent: int = field(default=0, init=False)

    def run(self) -> int:
        """Run it to its end and return Ansible's exit code. Events come while it runs."""
        self.work.mkdir(mode=0o700)
        try:
            runner = self._prepared()
            runner.run()
        except OSError as error:
            raise CouldNotRunError(f"ansible-playbook cannot be run: {error}") from error
        finally:
            self._end_for_sure()
            shutil.rmtree(self.work, ignore_errors=True)
        return int(runner.rc if runner.rc is not None else 1)

    def stop(self) -> None:
        """End the run: a first call as Ctrl-C would, a second one at once. Returns immediately."""
        self._stops_wanted = min(self._stops_wanted + 1, 2)
        self._send_stops()

    def _prepared(self) -> Any:  # noqa: ANN401 - ansible-runner has no types
        with _without_user_settings():
            runner = init_runner(
                private_data_dir=str(self.work),
                playbook=str(self.playbook),
                inventory=str(self.inventory),
                limit=self.limit,
                tags=",".join(self.tags) or None,
                skip_tags=INSTALL_TAG,
                cmdline=shlex.join([*_extra_vars(_VARIABLES | self.variables), *self.arguments]),
                verbosity=self.verbosity or None,
                envvars=self._environment(),
                fact_cache_type="memory",
                suppress_env_files=True,
                quiet=True,
                event_handler=self._handle,
                cancel_callback=self._poll,
                status_handler=self._forget_command,
            )
        config = runner.config
        config.suppress_output_file = True
        config.pexpect_timeout = _POLL_S
        if self.on_raw is not None:
            own = str(content_dir() / "plugins" / "callback")
            config.env["ANSIBLE_STDOUT_CALLBACK"] = _CALLBACK
            config.env["ANSIBLE_CALLBACK_PLUGINS"] += f"{os.pathsep}{own}"
            config.env["ANSIBLE_REMOTE_TMP"] = _CHECK_REMOTE_TMP
        config.command = [
            *(sys.executable, "-I", "-S", guard.__file__, str(self.lock), str(self.work)),
            *config.command,
        ]
        return runner

    def _environment(self) -> dict[str, str]:
        return ansible_environment(strategy=self.strategy) | {
            # ansible-runner turns host key checking off unless told otherwise.
            "ANSIBLE_HOST_KEY_CHECKING": "true",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_LOCAL_TEMP": str(self.work / guard.TEMPORARY),
            "ANSIBLE_SSH_ARGS": os.environ.get("ANSIBLE_SSH_ARGS", _SSH_ARGS),
        }

    @property
    def _pid_file(self) -> Path:
        return self.work / guard.PID_FILE

    def _handle(self, raw: dict[str, Any]) -> bool:
        if self.on_raw is not None:
            self.on_raw(raw)
        for event in parse_event(raw):
            self.on_event(event)
        return False  # ansible-runner would write the event to a file

    def _forget_command(self, status: dict[str, Any], **_: object) -> None:
        """Remove the record of the command: it holds the whole environment, secrets included."""
        if status.get("status") == "running":
            for record in self.work.glob("artifacts/*/command"):
                record.unlink()

    def _poll(self) -> bool:
        """Serve ansible-runner's question, once a second, whether to kill; it never has to."""
        self.on_poll()
        self._send_stops()
        return False

    def _send_stops(self) -> None:
        """Send what `stop` asked for, as soon as the guard runs."""
        while self._stops_sent < self._stops_wanted:
            pid = self._guard_pid()
            if pid is None:
                break
            self._stops_sent += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _guard_pid(self) -> int | None:
        try:
            return int(self._pid_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def _end_for_sure(self) -> None:
        """After an error of our own the guard may still run: nothing else would end it."""
        pid = self._guard_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _extra_vars(variables: dict[str, object]) -> list[str]:
    """Variables for the command line, which every user of this computer can see: no secrets."""
    return ["--extra-vars", json.dumps(variables)]


@contextlib.contextmanager
def _without_user_settings() -> Iterator[None]:
    """Hide `ANSIBLE_*` variables of the user's environment: ansible-runner copies all of it."""
    hidden = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("ANSIBLE_", "RUNNER_", "AWX_")) and not name.startswith(_USER_SETTINGS)
    }
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
