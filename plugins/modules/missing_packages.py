#!/usr/bin/python
"""Say which of some packages are not installed, in a few milliseconds and without changing any."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: missing_packages
short_description: Which of some packages are not installed
description:
  - Asks dpkg or rpm. Far cheaper than a package manager's own module, which reads all its lists
    even when there is nothing to do.
options:
  names:
    description: Names of packages.
    type: list
    elements: str
    required: true
author: hpcsite
"""

EXAMPLES = """
- name: Look for missing packages
  missing_packages:
    names: [munge]
  register: packages_state
"""

RETURN = """
missing:
  description: Those that are not installed, in the order given.
  returned: always
  type: list
"""


def installed_by_dpkg(module: AnsibleModule, dpkg_query: str, names: list[str]) -> set[str]:
    """Names that dpkg holds as installed; configuration left behind does not count."""
    form = "${binary:Package} ${db:Status-Status}\n"
    _, out, _ = module.run_command([dpkg_query, "--show", "--showformat=" + form, *names])
    pairs = [line.split() for line in out.splitlines()]
    return {pair[0].split(":")[0] for pair in pairs if len(pair) == 2 and pair[1] == "installed"}


def installed_by_rpm(module: AnsibleModule, rpm: str, names: list[str]) -> set[str]:
    """Names that rpm holds as installed, also as something that another package provides."""
    installed = set()
    for name in names:
        code, _, _ = module.run_command([rpm, "--query", "--whatprovides", name])
        if code == 0:
            installed.add(name)
    return installed


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"names": {"type": "list", "elements": "str", "required": True}},
        supports_check_mode=True,
    )
    names = module.params["names"]
    dpkg_query = module.get_bin_path("dpkg-query")
    if not names:
        installed = set()
    elif dpkg_query:
        installed = installed_by_dpkg(module, dpkg_query, names)
    else:
        installed = installed_by_rpm(module, module.get_bin_path("rpm", required=True), names)
    module.exit_json(changed=False, missing=[name for name in names if name not in installed])


if __name__ == "__main__":
    main()
