"""What all models are made of: patterns, types of text and numbers, the frozen base."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[a-z][a-z0-9_-]*$"
LOGIN_NAME = r"^[a-z_][a-z0-9_-]{0,31}$"
PARTITION_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
GRES_TYPE = r"^[a-z][a-z0-9_.-]*$"
DEVICE = r"^/dev/[A-Za-z0-9_/.-]*[A-Za-z_/.-]$"
ABSOLUTE = r"^/[^\s:]*$"
# What exports(5), systemd's unit names and a shell all take as it is: no normal form but this one.
SHARED = r"^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$"
MOUNT_OPTION = r"^[A-Za-z0-9_.=:/+-]+$"
MODE = r"^[0-7]{4}$"
COMMENT = r"^[^:\n]*$"
FEATURE = r"^[A-Za-z0-9_.-]+$"
PARAMETER = r"^[A-Za-z][A-Za-z0-9]*$"

# What each pattern asks for, in words.
PATTERNS = {
    NAME: "lower-case letters, digits, - and _, beginning with a letter",
    LOGIN_NAME: "at most 32 lower-case letters, digits, - and _, beginning with a letter or _",
    PARTITION_NAME: "letters, digits, - and _, beginning with a letter",
    GRES_TYPE: "lower-case letters, digits, _, . and -, beginning with a letter",
    DEVICE: "a path below /dev, less the device's number",
    ABSOLUTE: "an absolute path without spaces",
    SHARED: (
        "an absolute path of letters, digits, _, . and -, without a / at its end; no part of it "
        "begins with a dot or a hyphen"
    ),
    MOUNT_OPTION: "one option of nfs(5), without commas and blanks",
    MODE: 'four octal digits in quotes, e.g. "1777"',
    COMMENT: "one line without colons",
    FEATURE: "letters, digits, _, . and -, without spaces",
    PARAMETER: "a key of slurm.conf: letters and digits",
}

Name = Annotated[str, Field(pattern=NAME, max_length=63)]
LoginName = Annotated[str, Field(pattern=LOGIN_NAME)]
# Below 1000 are the distributions' own accounts. What is reserved above is a rule of its own
# (hpcsite.site.rules.accounts).
FixedId = Annotated[int, Field(ge=1000, le=2**31 - 1)]
Scalar = str | int | float | bool
ParameterName = Annotated[str, Field(pattern=PARAMETER)]


class Frozen(BaseModel):
    """Base of every model: immutable, and a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
