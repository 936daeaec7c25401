"""Parser of `nvidia-smi topo -m`: how the GPUs and HCAs of a node are connected.

The driver separates cells by tabs; a terminal or a paste turns them into blanks, and then
an empty cell can no longer be seen. A row is therefore read by its tabs where they fit, else
by its words, and the `X` on the diagonal proves that the words stand where they belong.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, takewhile

from orchestrator import errors
from orchestrator.model.facts import JSON, Topology
from orchestrator.model.problem import Problem
from orchestrator.probes import Probe

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]+")
_NIC = re.compile(r"NIC[0-9]+")
_DEVICE = re.compile(r"(?:GPU|NIC)[0-9]+\w*|mlx[0-9]+_\w*")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_GLUED_NAME = re.compile(r".+(?:GPU[0-9]|NIC[0-9]|mlx[0-9]+_).*|(?:GPU|NIC)[0-9]+[A-Za-z_].*")
_WHOLE_NAME = re.compile(r"(?!mlx[0-9]+$).*[0-9]")
_TITLE = re.compile(r"(?:CPU|NUMA|Node)\s+Affinity|GPU\s+NUMA\s+ID")
_TITLES = frozenset({"CPU Affinity", "NUMA Affinity", "GPU NUMA ID", ""})
_TITLE_WORDS = frozenset({"CPU", "NUMA", "Node", "GPU", "ID", "Affinity"})
_LINK = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KNOWN_LINK = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|SOC|NV[0-9]{1,2}")
_GLUED_LINK = re.compile(
    rf"(?:{_KNOWN_LINK.pattern}){{2,}}"
    r"|(?:X|SYS|NODE|PHB|PXB|PIX|SOC)[0-9].*|NV[0-9]{3,}.*|NV[0-9]+[-,].*"
)
_LIST = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")
_LEGEND = re.compile(r"\s*(NIC[0-9]+)\s*:\s*(\S+)\s*")
_FIX = "record it on the node itself with `nvidia-smi topo -m > FILE`"


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    links: tuple[str, ...]
    affinity: tuple[str, ...]
    tabbed: bool


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
    lines = _ANSI.sub("", text).split("\n")
    head, *others = _heads(lines)
    block = lines[head + 1 : others[0] if others else None]
    titled, titles = _columns(lines[head])
    row_lines = [line for line in _before_legend(block) if _is_row(line, titled)]
    table, cut = _whole(row_lines, ends_text=lines[-1:] == row_lines[-1:])
    columns = _settled(titled, table)
    names, name_problems = _names(columns, _legend(block))
    rows, unread = _placed(table, columns)
    again = [Problem("SECOND-TABLE", "a second table follows; only the first is read")]
    return _topology(names, titles, rows, [*again[: len(others)], *name_problems, *cut, *unread])


def document(fact: Topology) -> dict[str, JSON]:
    """The JSON of ``inspect topology``."""
    return {
        "gpus": list(fact.gpus),
        "hcas": list(fact.hcas),
        "links": {name: dict(row) for name, row in fact.links.items()},
        "cpu_affinity": dict(fact.cpu_affinity),
        "numa_affinity": dict(fact.numa_affinity),
        "problems": [asdict(problem) for problem in fact.problems],
    }


PROBE = Probe(name="topology", argv=("nvidia-smi", "topo", "-m"), parse=parse)


def _topology(
    names: Sequence[str],
    titles: Sequence[str],
    rows: Mapping[int, _Row],
    problems: Sequence[Problem],
) -> Topology:
    gpus = tuple(name for name in names if _GPU.fullmatch(name))
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


def _links(place: int, row: _Row, names: Sequence[str]) -> dict[str, str]:
    words = zip(names, row.links, strict=True)
    return {name: word for at, (name, word) in enumerate(words) if at != place}


def _heads(lines: Sequence[str]) -> list[int]:
    if not any(line.strip() for line in lines):
        raise errors.LogError("the text is empty", code="EMPTY", fix=_FIX)
    heads = [index for index, line in enumerate(lines) if _is_head(line)]
    if not heads:
        raise errors.LogError(
            "no line has the titles GPU0, GPU1, ... of a topology table", code="NO-TABLE", fix=_FIX
        )
    return heads


def _is_head(line: str) -> bool:
    words = line.split()
    if not words or not _GPU.match(words[0]) or any(map(_KNOWN_LINK.fullmatch, words[1:])):
        return False
    if _TITLE.search(line):
        return True
    # Without an affinity title, prose such as "GPU0 and GPU1 are close" must not pass.
    devices = all(map(_NAME.fullmatch, words)) and all(map(_WHOLE_NAME.fullmatch, words))
    return devices and any(map(_DEVICE.fullmatch, words[1:2]))


def _columns(head: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The device titles, some blank, and the affinity titles."""
    cells = [cell.strip() for cell in head.split("\t")]
    first = next((at for at, cell in enumerate(cells) if _TITLE.fullmatch(cell)), len(cells))
    devices, titles = cells[:first], cells[first:]
    if any(" " in cell for cell in devices) or "\t" not in head:
        match = _TITLE.search(head)
        split_at = match.start() if match else len(head)
        devices = head[:split_at].split()
        titles = re.findall(rf"{_TITLE.pattern}|\S+(?: \S+)*", head[split_at:])
    _refuse_glued_titles(devices)
    last_gpu = max(at for at, name in enumerate(devices) if _GPU.fullmatch(name))
    gpus = [name for name in devices[: last_gpu + 1] if name]
    hcas = devices[last_gpu + 1 :]
    # mx-smi, which prints this table for MetaX, calls the NUMA node just "Node".
    plain = [" ".join(title.split()).replace("Node Aff", "NUMA Aff") for title in titles]
    if any(times > 1 for title, times in Counter(plain).items() if title):
        raise errors.LogError("the header has an affinity title twice", code="GLUED", fix=_FIX)
    return (*gpus, *hcas), tuple(plain)


