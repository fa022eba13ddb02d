"""What the jobs of suite `isolation` said, judged. Pure.

Each judge returns what is wrong and what could not be told. No sentence holds a job's number, so
that nodes with the same fault are named together.
"""

import re

from hpcsite.slurm.job_records import SlurmJob
from hpcsite.verify.suites.confined import JobSaid, read_set

Faults = tuple[list[str], list[str]]

# A job is given MEMORY_MIB: taking UNDER_MIB it must live, taking OVER_MIB it must die.
MEMORY_MIB, UNDER_MIB, OVER_MIB = 128, 32, 320

# What open(2) says of a device. EPERM is the cgroup's word; EACCES that of the file's mode, which
# proves nothing. A device file without a driver gives ENXIO or ENODEV: the kernel let it pass.
_DENIED = "Operation not permitted"
_BY_MODE = "Permission denied"
_PASSED = ("opened", "No such device", "Device or resource busy", "Input/output error")


def device_faults(one: JobSaid, none: JobSaid, prefix: str) -> Faults:
    """Judge what a job of one GPU and one without could open."""
    wrong: list[str] = []
    unknown: list[str] = []
    own = [f"{prefix}{number}" for number in one.word("gpus").split(",") if number.isdigit()]
    if len(own) != 1:
        given = one.word("gpus") or "none"
        unknown.append(f"Slurm does not say which one device it gave a job, but {given}")
    for what, said, mine in (("a job with one GPU", one, own), ("a job without GPUs", none, [])):
        found = _opened(said)
        if not found:
            unknown.append(f"{what} told of no device")
        for why, files in _grouped(found, mine).items():
            listed = ", ".join(files)
            if why == "passed":
                held = f" beside its own {mine[0]}" if mine else ""
                wrong.append(f"{what} could open {listed}{held}: the kernel does not deny it")
            elif why == "missing":
                wrong.append(f"there is no {listed}")
            elif why == _BY_MODE:
                unknown.append(f"{what} may not open {listed} for its mode: that proves nothing")
            elif why != _DENIED:
                unknown.append(f"{what} got `{why}` from {listed}: that proves nothing")
        own_answers = {file: found.get(file, "not seen") for file in mine}
        wrong += [
            f"{what} cannot open its own {file}: {answer}"
            for file, answer in own_answers.items()
            if not _passed(answer)
        ]
    return list(dict.fromkeys(wrong)), list(dict.fromkeys(unknown))


def _opened(said: JobSaid) -> dict[str, str]:
    """Return what the kernel said of opening each device file."""
    lines = (re.fullmatch(r"device=(\S+) (.*)", line) for line in said.lines)
    return {found[1]: found[2] for found in lines if found}


def _passed(answer: str) -> bool:
    return answer.startswith(_PASSED)


def _grouped(found: dict[str, str], own: list[str]) -> dict[str, list[str]]:
    """Device files that are not a job's own, by what came of opening them."""
    groups: dict[str, list[str]] = {}
    for file, answer in found.items():
        if file not in own:
            groups.setdefault("passed" if _passed(answer) else answer, []).append(file)
    return groups


def memory_faults(over: JobSaid, under: JobSaid, records: dict[int, SlurmJob]) -> Faults:
    """Judge the ends of a job that took more memory than it was given, and of one that did not."""
    wrong: list[str] = []
    died, lived = (
        records[said.id].state if said.id in records else "unknown" for said in (over, under)
    )
    if over.value("took"):
        swap_mib = int(over.value("swap_kib") or 0) // 1024
        wrong.append(
            f"a job of {MEMORY_MIB} MiB could take {OVER_MIB} MiB; its limits: {_limits(over)}; "
            f"the node has {swap_mib} MiB of swap"
        )
    elif died != "OUT_OF_MEMORY":
        wrong.append(
            f"a job of {MEMORY_MIB} MiB did not live to take {OVER_MIB} MiB, but Slurm calls it "
            f"{died}, not OUT_OF_MEMORY"
        )
    if not under.value("took"):
        wrong.append(f"a job of {MEMORY_MIB} MiB did not live to take {UNDER_MIB} MiB: {lived}")
    elif lived != "COMPLETED":
        wrong.append(f"a job that stayed within its {MEMORY_MIB} MiB is {lived}, not COMPLETED")
    return wrong, []


def _limits(said: JobSaid) -> str:
    """Limits in the cgroups that the job is in, the innermost first."""
    lines = [line.removeprefix("limit=") for line in said.lines if line.startswith("limit=")]
    return ", ".join(line.rpartition("/")[2] for line in lines) or "none"


def core_faults(first: JobSaid, second: JobSaid) -> Faults:
    """Judge the CPUs of two jobs of one core each."""
    wrong: list[str] = []
    try:
        held = [_held(said, wrong) for said in (first, second)]
        spans = [(int(said.word("from")), int(said.word("to"))) for said in (first, second)]
    except ValueError:
        return [], ["the jobs did not tell their CPUs"]
    if not all(said.value("taskset") in ("0", "1") for said in (first, second)):
        return wrong, ["a job cannot try to get more CPUs: taskset does not work there"]
    if shared := held[0] & held[1]:
        wrong.append(f"two jobs of one core each run on CPU {', '.join(map(str, sorted(shared)))}")
    if max(start for start, _ in spans) > min(end for _, end in spans):
        return wrong, ["the two jobs of one core did not run at the same time"]
    return wrong, []


def _held(said: JobSaid, wrong: list[str]) -> frozenset[int]:
    """Return CPUs that a job began with; note in `wrong` if it had, or got, more than one core."""
    start, later = said.value("allowed"), said.value("widened")
    allowed, widened = read_set(start), read_set(later)
    lines = [line.removeprefix("core=") for line in said.lines if line.startswith("core=")]
    cores = {int(cpu): read_set(of) for cpu, of in (line.split() for line in lines)}
    if len({cores.get(cpu, frozenset((cpu,))) for cpu in allowed}) > 1:
        wrong.append(f"a job of one core may run on CPUs {start}")
    elif widened - allowed - cores.get(min(allowed), frozenset()):
        wrong.append(
            f"a job of one core began on CPU {start} and moved itself to CPUs {later}: "
            "no cpuset holds it"
        )
    if said.value("nproc") != str(len(allowed)):
        wrong.append(
            f"a job of one core may run on CPU {start}, but nproc says {said.value('nproc')}"
        )
    return allowed
