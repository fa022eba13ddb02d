"""The tables of docs/catalogue.md, made from the catalogue's data.

`python -m tests.unit.site.catalogue_tables` writes them into the page; a test holds the page to
them.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from hpcsite.site.catalogue import Catalogue, NodeProfile, load_catalogue, unknown
from hpcsite.site.catalogue.load import named_sources
from hpcsite.site.catalogue.models import Gpu, Nic, Reference, Source, Sourced, SwitchProfile

Entry = TypeVar("Entry", Gpu, Nic, NodeProfile, SwitchProfile)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "catalogue.md"


class _Cells:
    """Figures as cells, each with the number of its source."""

    def __init__(self) -> None:
        self.sources: dict[Source, int] = {
            source: number for number, source in enumerate(named_sources().values(), 1)
        }

    def __call__(self, figure: Sourced | None, *, words: str = "") -> str:
        if figure is None:
            return "?"
        value = getattr(figure, "value", words)
        shown = f"{value:,.6g}" if isinstance(value, float) else f"{value}"
        note = f" ({figure.note})" if figure.note else ""
        return f"{shown}{note} [{self.sources[figure.source]}]"


def tables() -> dict[str, str]:
    """Text between the markers `<!-- NAME -->` and `<!-- end of NAME -->`, by name."""
    catalogue, cells = load_catalogue(), _Cells()
    return {
        "nodes": "\n".join(_nodes(catalogue, cells)),
        "racks": "\n".join(_racks(catalogue, cells)),
        "gpus": "\n".join(_gpus(catalogue, cells)),
        "mig": "\n".join(_mig(catalogue, cells)),
        "nics": "\n".join(_nics(catalogue, cells)),
        "switches": "\n".join(_switches(catalogue, cells)),
        "references": "\n".join(_references(catalogue, cells)),
        "unknown": "\n".join(_unknown(catalogue)),
        "sources": "\n".join(_source_list(cells)),
    }


def with_tables(page: str) -> str:
    """Put the tables into a page."""
    for name, text in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}{text}\n{end}{rest.partition(end)[2]}"
    return page


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _by_name(entries: dict[str, Entry]) -> list[Entry]:
    return [entries[name] for name in sorted(entries)]


def _nodes(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    yield from _table(
        (
            "profile",
            "what",
            "sockets",
            "cores in each",
            "threads",
            "memory MiB",
            "GPUs",
            "adapters",
        ),
        (
            (
                f"`{node.name}`",
                node.title,
                cells(node.sockets),
                cells(node.cores_per_socket),
                cells(node.threads_per_core),
                cells(node.memory_mib),
                cells(node.gpu_count) + (f" `{node.gpu.name}`" if node.gpu else ""),
                _adapters(node, cells),
            )
            for node in _by_name(catalogue.nodes)
        ),
    )


def _adapters(node: NodeProfile, cells: _Cells) -> str:
    if node.nics is None:
        return "?"
    return ", ".join(
        f"{cells(nics.count)} `{nics.nic.name}`, rails {cells(nics.rails)}" for nics in node.nics
    )


def _racks(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    nodes = [node for node in _by_name(catalogue.nodes) if not node.virtual]
    yield from _table(
        ("profile", "U", "depth mm", "weight kg", "power W", "heat BTU/h", "air flow"),
        (
            (
                f"`{node.name}`",
                cells(node.rack_units),
                cells(node.depth_mm),
                cells(node.weight_kg),
                cells(node.max_power_w),
                cells(node.heat_btu_h),
                f"{cells(node.airflow)}; CFM {cells(node.airflow_cfm)}",
            )
            for node in nodes
        ),
    )
    yield ""
    yield from _table(
        (
            "profile",
            "power supplies",
            "W each",
            "for full power",
            "to run at all",
            "inlet",
            "inlet °C",
        ),
        (
            (
                f"`{node.name}`",
                cells(node.psu.count),
                cells(node.psu.rating_w),
                cells(node.psu.needed_full),
                cells(node.psu.needed_degraded),
                _inlet(node, cells),
                f"{cells(node.inlet_celsius_min)} to {cells(node.inlet_celsius_max)}",
            )
            for node in nodes
        ),
    )
    yield ""
    for node in nodes:
        yield from (f"- `{node.name}`: {note}." for note in node.notes)


def _inlet(node: NodeProfile, cells: _Cells) -> str:
    volts = f"{cells(node.inlet_volts_min)} to {cells(node.inlet_volts_max)} V"
    return f"{cells(node.inlet)}; {volts}, {cells(node.inlet_amps)} A"


def _gpus(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    yield from _table(
        (
            *("GPU", "what", "GRES type", "memory GB", "memory GB/s", "NVLink GB/s one way"),
            *("C2C GB/s", "PCIe generation", "lanes", "TDP W"),
        ),
        (
            (
                f"`{gpu.name}`",
                gpu.title,
                f"`{gpu.gres_type}`",
                cells(gpu.memory_gb),
                cells(gpu.hbm_gbyte_s),
                cells(gpu.nvlink_gbyte_s),
                cells(gpu.c2c_gbyte_s) if gpu.c2c_gbyte_s else "",
                cells(gpu.pcie.generation) if not gpu.c2c_gbyte_s else "",
                cells(gpu.pcie.lanes) if not gpu.c2c_gbyte_s else "",
                cells(gpu.tdp_w),
            )
            for gpu in _by_name(catalogue.gpus)
        ),
    )


def _mig(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    yield from _table(
        ("GPU", "profile", "compute slices", "memory slices", "begins at", "at most"),
        (
            (
                f"`{gpu.name}`{cells(gpu.mig)}",
                f"`{name}`",
                f"{profile.compute_slices} of {gpu.mig.compute_slices}",
                f"{profile.memory_slices} of {gpu.mig.memory_slices}",
                ", ".join(str(place) for place in profile.placements),
                str(profile.max_instances),
            )
            for gpu in _by_name(catalogue.gpus)
            if gpu.mig
            for name, profile in gpu.mig.profiles.items()
        ),
    )
    none = ", ".join(f"`{gpu.name}`" for gpu in _by_name(catalogue.gpus) if not gpu.mig)
    yield ""
    yield f"Unknown: {none}."


def _nics(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    yield from _table(
        ("adapter", "what", "Gb/s"),
        ((f"`{nic.name}`", nic.title, cells(nic.speed_gbit_s)) for nic in _by_name(catalogue.nics)),
    )


def _switches(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    yield from _table(
        (
            *("switch", "what", "fabric", "ports", "Gb/s each", "connector", "U", "depth mm"),
            *("weight kg", "typical W", "most W"),
        ),
        (
            (
                f"`{switch.name}`",
                "; ".join((switch.title, *switch.notes)),
                switch.fabric,
                cells(switch.ports),
                cells(switch.speed_gbit_s),
                cells(switch.connector),
                cells(switch.rack_units),
                cells(switch.depth_mm),
                cells(switch.weight_kg),
                cells(switch.typical_power_w),
                cells(switch.max_power_w),
            )
            for switch in _by_name(catalogue.switches)
        ),
    )


def _references(catalogue: Catalogue, cells: _Cells) -> Iterator[str]:
    owners: tuple[Gpu | Nic | NodeProfile, ...] = (
        *_by_name(catalogue.gpus),
        *_by_name(catalogue.nics),
        *_by_name(catalogue.nodes),
    )
    yield from _table(
        ("of", "metric", "value", "kind", "applies to"),
        (
            (
                f"`{owner.name}`",
                f"`{reference.metric}`",
                _reached(reference, cells),
                reference.kind,
                _applies(reference),
            )
            for owner in owners
            for reference in owner.references
        ),
    )


def _reached(reference: Reference, cells: _Cells) -> str:
    percent = reference.tolerance_percent
    below = "" if percent is None else f", {percent:g} % less is good"
    return f"{reference.value:g} {reference.unit}{below} [{cells.sources[reference.source]}]"


def _applies(reference: Reference) -> str:
    gpus = f"{reference.gpus} GPUs: " if reference.gpus else ""
    note = f"; {reference.note}" if reference.note else ""
    return f"{gpus}{reference.applies}{note}"


def _unknown(catalogue: Catalogue) -> Iterator[str]:
    for node in _by_name(catalogue.nodes):
        names = [name for name in unknown(node) if not name.startswith("gpu.")]
        yield f"- `{node.name}`: {', '.join(names) or 'nothing'}"
    parts: list[Gpu | SwitchProfile] = [*_by_name(catalogue.gpus), *_by_name(catalogue.switches)]
    for part in parts:
        yield f"- `{part.name}`: {', '.join(unknown(part)) or 'nothing'}"


def _source_list(cells: _Cells) -> Iterator[str]:
    for source, number in cells.sources.items():
        url = f", <{source.url}>" if source.url else ""
        grade = f" ({source.grade})" if source.grade else ""
        yield f"{number}. {source.title}{url}{grade}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