def _refuse_glued_titles(devices: Sequence[str]) -> None:
    for name in filter(None, devices):
        if name in _TITLE_WORDS or not _NAME.fullmatch(name) or _GLUED_NAME.fullmatch(name):
            raise errors.LogError(
                f"the header has {name!r} where the name of one device is due;"
                " the columns cannot be told apart",
                code="GLUED",
                fix=_FIX,
            )
    gpus = [name for name in devices if _GPU.fullmatch(name)]
    if len(set(gpus)) < len(gpus):
        raise errors.LogError("the header names a GPU twice", code="GLUED", fix=_FIX)


def _settled(columns: tuple[str, ...], table: Sequence[str]) -> tuple[str, ...]:
    """The device columns, with as many blank names among them as the rows have words for.

    A blank title is either an HCA without a name or a tab too many; and where tabs became
    blanks, HCAs without names have left no trace in the header at all.
    """
    named = tuple(filter(None, columns))
    runs = Counter(len(_run(_after_name(line, columns))) for line in table)
    width = runs.most_common(1)[0][0] if runs else len(columns)
    if width == len(named):
        return named
    if width > len(named) and all(map(_GPU.fullmatch, named)):
        return (*named, *[""] * (width - len(named)))
    return columns


def _legend(block: Sequence[str]) -> dict[str, str]:
    lines = list(filter(None, map(_LEGEND.fullmatch, block)))
    # The end of the text may have cut a name in its last line.
    ends_text = bool(lines) and lines[-1].string == block[-1]
    if ends_text and not _WHOLE_NAME.fullmatch(lines[-1][2]):
        lines.pop()
    entries = {(line[1], line[2]) for line in lines}
    times = Counter(nic for nic, _ in entries)
    return {nic: name for nic, name in entries if times[nic] == 1}


def _names(
    columns: Sequence[str], legend: Mapping[str, str]
) -> tuple[tuple[str, ...], list[Problem]]:
    """The final name of every column, and the problems with them."""
    printed = [name for name in columns if not _GPU.fullmatch(name)]
    real = [legend.get(name, name) for name in printed]
    hcas = [name if name and real.count(name) == 1 else f"?{at}" for at, name in enumerate(real)]
    left = iter(hcas)
    names = tuple(name if _GPU.fullmatch(name) else next(left) for name in columns)
    return names, list(_name_problems(printed, hcas, legend))


def _name_problems(
    printed: Sequence[str], hcas: Sequence[str], legend: Mapping[str, str]
) -> Iterator[Problem]:
    unknown = [name for name in hcas if name.startswith("?")]
    if unknown:
        reason = "HCA columns with a blank or repeated name are called by their place"
        yield Problem("HCA-NAME", f"{reason}: {', '.join(unknown)}")
    for name in hcas:
        if not _WHOLE_NAME.fullmatch(name):
            yield Problem("HCA-NAME", f"{name}: the driver cuts long names; this may be one")
    nics = {name for name in printed if _NIC.fullmatch(name)}
    for name in sorted(nics ^ legend.keys()):
        lacks = "the NIC legend does not name it" if name in nics else "in the legend, not a column"
        yield Problem("NIC-LEGEND", f"{name}: {lacks}")


def _before_legend(block: Sequence[str]) -> Iterator[str]:
    return takewhile(lambda line: not line.strip().startswith("Legend"), block)


def _is_row(line: str, columns: Sequence[str]) -> bool:
    words = line.split()
    if not words:
        return False
    if words[0] in columns or _DEVICE.fullmatch(words[0]):
        return True
    cells = all(w == "N/A" or _LINK.fullmatch(w) or _LIST.fullmatch(w) for w in words)
    return len(words) > 1 and "X" in words and cells


