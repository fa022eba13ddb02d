"""docs/codes.md, made from the registry of codes.

`python -m tests.unit.site.code_page` writes the page; a test holds it to the registry.
"""

from collections.abc import Iterator
from pathlib import Path

from hpcsite.site.codes import AREAS, CODES, Code

PAGE = Path(__file__).resolve().parents[3] / "docs" / "codes.md"
_HEAD = """\
# Codes

`hpcsite validate` ends each message with the code of the mistake, and `hpcsite explain CODE` says
on the terminal what stands here. Without a code, it lists them all.

A message may be worded better in a later version; a code stays what it is. One kind of mistake has
one code, and different kinds have different ones, so that a code can be searched for, written into
a runbook, and read by a program (`hpcsite validate --json`). A number is never given to another
mistake: the code of one that is no longer reported stays in this list, marked as retired. The first
two digits are the area.

## Errors and warnings

An error makes the site invalid: the command ends with 3, and touches nothing. A warning does not:
what it speaks of is allowed, and mostly not what was meant. It goes to stderr, and the command goes
on. A code is either the one or the other, wherever it is found.

A warning that a site has good reason for is acknowledged in its inventory:

```yaml
site_acknowledged:
  - code: HPC1999
    key: gpu07
    reason: has one GPU less until the spare part comes
```

`key` is the key or the host that the warning names (`hpcsite validate --json` has both), and covers
all that stands below that key; without it, all warnings of the code are meant. An acknowledgement
that matches nothing is a warning itself (HPC1052), and one of an error is an error (HPC1051).

## For programs

`hpcsite validate --json` prints one object:

| field | meaning |
|---|---|
| `schema` | 1; raised when a field changes its meaning or goes |
| `valid` | whether there is no error |
| `problems` | the errors |
| `warnings` | the warnings that are not acknowledged |
| `acknowledged` | the warnings that are, each with its `reason` |

Each problem has `code`, `severity` (`error` or `warning`), `message`, `path`, `line` (null for a
file as a whole), `key`, `host` (empty where it is that of no single host) and `hint`.

`hpcsite explain --json` prints `schema` and `codes`: all of them, or the one that was asked for,
each with `code`, `severity`, `area`, `title`, `cause`, `remedy`, `example` and `retired`.
"""


def page() -> str:
    """Write the whole page."""
    parts = [_HEAD]
    for area, title in AREAS.items():
        parts.append(f"## {area}xx: {title}\n")
        parts += [_section(code) for code in CODES.values() if code.area == area]
    return "\n".join(parts)


def _section(code: Code) -> str:
    return "\n\n".join(_paragraphs(code)) + "\n"


def _paragraphs(code: Code) -> Iterator[str]:
    yield f"### {code.number}: {code.title}"
    if code.warning:
        yield "*A warning.*"
    if code.retired:
        yield "*Retired: no longer reported.*"
    yield code.cause.strip()
    yield f"**What to do:** {code.remedy.strip()}"
    if code.example:
        yield f"```yaml\n{code.example.rstrip()}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
