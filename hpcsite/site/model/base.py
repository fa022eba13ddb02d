"""What all models are made of: patterns, types of text and numbers, the frozen base."""

import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

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
HOST_NAME = r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$"
HOSTLIST = r"^[A-Za-z0-9][A-Za-z0-9,\[\]-]*$"
CATALOGUE_NAME = r"^[a-z0-9][a-z0-9_.-]*$"
NUMBERS = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"
MIG_PROFILE = r"^([0-9]+c\.)?[0-9]+g\.[0-9]+gb([+-][a-z.]+)*$"
BLOCK_DEVICE = r"^/dev/[A-Za-z0-9_.:+-]+(/[A-Za-z0-9_.:+-]+)*$"
RDMA_DEVICE = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
MAC = r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"
LUSTRE_NAME = r"^[A-Za-z0-9_-]{1,8}$"
ACCOUNT_NAME = r"^[a-z0-9_][a-z0-9_.-]*$"
WORD = r"^[A-Za-z]+$"
LINE = r"^[^\n\"'|]*$"
SLURM_TIME = r"^[0-9A-Za-z:-]+$"
TRES = r"^[a-z]+(/[A-Za-z0-9_.:-]+)?$"
OVERSUBSCRIBE = r"^(NO|EXCLUSIVE|(YES|FORCE)(:[0-9]+)?)$"
NCCL_NAME = r"^NCCL_[A-Z0-9_]+$"
VERSION = r"^[0-9A-Za-z][0-9A-Za-z.+:~_-]*$"
EMAIL = r"^[^@\s,]+@[^@\s,]+$"
WEB_ADDRESS = r"^https?://[^\s]+$"
CODE = r"^HPC[0-9]{4}$"
NOT_BLANK = r"\S"

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
    MOUNT_OPTION: "one option of nfs(5) or mount.lustre(8), without commas and blanks",
    MODE: 'four octal digits in quotes, e.g. "1777"',
    COMMENT: "one line without colons",
    FEATURE: "letters, digits, _, . and -, without spaces",
    PARAMETER: "a key of slurm.conf: letters and digits",
    HOST_NAME: "a host's short name: letters, digits and hyphens",
    HOSTLIST: "nodes as Slurm writes them, e.g. gpu[001-016]",
    CATALOGUE_NAME: "a profile's name: lower-case letters, digits, -, _ and .",
    NUMBERS: 'numbers from 0 in quotes, e.g. "0-3" or "0,2"',
    MIG_PROFILE: "a MIG profile as NVIDIA names it, e.g. 1g.10gb",
    BLOCK_DEVICE: "a block device, e.g. /dev/nvme0n1 or /dev/disk/by-id/…",
    RDMA_DEVICE: "an RDMA device as `rdma link` names it, e.g. mlx5_0",
    MAC: "a MAC address in quotes, e.g. 0c:42:a1:00:00:01",
    LUSTRE_NAME: "a Lustre file system's name: at most 8 letters, digits, - and _",
    ACCOUNT_NAME: "lower-case letters, digits, _, - and .",
    WORD: "one word of letters",
    LINE: "one line without quotes and |",
    SLURM_TIME: "a time as Slurm writes it, e.g. 1-00:00:00",
    TRES: "a TRES of Slurm's, e.g. cpu, mem, node or gres/gpu",
    OVERSUBSCRIBE: 'in quotes "NO", or EXCLUSIVE, FORCE or YES, the last two also with a number '
    "of jobs, e.g. FORCE:4",
    NCCL_NAME: "a variable of NCCL's: NCCL_ and upper-case letters, digits and _",
    VERSION: "a version: letters, digits, ., +, :, ~, _ and -",
    EMAIL: "an e-mail address",
    WEB_ADDRESS: "an address that begins with http:// or https://",
    CODE: "a code of hpcsite's: HPC and four digits",
    NOT_BLANK: "some text",
}

Name = Annotated[str, Field(pattern=NAME, max_length=63)]
LoginName = Annotated[str, Field(pattern=LOGIN_NAME)]
# Below 1000 are the distributions' own accounts. What is reserved above is a rule of its own
# (hpcsite.site.rules.accounts).
FixedId = Annotated[int, Field(ge=1000, le=2**31 - 1)]
Scalar = str | int | float | bool
ParameterName = Annotated[str, Field(pattern=PARAMETER)]
HostName = Annotated[str, Field(pattern=HOST_NAME)]
Hostlist = Annotated[str, Field(pattern=HOSTLIST)]
CatalogueName = Annotated[str, Field(pattern=CATALOGUE_NAME)]
BlockDevice = Annotated[str, Field(pattern=BLOCK_DEVICE)]
SharedPath = Annotated[str, Field(pattern=SHARED)]
AccountName = Annotated[str, Field(pattern=ACCOUNT_NAME)]
SlurmTime = Annotated[str, Field(pattern=SLURM_TIME)]


def _count(value: object) -> int | str:
    """Accept what Slurm takes for a count of a TRES; -1 is its way to lift a limit."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= -1:
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]+[KMGTP]?", value):
        return value
    raise PydanticCustomError(
        FORM, "a whole number, or for memory one with K, M, G, T or P behind it, e.g. 512G"
    )


def _fairshare(value: object) -> int | str:
    if value == "parent" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise PydanticCustomError(FORM, "a whole number of shares, or parent")


# Validators of their own rather than unions: a union's error names each of its members.
TresCount = Annotated[
    int | str,
    PlainValidator(_count),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": -1},
                {"type": "string", "pattern": "^[0-9]+[KMGTP]?$"},
            ]
        }
    ),
]
Fairshare = Annotated[
    int | str,
    PlainValidator(_fairshare),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"const": "parent"}]}),
]
TresMap = dict[Annotated[str, Field(pattern=TRES)], TresCount]

# Type of the errors of validators below, whose messages say what a value must be.
FORM: Final = "form"


class Frozen(BaseModel):
    """Base of every model: immutable, and a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


def require_one(model: BaseModel, *names: str) -> None:
    """Demand that exactly one of some fields is set; for validators of whole models."""
    given = [name for name in names if getattr(model, name)]
    if len(given) != 1:
        raise PydanticCustomError(
            FORM,
            "one with either {names}, and not with both",
            {"names": " or ".join(names)},
        )


def one_of(*names: str) -> ConfigDict:
    """Say the same in a model's JSON Schema."""
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [name]} for name in names]})