def _whole(table: Sequence[str], *, ends_text: bool) -> tuple[Sequence[str], list[Problem]]:
    """The row lines without a last word that the end of the text may have cut.

    A word is whole if it is an ``X``, or if another row ends with the same one.
    """
    if not ends_text:
        return table, []
    *before, last = table
    word = last.split()[-1]
    if word == "X" or any(line.split()[-1] == word for line in before):
        return table, []
    message = f"the text ends within a row, at {word!r}, which is not used"
    rest = last.rstrip()[: -len(word)]
    return [*before, *([rest] if rest.strip() else [])], [Problem("TRUNCATED", message)]


def _after_name(line: str, columns: Sequence[str]) -> list[str]:
    words = line.split()
    return words[1:] if words and words[0] in columns else words


def _run(words: Sequence[str]) -> tuple[str, ...]:
    """The link words that ``words`` begin with."""
    return tuple(takewhile(_LINK.fullmatch, words))


def _row(line: str, columns: Sequence[str]) -> _Row:
    width = len(columns)
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) > 1 and not cells[0] and cells[1] in columns:
        cells = cells[1:] if cells[1] else cells
    links = tuple(cells[1 : 1 + width])
    if len(links) == width and all(len(c.split()) == 1 and not _LIST.fullmatch(c) for c in links):
        return _Row(cells[0], links, tuple(cells[1 + width :]), tabbed=True)
    words = _after_name(line, columns)
    name = "" if len(words) == len(line.split()) else line.split()[0]
    links = _run(words)[:width]
    return _Row(name, links, tuple(words[len(links) :]), tabbed=False)


def _placed(table: Sequence[str], columns: Sequence[str]) -> tuple[dict[int, _Row], list[Problem]]:
    """The readable rows by their place among the devices, and what is wrong with the others."""
    rows: dict[int, _Row] = {}
    problems: list[Problem] = []
    twice: set[int] = set()
    for line in table:
        row = _row(line, columns)
        _refuse_glued_links(row)
        place, problem = _place(row, line, columns)
        if problem:
            problems.append(problem)
        if place in rows:
            twice.add(place)
        elif place is not None:
            rows[place] = row
    if not any(row.links[place] == "X" for place, row in rows.items()):
        raise errors.LogError(
            f"none of the {len(table)} rows has a word for each of {len(columns)} devices"
            " and an X for itself",
            code="NO-ROWS",
            fix=_FIX,
        )
    for place in sorted(twice):
        del rows[place]
        problems.append(Problem("REPEATED-ROW", f"{columns[place]}: two rows; neither is used"))
    return rows, problems


def _refuse_glued_links(row: _Row) -> None:
    for word in (*row.links, *row.affinity):
        if _GLUED_LINK.fullmatch(word):
            raise errors.LogError(
                f"row {row.name}: {word!r} stands where one link is due;"
                " the columns cannot be told apart",
                code="GLUED",
                fix=_FIX,
            )


def _place(row: _Row, line: str, columns: Sequence[str]) -> tuple[int | None, Problem | None]:
    """Which device the row belongs to, if that is sure, and what is odd about it."""
    name = row.name or line.split()[0]
    places = [at for at, column in enumerate(columns) if column == row.name]
    selves = [at for at, word in enumerate(row.links) if word == "X"]
    if not places:
        return None, Problem("UNKNOWN-ROW", f"{name}: no column has this name; row not used")
    if len(row.links) < len(columns) or any(map(_LINK.fullmatch, row.affinity)):
        seen = len(_run(_after_name(line, columns)))
        message = f"{name}: {seen} links for {len(columns)} devices; row not used"
        return None, Problem("ROW-LENGTH", message)
    if not selves and len(places) == 1:
        return places[0], Problem("DIAGONAL", f"{name}: no X for itself")
    if len(selves) != 1 or selves[0] not in places:
        return None, Problem("DIAGONAL", f"{name}: X not just in its own column; row not used")
    return selves[0], None


def _missing_rows(names: Sequence[str], links: Mapping[str, object]) -> Iterator[Problem]:
    missing = [name for name in names if name not in links]
    if missing:
        yield Problem("MISSING-ROW", f"no usable row for {', '.join(missing)}")


def _asymmetries(links: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    for one, other in combinations(links, 2):
        there, back = links[one][other], links[other][one]
        if there != back:
            yield Problem("ASYMMETRIC", f"{one} to {other} is {there}, but back it is {back}")


def _affinity(row: _Row, titles: Sequence[str]) -> _Affinity:
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


def _fitted(row: _Row, titles: Sequence[str]) -> list[str]:
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
    if not _LIST.fullmatch(cell):
        return False
    numbers = [int(number) for number in re.split("[-,]", cell)]
    return numbers == sorted(set(numbers))
