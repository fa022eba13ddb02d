#!/usr/bin/python
"""Say in check mode what a deploy would do that no other task shows then."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: plan_effect
short_description: What a deploy would do that check mode does not show
description:
  - Check mode skips commands, so what they do is in no result. A role says it with this module,
    in check mode only, and C(hpcsite plan) lists it.
  - Does nothing on the host.
options:
  kind:
    description:
      - C(restart), C(reconfigure) and C(reload) are of the daemon O(subject).
      - C(drain) and C(resume) are done by the deploy to nodes in Slurm.
      - C(reboot) is what O(hosts) need for a change to take effect. No deploy does it.
    type: str
    required: true
    choices: [restart, reconfigure, reload, drain, resume, reboot]
  subject:
    description: The daemon.
    type: str
    default: ""
  because:
    description: Files or sentences that say why. For a daemon without any, the files of the role
      that change.
    type: list
    elements: str
    default: []
  hosts:
    description: Whom it concerns, if not the host that the task is for.
    type: list
    elements: str
    default: []
author: hpcsite
"""

EXAMPLES = """
- name: Say that the exports would be taken over
  plan_effect:
    kind: reload
    subject: nfs-server
    because: [/etc/exports.d/hpcsite.exports]
  when: ansible_check_mode
"""

RETURN = """
effect:
  description: The options.
  returned: always
  type: dict
"""

KINDS = ("restart", "reconfigure", "reload", "drain", "resume", "reboot")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kind": {"type": "str", "required": True, "choices": list(KINDS)},
            "subject": {"type": "str", "default": ""},
            "because": {"type": "list", "elements": "str", "default": []},
            "hosts": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    effect = {key: module.params[key] for key in ("kind", "subject", "because", "hosts")}
    module.exit_json(changed=True, effect=effect)


if __name__ == "__main__":
    main()
