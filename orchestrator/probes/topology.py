"""Parser of `nvidia-smi topo -m`: how the GPUs and HCAs of a node are connected.

The driver separates cells by tabs, a terminal by blanks. The `X` on the diagonal proves that the
words of a row stand where they belong; a row that does not fit is not used.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from orchestrator import errors
from orchestrator.model.facts import Topology
from orchestrator.model.problem import Problem
from orchestrator.probes import Probe

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]+")
_NIC = re.compile(r"NIC[0-9]+")
_DEVICE = re.compile(r"(?:GPU|NIC)[0-9]+|mlx[0-9]+_\w+")
_WHOLE_NAME = re.compile(r"(?!mlx[0-9]+$).*[0-9]")
_TITLES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_WORD = re.compile(rf"{'|'.join(_TITLES)}|\S+")
_LEGEND = re.compile(r"\s*(NIC[0-9]+)\s*:\s*(\S+)\s*")
_LINK = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_KNOWN_LINK = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|SOC|C2C|NV[0-9]{1,2}")
# "NV18PIX", "SYS0-7": two cells without a tab between them.
_GLUED = re.compile(rf"(?:{_KNOWN_LINK.pattern}).+")
_P2P = re.compile(r"OK|[CGT]?NS|DR|U")
_LIST = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")
_FIX = "record it on the node itself with `nvidia-smi topo -m > FILE`"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row that fits the header, with its place among the columns."""

    place: int
    links: tuple[str, ...]
    affinity: tuple[str, ...]


def parse(text: str) -> Topology:
    """The topology of a node, with a problem per thing that cannot be read safely.

    Raises:
        LogError: there is no table, or none of its rows fits its header.

    Source:
        Outputs of drivers 4xx to 59x; NVIDIA does not specify the format.
    """
    lines = _ANSI.sub("", text).split("\n")
    heads = [at for at, line in enumerate(lines) if _is_head(_cells(line))]
    if not heads:
        code = "NO-TABLE" if text.strip() else "EMPTY"
        cause = "no line has the titles GPU0, GPU1, ... of a topology table"
        raise errors.LogError(cause if text.strip() else "the text is empty", code=code, fix=_FIX)
    columns, titles = _columns(_cells(lines[heads[0]]))
    below = lines[heads[0] + 1 : heads[1] if len(heads) > 1 else None]
    rows, unread = _rows(below, columns)
    names, name_problems = _names(columns, _legend(below))
    second = [Problem("UNREADABLE", "a second table follows; only the first is read")]
    problems = (*second[: len(heads) - 1], *name_problems, *unread)
    return _topology(names, titles, rows, problems)


PROBE = Probe(name="topology", argv=("nvidia-smi", "topo", "-m"), parse=parse)


def _cells(line: str) -> list[str]:
    """Return the cells of a line; the first is empty in the header and for HCAs without a name."""
    if "\t" in line:
        return [cell.strip() for cell in line.split("\t")]
    return ([""] if line[:1].isspace() else []) + _WORD.findall(line)


