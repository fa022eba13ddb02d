"""The output of the probe → facts. Pure; what cannot be read is left out."""

import re
from collections.abc import Iterable, Iterator

from hpcsite.discover.facts import Cpus, Disk, Facts, Gpu, Interface, Port

_MARKER = re.compile(r"@@hpcsite ([a-z]+)\s*", re.ASCII)
_SECTOR = 512
# Kernel's names of what is no disk of the machine's own.
_NO_DISK = re.compile(r"(loop|ram|zram|dm-|md|sr|fd|nbd|mtd)\d*")
_BLANK = frozenset(
    ("", "none", "to be filled by o.e.m.", "default string", "system product name", "not specified")
)


def parse(target: str, text: str) -> Facts | None:
    """Make facts of what the probe said; None where it was not heard to its end."""
    sections = dict(_sections(text))
    if not {"begin", "end"} <= sections.keys():
        return None

    def lines(name: str) -> list[str]:
        return sections.get(name, [])

    firmware = _pairs(lines("dmi"), "\t")
    system = _pairs(lines("os"), "=")
    described = {**_pairs(lines("cpuinfo"), ":"), **_pairs(lines("lscpu"), ":")}
    return Facts(
        target=target,
        hostname=_only(lines("hostname")).partition(".")[0],
        ssh_address=_ssh_address(_only(lines("ssh"))),
        kernel=_only(lines("kernel")),
        os=system.get("PRETTY_NAME", "").strip("\"'"),
        product=_product(firmware),
        cpu_model=described.get("Model name") or described.get("model name", ""),
        cpus=_lscpu(lines("lscpu")) or _topology(lines("topology")) or _cpuinfo(lines("cpuinfo")),
        memory_mib=_memory(_only(lines("memory"))),
        gpus=tuple(_nvidia(lines("nvidia"))) or tuple(_pci(lines("pci"))),
        gpus_on_bus=len(list(_pci(lines("pci")))),
        ports=tuple(_ports(lines("infiniband"))),
        interfaces=tuple(_interfaces(lines("net"), lines("address"))),
        default_interface=_default_interface(lines("route")),
        disks=tuple(_disks(lines("disks"))),
    )


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in text.splitlines():
        if marker := _MARKER.fullmatch(line):
            yield name, lines
            name, lines = marker[1], []
        elif line.strip():
            lines.append(line.rstrip())
    yield name, lines


def _only(lines: list[str]) -> str:
    return lines[0].strip() if lines else ""


def _number(text: str) -> int | None:
    """Read a whole number; a size of any machine has fewer digits than these."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text.strip()) else None


def _pairs(lines: Iterable[str], separator: str) -> dict[str, str]:
    """Map names to values; of several the first counts."""
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(separator)
        found.setdefault(key.strip(), value.strip())
    return found


def _fields(lines: Iterable[str], count: int) -> Iterator[list[str]]:
    """Split lines at tabs; those with another number of fields are left out."""
    for line in lines:
        fields = line.split("\t")
        # Blanks at the end of a line are gone, and with them fields that are empty.
        fields += [""] * (count - len(fields))
        if len(fields) == count and fields[0]:
            yield [field.strip() for field in fields]


def _ssh_address(connection: str) -> str:
    """Give the address that ssh reached: $SSH_CONNECTION names client, port, server, port."""
    words = connection.split()
    return words[2] if len(words) == 4 else ""


def _product(firmware: dict[str, str]) -> str:
    words = [firmware.get(field, "") for field in ("sys_vendor", "product_name")]
    vendor, name = ("" if word.lower() in _BLANK else word for word in words)
    return name if name.lower().startswith(vendor.lower()) else f"{vendor} {name}".strip()


def _lscpu(lines: list[str]) -> Cpus | None:
    said = _pairs(lines, ":")
    names = ("Socket(s)", "Core(s) per socket", "Thread(s) per core")
    numbers = [_number(said.get(name, "")) for name in names]
    return _cpus(*numbers)


def _topology(lines: list[str]) -> Cpus | None:
    places = [(fields[1], fields[2]) for fields in _fields(lines, 3) if fields[1] and fields[2]]
    return _counted(places)


def _cpuinfo(lines: list[str]) -> Cpus | None:
    """Count by /proc/cpuinfo; without places, as on ARM, each processor is a core of one socket."""
    processors = sum(line.startswith("processor") for line in lines)
    found: dict[str, list[str]] = {"physical id": [], "core id": []}
    for line in lines:
        key, _, value = line.partition(":")
        found.get(key.strip(), []).append(value.strip())
    places = list(zip(found["physical id"], found["core id"], strict=False))
    if len(places) == processors and places:
        return _counted(places)
    return _cpus(1, processors, 1)


def _counted(places: list[tuple[str, str]]) -> Cpus | None:
    """Count sockets, cores and threads of logical CPUs by their sockets and cores."""
    cores = set(places)
    sockets = {socket for socket, _ in cores}
    if not places:
        return None
    return _cpus(len(sockets), len(cores) // len(sockets), len(places) // len(cores))


def _cpus(sockets: int | None, cores: int | None, threads: int | None) -> Cpus | None:
    if not sockets or not cores or not threads:
        return None
    return Cpus(sockets, cores, threads)


def _memory(line: str) -> int | None:
    found = re.match(r"MemTotal:\s*([0-9]{1,18}) kB", line)
    return int(found[1]) // 1024 if found else None


def _nvidia(lines: list[str]) -> Iterator[Gpu]:
    """Read what nvidia-smi says; where it cannot ask the driver, it says so in one field."""
    for line in lines:
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 3 and fields[2].startswith("GPU-"):
            yield Gpu(fields[0], _number(fields[1]))


def _pci(lines: list[str]) -> Iterator[Gpu]:
    for _, number, _, called in _fields(lines, 4):
        yield Gpu(called or f"PCI 10de:{number.removeprefix('0x')}", driver=False)


def _ports(lines: list[str]) -> Iterator[Port]:
    for hca, kind, number, rate, layer, state, interfaces in _fields(lines, 7):
        speed = re.match(r"([0-9]{1,9})(\.[0-9]+)? Gb/sec", rate)
        yield Port(
            hca=hca,
            kind=kind,
            number=_number(number) or 1,
            rate_gbit_s=int(speed[1]) if speed else None,
            link_layer=layer,
            state=state.rpartition(":")[2].strip().upper(),
            interfaces=tuple(interfaces.split()),
        )


def _interfaces(lines: list[str], addresses: list[str]) -> Iterator[Interface]:
    held: dict[str, list[str]] = {}
    for line in addresses:
        found = re.match(r"\d+:\s+(\S+)\s+inet ([0-9.]+)/", line)
        if found and "scope host" not in line:
            held.setdefault(found[1].partition("@")[0], []).append(found[2])
    known = list(_fields(lines, 5))
    for name, mac, mtu, state, _ in known:
        yield Interface(name, mac, _number(mtu), state == "up", tuple(held.get(name, ())))


def _default_interface(lines: list[str]) -> str:
    found = re.search(r"\bdev (\S+)", _only(lines))
    return found[1] if found else ""


def _disks(lines: list[str]) -> Iterator[Disk]:
    for name, size, rotational, removable, model in _fields(lines, 5):
        sectors = _number(size)
        if sectors and removable != "1" and not _NO_DISK.fullmatch(name):
            yield Disk(name, sectors * _SECTOR, rotational == "1", model)
