"""Parser of `nvidia-smi topo -m`: how the GPUs and HCAs of a node are connected."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from orchestrator.model.facts import Topology
from orchestrator.model.problem import Problem
from orchestrator.probes import Probe, topology_table
from orchestrator.probes.topology_table import GPU, LIST, WHOLE_NAME, Row

_NIC = re.compile(r"NIC[0-9]+")
_TITLES = frozenset({"CPU Affinity", "NUMA Affinity", "GPU NUMA ID", ""})
_LEGEND = re.compile(r"\s*(NIC[0-9]+)\s*:\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class _Affinity:
    cpu: str | None = None
    numa: str | None = None
    problem: str = ""


def parse(text: str) -> Topology:
    """The topology of a node, with a problem per thing that cannot be read safely.

    Raises:
        LogError: there is no table, or its columns have run into each other.

    Source:
        Outputs of drivers 4xx to 59x; NVIDIA does not specify the format.
    """
    found = topology_table.table(text)
    names, name_problems = _names(found.columns, _legend(found.below))
    again = [Problem("SECOND-TABLE", "a second table follows; only the first is read")]
    problems = (*again[: found.others], *name_problems, *found.problems)
    return _topology(names, found.titles, found.rows, problems)


PROBE = Probe(name="topology", argv=("nvidia-smi", "topo", "-m"), parse=parse)


def _topology(
    names: Sequence[str],
    titles: Sequence[str],
    rows: Mapping[int, Row],
    problems: Sequence[Problem],
) -> Topology:
    gpus = tuple(name for name in names if GPU.fullmatch(name))
    links = {names[place]: _links(place, rows[place], names) for place in sorted(rows)}
    affinity = {
        names[place]: _affinity(row, titles)
        for place, row in sorted(rows.items())
        if names[place] in gpus
    }
    read = {name: affinity.get(name, _Affinity()) for name in gpus}
    return Topology(
        gpus=gpus,
        hcas=tuple(name for name in names if name not in gpus),
        links=links,
        cpu_affinity={name: read[name].cpu for name in gpus if "CPU Affinity" in titles},
        numa_affinity={name: read[name].numa for name in gpus if "NUMA Affinity" in titles},
        problems=(
            *problems,
            *(
                Problem("UNKNOWN-COLUMN", f"{title}: not a title that this parser knows")
                for title in titles
                if title not in _TITLES
            ),
            *_missing_rows(names, links),
            *(
                Problem("AFFINITY", f"{name}: {a.problem}")
                for name, a in affinity.items()
                if a.problem
            ),
            *_asymmetries(links),
        ),
    )


def _links(place: int, row: Row, names: Sequence[str]) -> dict[str, str]:
    words = zip(names, row.links, strict=True)
    return {name: word for at, (name, word) in enumerate(words) if at != place}


def _legend(block: Sequence[str]) -> dict[str, str]:
    lines = list(filter(None, map(_LEGEND.fullmatch, block)))
    # The end of the text may have cut a name in its last line.
    ends_text = bool(lines) and lines[-1].string == block[-1]
    if ends_text and not WHOLE_NAME.fullmatch(lines[-1][2]):
        lines.pop()
    entries = {(line[1], line[2]) for line in lines}
    times = Counter(nic for nic, _ in entries)
    return {nic: name for nic, name in entries if times[nic] == 1}


def _names(
    columns: Sequence[str], legend: Mapping[str, str]
) -> tuple[tuple[str, ...], list[Problem]]:
    """The final name of every column, and the problems with them."""
    printed = [name for name in columns if not GPU.fullmatch(name)]
    real = [legend.get(name, name) for name in printed]
    hcas = [name if name and real.count(name) == 1 else f"?{at}" for at, name in enumerate(real)]
    left = iter(hcas)
    names = tuple(name if GPU.fullmatch(name) else next(left) for name in columns)
    return names, list(_name_problems(printed, hcas, legend))


def _name_problems(
    printed: Sequence[str], hcas: Sequence[str], legend: Mapping[str, str]
) -> Iterator[Problem]:
    unknown = [name for name in hcas if name.startswith("?")]
    if unknown:
        reason = "HCA columns with a blank or repeated name are called by their place"
        yield Problem("HCA-NAME", f"{reason}: {', '.join(unknown)}")
    for name in hcas:
        if not WHOLE_NAME.fullmatch(name):
            yield Problem("HCA-NAME", f"{name}: the driver cuts long names; this may be one")
    nics = {name for name in printed if _NIC.fullmatch(name)}
    for name in sorted(nics ^ legend.keys()):
        lacks = "the NIC legend does not name it" if name in nics else "in the legend, not a column"
        yield Problem("NIC-LEGEND", f"{name}: {lacks}")


def _missing_rows(names: Sequence[str], links: Mapping[str, object]) -> Iterator[Problem]:
    missing = [name for name in names if name not in links]
    if missing:
        yield Problem("MISSING-ROW", f"no usable row for {', '.join(missing)}")


def _asymmetries(links: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    for one, other in combinations(links, 2):
        there, back = links[one][other], links[other][one]
        if there != back:
            yield Problem("ASYMMETRIC", f"{one} to {other} is {there}, but back it is {back}")


def _affinity(row: Row, titles: Sequence[str]) -> _Affinity:
    cells = _fitted(row, titles)
    if len(cells) != len(titles):
        words = len([cell for cell in row.affinity if cell])
        return _Affinity(problem=f"{words} affinity words for {len(titles)} columns; not used")
    by_title = dict(zip(titles, cells, strict=True))
    cpu, numa = by_title.get("CPU Affinity"), by_title.get("NUMA Affinity")
    if cpu not in (None, "", "N/A") and numa == "":
        # 0-31,64-95 and 0 with no tab between them are 0-31,64-950, which looks right.
        return _Affinity(problem=f"{cpu!r} may be a CPU list and a NUMA node in one; not used")
    odd = [cell for cell in (cpu, numa) if cell and cell != "N/A" and not _ascends(cell)]
    problem = f"not a list of ascending numbers: {', '.join(odd)}; not used" if odd else ""
    return _Affinity(_number_list(cpu), _number_list(numa), problem)


def _fitted(row: Row, titles: Sequence[str]) -> list[str]:
    """The affinity cells, without tabs that belong to no column."""
    cells = list(row.affinity)
    if not row.tabbed:
        return cells
    while len(cells) > len(titles) and not cells[-1]:
        cells.pop()
    # Drivers since 535 print one tab between these titles, and two between their values.
    if tuple(titles[-2:]) == ("NUMA Affinity", "GPU NUMA ID") and len(cells) == len(titles) + 1:
        return cells[:-2] + cells[-1:] if not cells[-2] else cells
    return cells


def _number_list(cell: str | None) -> str | None:
    return cell if cell and _ascends(cell) else None


def _ascends(cell: str) -> bool:
    if not LIST.fullmatch(cell):
        return False
    numbers = [int(number) for number in re.split("[-,]", cell)]
    return numbers == sorted(set(numbers))
