"""Time zone, time servers and domain."""

import re
import zoneinfo
from collections.abc import Iterator
from ipaddress import ip_address

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean

_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*", re.IGNORECASE)


def timezone_exists(draft: Draft) -> Iterator[Problem]:
    """Check that the time zone is one of the tz database."""
    name = draft.keys.timezone
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = zoneinfo.available_timezones()
        yield draft.problem(
            f"there is no time zone {name}",
            ("site_timezone",),
            did_you_mean(name, known, "a name such as Europe/Berlin or Etc/UTC"),
            code="HPC1060",
        )


def names_are_well_formed(draft: Draft) -> Iterator[Problem]:
    """Domain and time servers are names or addresses."""
    if draft.keys.domain is not None and not _DOMAIN.fullmatch(draft.keys.domain):
        yield draft.problem(
            f"{draft.keys.domain} is no domain name",
            ("site_domain",),
            "write it without a leading or trailing dot, e.g. cluster.example.org",
            code="HPC1130",
        )
    for number, server in draft.entries("ntp_servers"):
        if not (_DOMAIN.fullmatch(server) or _is_address(server)):
            yield draft.problem(
                f"{server} is no host name or address",
                ("site_ntp_servers", number),
                "one name or address an entry, without options",
                code="HPC1061",
            )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


RULES = (timezone_exists, names_are_well_formed)
