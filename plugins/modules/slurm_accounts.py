#!/usr/bin/python
"""Run sacctmgr's commands one after the other, and keep a record of what they made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

REFUSED = "Error with request"
# What slurmdbd says of a removal that has to wait: for jobs, or for whoever has it as a default.
# Slurm 24.11 so keeps what is of one partition of a default account, too; 26.05 does not.
LATER = ("Job(s) active", "default account of a user", "as their Default QOS")
# Jobs that a sentence names.
SHOWN = 10

DOCUMENTATION = """
module: slurm_accounts
short_description: QOS, accounts and users in slurmdbd
description:
  - Runs the commands that the filter C(slurm_accounts_plan) made, in their order, each for itself.
    One that fails keeps back those that need what it was to make, and all removals; the others
    are done, so that the next run has less to do.
  - Nothing is removed for which jobs are running or waiting, nor what slurmdbd still wants to keep.
  - Writes down what was added, so that later runs know what may be removed.
options:
  steps:
    description: The commands.
    type: list
    elements: dict
    required: true
    suboptions:
      text:
        description: What it does, for people.
        type: str
        required: true
      argv:
        description: The command.
        type: list
        elements: str
        required: true
      makes:
        description: Keys of what it adds.
        type: list
        elements: str
        default: []
      needs:
        description: Keys without which it cannot be done, if this run is to make them.
        type: list
        elements: str
        default: []
      removes:
        description: Keys of what it removes.
        type: list
        elements: str
        default: []
      jobs:
        description: Options of squeue; if it names a job, the command is not run.
        type: list
        elements: str
        default: []
  standing:
    description: Keys of what earlier runs made and what still stands.
    type: list
    elements: str
    default: []
  record:
    description: File for the keys of what was made.
    type: path
    required: true
  before:
    description: What stands, as text.
    type: str
    default: ""
  after:
    description: What is wanted, as text.
    type: str
    default: ""
author: hpcsite
"""

EXAMPLES = """
- name: Keep QOS, accounts and users
  slurm_accounts:
    steps:
      - text: "account physics: fairshare 1 -> 40"
        argv: [sacctmgr, --immediate, modify, account, where, name=physics, set, FairShare=40]
    record: /var/lib/hpcsite/slurm-accounts.json
"""

RETURN = """
results:
  description: The commands that were run, or would be, each with item (its text) and changed.
  returned: always
  type: list
  elements: dict
left_out:
  description: What was not removed, and why, a sentence each.
  returned: always
  type: list
  elements: str
"""


def run(module: AnsibleModule, argv: list[str]) -> tuple[int, str]:
    """Run a command; its status, and what it said in one line, the errors first."""
    status, out, error = module.run_command(argv)
    # Some refusals, such as to remove what has jobs, come with status 0.
    if status == 0 and REFUSED in error:
        status = 1
    said = [line.strip() for line in [*error.splitlines(), *out.splitlines()] if line.strip()]
    return status, "; ".join(said) or f"status {status}"


def holding_jobs(module: AnsibleModule, options: list[str]) -> str:
    """Say why jobs forbid a removal; empty if none do."""
    argv = ["squeue", "--noheader", "--format=%i", *options]
    status, out, error = module.run_command(argv)
    if status == 0:
        jobs = out.split()
        more = " …" if len(jobs) > SHOWN else ""
        return f"has jobs: {', '.join(jobs[:SHOWN])}{more}" if jobs else ""
    # A user whom the host no longer knows: slurmdbd looks for jobs too, by the association.
    return "" if "Invalid user" in error else f"may have jobs: {error.strip()}"


def write_record(path: str, keys: set[str]) -> None:
    """Write the keys, whole or not at all."""
    Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = Path(f"{path}.new")
    draft.write_text(json.dumps({"made": sorted(keys)}, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def read_record(path: str) -> set[str]:
    """Read the keys that are written there."""
    try:
        return set(json.loads(Path(path).read_text(encoding="utf-8"))["made"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


class Outcome:
    """What has been done so far."""

    def __init__(self, made: set[str]) -> None:
        self.made = made
        self.lacking: set[str] = set()
        self.failed: list[str] = []
        self.left_out: list[str] = []
        self.results: list[dict[str, Any]] = []

    def fail(self, step: dict[str, Any], why: str) -> None:
        """Note that a step failed, and what others will lack for it."""
        self.failed.append(f"{step['text']}: {why}")
        self.lacking |= set(step["makes"])

    def do(self, module: AnsibleModule, step: dict[str, Any]) -> None:
        """Do one step, or note why not."""
        if step["removes"] and self.failed:
            self.left_out.append(f"{step['text']}: not done, because other changes failed")
        elif lacking := self.lacking & set(step["needs"]):
            self.fail(step, f"not done, it needs the {', '.join(sorted(lacking))}")
        elif step["jobs"] and (reason := holding_jobs(module, step["jobs"])):
            self.left_out.append(f"{step['text']}: not done, it {reason}")
        else:
            status, said = (0, "") if module.check_mode else run(module, step["argv"])
            if status != 0 and step["removes"] and any(each in said for each in LATER):
                self.left_out.append(f"{step['text']}: not done, slurmdbd refuses: {said}")
                return
            if status != 0:
                self.fail(step, said)
                return
            self.made = (self.made | set(step["makes"])) - set(step["removes"])
            self.results.append({"item": step["text"], "changed": True})


def main() -> None:
    """Run the module."""
    strings: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
    step = {
        "text": {"type": "str", "required": True},
        "argv": {"type": "list", "elements": "str", "required": True},
        **{name: dict(strings, no_log=False) for name in ("makes", "needs", "removes", "jobs")},
    }
    module = AnsibleModule(
        argument_spec={
            "steps": {"type": "list", "elements": "dict", "required": True, "options": step},
            "standing": strings,
            "record": {"type": "path", "required": True},
            "before": {"type": "str", "default": ""},
            "after": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    module.run_command_environ_update = {"LC_ALL": "C.UTF-8"}
    steps, record = module.params["steps"], module.params["record"]
    outcome = Outcome(set(module.params["standing"]))
    for each in steps:
        outcome.do(module, each)
    if not module.check_mode and outcome.made != read_record(record):
        write_record(record, outcome.made)
    before, after = module.params["before"], module.params["after"]
    changed = bool(outcome.results)
    diff = {"before": before, "after": after if changed else before}
    diff["before_header"] = diff["after_header"] = "QOS, accounts and users in slurmdbd"
    result = {
        "changed": changed,
        "results": outcome.results,
        "left_out": outcome.left_out,
        "diff": diff,
    }
    if outcome.failed:
        title = f"{len(outcome.failed)} of {len(steps)} changes of Slurm's accounts failed"
        module.fail_json(msg="\n".join([f"{title}:", *outcome.failed]), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
