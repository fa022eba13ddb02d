"""Results of a check → what a deploy would change on each host."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from hpcsite.deploy.plan import diffs, packages, rules
from hpcsite.deploy.plan.masking import Masker
from hpcsite.deploy.plan.model import (
    AccountChange,
    DaemonChange,
    FileChange,
    Item,
    NodeNeed,
    OtherChange,
    PackageChange,
    Unknown,
)
from hpcsite.deploy.plan.results import Result, Skip

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE_MODULES = frozenset(
    (
        *("assemble", "blockinfile", "copy", "file", "get_url", "ini_file", "lineinfile"),
        *("replace", "template"),
    )
)
# Module → where the accounts are that it keeps. `slurm_accounts` is any module of that name which
# gives a diff in check mode.
_ACCOUNT_MODULES: dict[str, Literal["linux", "slurm"]] = {
    "group": "linux",
    "home_folders": "linux",
    "ssh_keys": "linux",
    "slurm_accounts": "slurm",
    "user": "linux",
}
# The roles' own condition for what cannot be done before packages are there.
_NEEDS_PACKAGES = re.compile(r"not ansible_check_mode or not \w+\.missing")
_NOT_RUN = "Command would have run if not in check mode"
# Modules that have nothing to look at on a fresh host: what is unknown then, and until when.
_LOOKS_LATER = {"slurmd_evidence": ("the hardware that slurmd reports", "slurmd is installed")}
_UNTIL_PACKAGES = "the packages are installed"


@dataclass
class HostState:
    """What a host runs now. `jobs`: of the controller, all jobs that hold nodes, else None."""

    kernel: str = ""
    nvidia_driver: str = ""
    jobs: list[dict[str, str]] | None = None
    jobs_problem: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """Versions by name, for the rules."""
        return {"kernel": self.kernel, "nvidia_driver": self.nvidia_driver}


@dataclass
class Findings:
    """All that a check found: changes by host in the order in which they came."""

    changes: list[tuple[str, Item]] = field(default_factory=list)
    states: dict[str, HostState] = field(default_factory=dict)
    reboots: dict[str, list[str]] = field(default_factory=dict)
    job_dangers: list[str] = field(default_factory=list)
    waiting: dict[str, list[str]] = field(default_factory=dict)

    def unknown(self) -> list[tuple[str, Item]]:
        """Say what waits for packages, a host each."""
        return [
            (host, Unknown(what=f"what {_listed(roles)} set up and run", until=_UNTIL_PACKAGES))
            for host, roles in self.waiting.items()
        ]


class Collector:
    """Takes results in, in order."""

    def __init__(self, masker: Masker) -> None:
        self.findings = Findings()
        self._masker = masker
        # Equal items of many hosts are kept once: a new /etc/hosts is as long as the site is large.
        self._items: dict[Item, Item] = {}
        self._files: dict[str, dict[str, list[str]]] = {}  # by host and role
        self._takers: dict[str, Callable[[Result], None]] = {
            "missing_packages": self._packages,
            "apt": self._packages,
            "dnf": self._packages,
            "plan_effect": self._effect,
        }

    def add(self, result: Result | Skip) -> None:
        """Take one in."""
        if isinstance(result, Skip):
            self._skip(result)
        elif result.module == "running_state":
            self._state(result)
        elif result.module == "daemon":
            self._daemon(result)
        elif result.changed:
            self._change(result)

    def _change(self, result: Result) -> None:
        if take := self._takers.get(result.module):
            take(result)
        elif result.module in _FILE_MODULES and result.path:
            self._file(result)
        elif result.module in _ACCOUNT_MODULES:
            self._account(result)
        else:
            self._other(result)

    def _found(self, host: str, item: Item) -> None:
        # Whatever a text came from, a task's name included: no secret goes further than here.
        masked = type(item).model_validate(self._masker.value(item.model_dump(mode="json")))
        self.findings.changes.append((host, self._items.setdefault(masked, masked)))

    def _file(self, result: Result) -> None:
        path = result.path
        if rules.is_own_record(path):
            return
        self._files.setdefault(result.host, {}).setdefault(result.role, []).append(path)
        if rules.needs_reboot(path):
            self.findings.reboots.setdefault(result.host, []).append(f"{path} changes")
        if result.censored or self._masker.is_secret(path):
            change = "content" if result.censored else diffs.kind_of(result.values)
            item = FileChange(path=path, change=change, note=diffs.SECRET_NOTE)
        else:
            text, note = diffs.text_of(result.values, self._masker)
            item = FileChange(path=path, change=diffs.kind_of(result.values), diff=text, note=note)
            if path == rules.SLURM_CONF:
                self.findings.job_dangers += rules.job_dangers(
                    *diffs.before_and_after(result.values)
                )
        self._found(result.host, item)

    def _daemon(self, result: Result) -> None:
        """Foresee a restart too that the module does not: it cannot see files not yet written."""
        action = str(result.values.get("action", "none"))
        files = [str(file) for file in result.about.get("files", ())]
        because = [*map(str, result.values.get("younger", ())), *self._changed_of(result, files)]
        if action == "none" and because:
            action = "restart"
        elif action == "restart" and not because:
            because = self._files_of_role(result)
        elif action == "start":
            because = ["it does not run"]
        elif action == "none" and result.changed:
            action = "enable"
        if action == "none":
            return
        item = DaemonChange(
            daemon=str(result.about.get("name", result.task)),
            action=cast('Literal["start", "restart", "enable"]', action),
            because=tuple(dict.fromkeys(because)),
        )
        self._found(result.host, item)

    def _changed_of(self, result: Result, files: list[str]) -> list[str]:
        """Files of the host that are to change, of those that the daemon reads."""
        by_role = self._files.get(result.host, {}).values()
        changed = {path for paths in by_role for path in paths}
        return [path for path in files if path in changed]

    def _files_of_role(self, result: Result) -> list[str]:
        return self._files.get(result.host, {}).get(result.role, [])

    def _packages(self, result: Result) -> None:
        for action, names in packages.read(result.values).items():
            self._found(result.host, PackageChange(action=action, packages=names))

    def _effect(self, result: Result) -> None:
        """Take in what a role says of itself in check mode; see the module."""
        effect = result.values.get("effect") or {}
        kind, because = str(effect.get("kind")), self._texts(effect.get("because"))
        hosts = self._texts(effect.get("hosts")) or [result.host]
        for host in hosts:
            if kind == "reboot":
                self.findings.reboots.setdefault(host, []).extend(because)
            elif kind in {"drain", "resume"}:
                need = cast('Literal["drain", "resume"]', kind)
                self._found(host, NodeNeed(needs=(need,), because=tuple(because), by_deploy=True))
            else:
                own = because or self._files_of_role(result)
                item = DaemonChange(
                    daemon=str(effect.get("subject", "")),
                    action=cast('Literal["restart", "reconfigure", "reload"]', kind),
                    because=tuple(dict.fromkeys(own)),
                )
                self._found(host, item)

    def _account(self, result: Result) -> None:
        text, _ = diffs.text_of(result.values, self._masker)
        names = tuple(filter(None, [] if text else [_details(result)]))
        system = _ACCOUNT_MODULES[result.module]
        item = AccountChange(system=system, what=result.task, names=names, diff=text)
        self._found(result.host, item)

    def _other(self, result: Result) -> None:
        details = _details(result)
        item = OtherChange(
            layer=result.layer, task=result.task, details=(details,) if details else ()
        )
        self._found(result.host, item)

    def _state(self, result: Result) -> None:
        state = self._masker.value(result.values.get("state") or {})
        self.findings.states[result.host] = HostState(**state)

    def _skip(self, skip: Skip) -> None:
        if _NEEDS_PACKAGES.match(skip.condition):
            roles = self.findings.waiting.setdefault(skip.host, [])
            if skip.role not in roles:
                roles.append(skip.role)
        elif skip.message == _NOT_RUN:
            self._found(skip.host, OtherChange(layer=skip.layer, task=skip.task))
        elif skip.message and not skip.condition and skip.module in _LOOKS_LATER:
            what, until = _LOOKS_LATER[skip.module]
            self._found(skip.host, Unknown(what=what, until=until))

    def _texts(self, value: object) -> list[str]:
        return [self._masker.text(str(text)) for text in value] if isinstance(value, list) else []


def _details(result: Result) -> str:
    """Say of what a result is: an item, the actions of a module, or the items that it lists."""
    values: dict[str, Any] = result.values
    for key in ("actions", "made"):
        if isinstance(values.get(key), list):
            return ", ".join(str(action) for action in values[key])
    changed = [
        str(inner.get("item", ""))
        for inner in values.get("results") or ()
        if isinstance(inner, dict) and inner.get("changed")
    ]
    return ", ".join(filter(None, changed)) or result.item or str(result.about.get("name", ""))


def _listed(roles: list[str]) -> str:
    named = [role for role in roles if role]
    if len(named) < 2:
        return "".join(named) or "the other roles"
    return f"{', '.join(named[:-1])} and {named[-1]}"