def _is_head(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and not cells[0] and bool(_GPU.fullmatch(cells[1]))


def _columns(head: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the device titles, those of HCAs maybe blank, and the affinity titles."""
    cells = list(head[1:])
    while not cells[-1]:
        cells.pop()
    first = next((at for at, cell in enumerate(cells) if " " in cell), len(cells))
    columns, titles = cells[:first], cells[first:]
    named = [name for name in columns if _GPU.fullmatch(name)] + [name for name in titles if name]
    if len(set(named)) < len(named):
        raise errors.LogError("the header has a title twice", code="UNREADABLE", fix=_FIX)
    return columns, titles


def _rows(below: Sequence[str], columns: Sequence[str]) -> tuple[list[_Row], list[Problem]]:
    """Return the rows that fit, in the order of columns, and why others are not used."""
    table = _table(below, columns)
    rows: list[_Row] = []
    problems: dict[str, Problem] = {}
    if table and table[-1] == _cells(below[-1]) and _may_be_cut(table):
        name = table.pop()[0]
        problems[name] = _unused(name, "the text ends within its row")
    for cells in table:
        if row := _row(cells, columns):
            rows.append(row)
        else:
            problems[cells[0]] = _misfit(cells, len(columns))
    times = Counter(row.place for row in rows)
    repeated = {columns[place] for place in times if times[place] > 1}
    problems |= {name: _unused(name, "two rows") for name in repeated}
    kept = sorted((row for row in rows if times[row.place] == 1), key=lambda row: row.place)
    if not kept:
        cause = f"none of the {len(table)} rows fits the {len(columns)} devices of the header"
        raise errors.LogError(cause, code="UNREADABLE", fix=_FIX)
    for name in set(columns) - {columns[place] for place in times}:
        problems.setdefault(name, _unused(name, "no row"))
    return kept, [problems[name] for name in sorted(problems)]


def _misfit(cells: Sequence[str], width: int) -> Problem:
    why = f"not X for itself and a link for each of {width} devices"
    if glued := [cell for cell in cells[1:] if _GLUED.fullmatch(cell) and not _is_link(cell)]:
        return _unused(cells[0], f"{why}, but {', '.join(map(repr, glued))}", "GLUED")
    return _unused(cells[0], why)


def _unused(name: str, why: str, code: str = "UNREADABLE") -> Problem:
    return Problem(code, f"{name or 'HCA without a name'}: {why}; not used")


def _is_link(word: str) -> bool:
    return bool(_KNOWN_LINK.fullmatch(word))


def _table(below: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Return the cells of each line that has a device's name, or is of one without."""
    legend = next((at for at, line in enumerate(below) if "Legend" in line), len(below))
    return [
        cells
        for cells in map(_cells, below[:legend])
        if any(cells[1:]) and (cells[0] in columns or _DEVICE.fullmatch(cells[0]))
    ]


def _may_be_cut(table: Sequence[Sequence[str]]) -> bool:
    """Return False if the last word is an ``X``, or if another row ends with the same word."""
    words = [[cell for cell in cells if cell][-1] for cells in table]
    return words[-1] != "X" and words[-1] not in words[:-1]


def _row(cells: Sequence[str], columns: Sequence[str]) -> _Row | None:
    width = len(columns)
    links, affinity = tuple(cells[1 : 1 + width]), tuple(cells[1 + width :])
    selves = [at for at, word in enumerate(links) if word == "X"]
    is_whole = len(links) == width and all(map(_LINK.fullmatch, links))
    is_longer = any(map(_LINK.fullmatch, affinity))
    if not is_whole or is_longer or len(selves) != 1 or columns[selves[0]] != cells[0]:
        return None
    return _Row(selves[0], links, affinity)


def _topology(
    names: Sequence[str], titles: Sequence[str], rows: Sequence[_Row], problems: Sequence[Problem]
) -> Topology:
    gpus = tuple(name for name in names if _GPU.fullmatch(name))
    links = {}
    for row in rows:
        words = dict(zip(names, row.links, strict=True))
        del words[names[row.place]]
        links[names[row.place]] = words
    cpu: dict[str, str | None] = dict.fromkeys(gpus)
    numa: dict[str, str | None] = dict.fromkeys(gpus)
    doubts = []
    for row in rows:
        name = names[row.place]
        if name in cpu:
            cpu[name], numa[name], doubt = _affinity(row.affinity, titles)
            doubts += [Problem("AFFINITY", f"{name}: {doubt}; not used")] if doubt else []
    return Topology(
        gpus=gpus,
        hcas=tuple(name for name in names if name not in gpus),
        links=links,
        cpu_affinity=cpu if "CPU Affinity" in titles else {},
        numa_affinity=numa if "NUMA Affinity" in titles else {},
        problems=(*problems, *_unknown(titles, links), *doubts, *_asymmetries(links)),
    )


def _legend(below: Sequence[str]) -> dict[str, str]:
    lines = [line for line in map(_LEGEND.fullmatch, below) if line]
    # The end of the text may have cut a name in its last line.
    if lines and lines[-1].string == below[-1] and not _WHOLE_NAME.fullmatch(lines[-1][2]):
        lines.pop()
    entries = {(line[1], line[2]) for line in lines}
    times = Counter(nic for nic, _ in entries)
    return {nic: name for nic, name in entries if times[nic] == 1}


def _names(
    columns: Sequence[str], legend: Mapping[str, str]
) -> tuple[tuple[str, ...], list[Problem]]:
    printed = [name for name in columns if not _GPU.fullmatch(name)]
    real = [legend.get(name, name) for name in printed]
    hcas = [name if name and real.count(name) == 1 else f"?{at}" for at, name in enumerate(real)]
    problems = []
    if unknown := [name for name in hcas if name.startswith("?")]:
        reason = "HCA columns with a blank or repeated name are called by their place"
        problems.append(Problem("HCA-NAME", f"{reason}: {', '.join(unknown)}"))
    for name in hcas:
        if _NIC.fullmatch(name):
            problems.append(Problem("HCA-NAME", f"{name}: the legend does not name it"))
        elif not _WHOLE_NAME.fullmatch(name):
            said = f"{name}: the driver cuts long names; this may be one"
            problems.append(Problem("HCA-NAME", said))
    left = iter(hcas)
    return tuple(name if _GPU.fullmatch(name) else next(left) for name in columns), problems


def _unknown(titles: Sequence[str], links: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """Tables of other questions have words that say nothing of wiring."""
    for title in titles:
        if title and title not in _TITLES:
            yield Problem("UNREADABLE", f"{title}: not a title that this parser knows")
    words = {word for row in links.values() for word in row.values()}
    if unknown := sorted(word for word in words if not _is_link(word)):
        said = f"{', '.join(unknown)}: no kind of link between devices"
        if any(map(_P2P.fullmatch, unknown)):
            said += "; this is `nvidia-smi topo -p2p`: record `nvidia-smi topo -m`"
        yield Problem("UNKNOWN-LINK", said)


def _asymmetries(links: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    for one, other in combinations(links, 2):
        there, back = links[one][other], links[other][one]
        if there != back:
            yield Problem("ASYMMETRIC", f"{one} to {other} is {there}, but back it is {back}")


def _affinity(cells: Sequence[str], titles: Sequence[str]) -> tuple[str | None, str | None, str]:
    """Return the CPUs, the NUMA node, and why they cannot be told apart, if they cannot."""
    fitted = _fitted(cells, titles)
    if len(fitted) != len(titles):
        words = len([cell for cell in cells if cell])
        return None, None, f"{words} affinity words for {len(titles)} columns"
    by_title = dict(zip(titles, fitted, strict=True))
    cpu, numa = by_title.get("CPU Affinity"), by_title.get("NUMA Affinity")
    if cpu not in (None, "", "N/A") and numa == "":
        # 0-31,64-95 and 0 with no tab between them are 0-31,64-950, which looks right.
        return None, None, f"{cpu!r} may be a CPU list and a NUMA node in one"
    lists = [cell if cell and cell != "N/A" else None for cell in (cpu, numa)]
    if odd := [cell for cell in lists if cell and not _LIST.fullmatch(cell)]:
        return None, None, f"not a list of numbers: {', '.join(odd)}"
    return lists[0], lists[1], ""


def _fitted(cells: Sequence[str], titles: Sequence[str]) -> Sequence[str]:
    """Return the affinity cells without tabs that belong to no column."""
    while len(cells) > len(titles) and not cells[-1]:
        cells = cells[:-1]
    # Drivers since 535 print one tab between these titles, and two between their values.
    doubled = len(cells) == len(titles) + 1 and not cells[-2]
    if doubled and tuple(titles[-2:]) == _TITLES[1:]:
        return (*cells[:-2], cells[-1])
    return cells
