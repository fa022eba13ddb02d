"""Slurm's release, of what its tools call their version."""

import re

Release = tuple[int, int]
CURRENT: Release = (9999, 0)


def release(version: str) -> Release:
    """Read year and month of a release in a text such as `slurm-wlm 24.11.5`.

    A text without one is taken for a current release.
    """
    found = re.search(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else CURRENT
