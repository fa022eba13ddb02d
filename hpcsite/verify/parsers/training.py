"""What `programs/train.py` says: a line `@ {"say": ...}` a fact, between others' warnings."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveFloat, PositiveInt, TypeAdapter

from hpcsite.verify.parsers import UnreadableError, reader

# As it is, or as `srun --label` and mpirun put it.
_LINE = re.compile(r"^(?:\s*\d+: |\[\d+,\d+\]<\w+>:\s*)?@ (\{.*)$")
# NCCL_DEBUG=INFO, in its net.cc: `NCCL INFO Using network IB`.
_NETWORK = re.compile(r"NCCL INFO Using network (\S+)")
_Seconds = Annotated[PositiveFloat, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class Place:
    """Where a rank ran. `visible` and `given` are GPUs as CUDA and Slurm number them."""

    rank: NonNegativeInt
    host: str
    name: str
    local: NonNegativeInt
    world: PositiveInt
    torch: str
    device: str
    visible: str = ""
    given: str = ""
    cpus: NonNegativeInt = 0
    cpu_numa: tuple[int, ...] = ()
    gpu: str = ""
    gpu_numa: int = -1
    nics: tuple[str, ...] = ()
    interface: str = ""


@dataclass(frozen=True)
class Gradients:
    """Digests of a rank's gradients before and after they were reduced; `bytes` of all."""

    rank: NonNegativeInt
    own: str
    reduced: str
    error: float
    held: NonNegativeInt
    total: PositiveInt
    bytes: PositiveInt


@dataclass(frozen=True)
class Speed:
    """A rank's seconds a step, with all and alone; the job's samples a second. NaN: no number."""

    rank: NonNegativeInt
    steps: PositiveInt
    step_s: _Seconds
    own_s: _Seconds
    alone_s: _Seconds
    samples_s: _Seconds
    losses: Annotated[tuple[float, ...], Field(min_length=2)]


@dataclass(frozen=True)
class Reduce:
    """An all-reduce of so many bytes, as rank 0 saw it."""

    rank: NonNegativeInt
    bytes: PositiveInt
    seconds: Annotated[FiniteFloat, Field(gt=0)]


@dataclass(frozen=True)
class Training:
    """All that was said, by rank; `networks` is what NCCL says it uses."""

    places: dict[int, Place] = field(default_factory=dict)
    gradients: dict[int, Gradients] = field(default_factory=dict)
    speeds: dict[int, Speed] = field(default_factory=dict)
    reduces: tuple[Reduce, ...] = ()
    networks: tuple[str, ...] = ()
    ended: frozenset[int] = frozenset()


_KINDS: dict[str, TypeAdapter[Any]] = {
    "place": TypeAdapter(Place),
    "gradients": TypeAdapter(Gradients),
    "speed": TypeAdapter(Speed),
    "allreduce": TypeAdapter(Reduce),
}


@reader
def read_training(text: str) -> Training:
    """Read the output of all ranks. Raises `UnreadableError` with a line that cannot be read."""
    found: dict[str, dict[int, Any]] = {"place": {}, "gradients": {}, "speed": {}, "end": {}}
    reduces: list[Reduce] = []
    for line in text.splitlines():
        if match := _LINE.match(line):
            what, fact = _fact(match[1], line)
            if isinstance(fact, Reduce):
                reduces.append(fact)
            elif what in found:
                found[what][fact.rank if what != "end" else fact] = fact
    return Training(
        found["place"],
        found["gradients"],
        found["speed"],
        tuple(sorted(reduces, key=lambda one: one.bytes)),
        tuple(dict.fromkeys(_NETWORK.findall(text))),
        frozenset(found["end"]),
    )


_SAID: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def _fact(json: str, line: str) -> tuple[str, Any]:
    try:
        said = _SAID.validate_json(json)
        what = str(said.pop("say"))
        if what == "end":
            return what, int(said["rank"])
        return what, _KINDS[what].validate_python(said)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"not a line of train.py: {line[:500]}") from error
