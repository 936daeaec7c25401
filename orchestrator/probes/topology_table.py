"""The table that `nvidia-smi topo -m` prints: its columns and rows, each in its place.

The driver separates cells by tabs; a terminal or a paste turns them into blanks, and then
an empty cell can no longer be seen. A row is therefore read by its tabs where they fit, else
by its words, and the `X` on the diagonal proves that the words stand where they belong.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from orchestrator import errors
from orchestrator.model.problem import Problem

GPU = re.compile(r"GPU[0-9]+")
WHOLE_NAME = re.compile(r"(?!mlx[0-9]+$).*[0-9]")
LIST = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DEVICE = re.compile(r"(?:GPU|NIC)[0-9]+\w*|mlx[0-9]+_\w*")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_GLUED_NAME = re.compile(r".+(?:GPU[0-9]|NIC[0-9]|mlx[0-9]+_).*|(?:GPU|NIC)[0-9]+[A-Za-z_].*")
_TITLE = re.compile(r"(?:CPU|NUMA|Node)\s+Affinity|GPU\s+NUMA\s+ID")
_TITLE_WORDS = frozenset({"CPU", "NUMA", "Node", "GPU", "ID", "Affinity"})
_LINK = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KNOWN_LINK = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|SOC|NV[0-9]{1,2}")
_GLUED_LINK = re.compile(
    rf"(?:{_KNOWN_LINK.pattern}){{2,}}"
    r"|(?:X|SYS|NODE|PHB|PXB|PIX|SOC)[0-9].*|NV[0-9]{3,}.*|NV[0-9]+[-,].*"
)
_FIX = "record it on the node itself with `nvidia-smi topo -m > FILE`"


@dataclass(frozen=True, slots=True)
class Row:
    """The row of one device, its cells without the blanks around them."""

    name: str
    links: tuple[str, ...]
    affinity: tuple[str, ...]
    tabbed: bool


@dataclass(frozen=True, slots=True)
class Table:
    """The first table of a text.

    Args:
        columns: titles of the devices, GPUs first; an HCA's may be blank.
        titles: of affinities.
        rows: those that could be read, by the place of their device among the columns.
        below: the lines after the header, the legend among them.
        others: how many tables follow.
        problems: with rows that are not read, or not wholly.
    """

    columns: tuple[str, ...]
    titles: tuple[str, ...]
    rows: Mapping[int, Row]
    below: Sequence[str]
    others: int
    problems: tuple[Problem, ...]


def table(text: str) -> Table:
    """The first table in a text.

    Raises:
        LogError: there is none, or its columns have run into each other.
    """
    lines = _ANSI.sub("", text).split("\n")
    head, *others = _heads(lines)
    below = lines[head + 1 : others[0] if others else None]
    titled, titles = _columns(lines[head])
    row_lines = [line for line in _before_legend(below) if _is_row(line, titled)]
    whole, cut = _whole(row_lines, ends_text=lines[-1:] == row_lines[-1:])
    columns = _settled(titled, whole)
    rows, unread = _placed(whole, columns)
    return Table(columns, titles, rows, below, len(others), (*cut, *unread))


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
    if not words or not GPU.match(words[0]) or any(map(_KNOWN_LINK.fullmatch, words[1:])):
        return False
    if _TITLE.search(line):
        return True
    # Without an affinity title, prose such as "GPU0 and GPU1 are close" must not pass.
    devices = all(map(_NAME.fullmatch, words)) and all(map(WHOLE_NAME.fullmatch, words))
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
    last_gpu = max(at for at, name in enumerate(devices) if GPU.fullmatch(name))
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
    gpus = [name for name in devices if GPU.fullmatch(name)]
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
    if width > len(named) and all(map(GPU.fullmatch, named)):
        return (*named, *[""] * (width - len(named)))
    return columns


def _is_row(line: str, columns: Sequence[str]) -> bool:
    words = line.split()
    if not words:
        return False
    if words[0] in columns or _DEVICE.fullmatch(words[0]):
        return True
    cells = all(w == "N/A" or _LINK.fullmatch(w) or LIST.fullmatch(w) for w in words)
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


def _row(line: str, columns: Sequence[str]) -> Row:
    width = len(columns)
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) > 1 and not cells[0] and cells[1] in columns:
        cells = cells[1:] if cells[1] else cells
    links = tuple(cells[1 : 1 + width])
    if len(links) == width and all(len(c.split()) == 1 and not LIST.fullmatch(c) for c in links):
        return Row(cells[0], links, tuple(cells[1 + width :]), tabbed=True)
    words = _after_name(line, columns)
    name = "" if len(words) == len(line.split()) else line.split()[0]
    links = _run(words)[:width]
    return Row(name, links, tuple(words[len(links) :]), tabbed=False)


def _placed(table: Sequence[str], columns: Sequence[str]) -> tuple[dict[int, Row], list[Problem]]:
    """The readable rows by their place among the devices, and what is wrong with the others."""
    rows: dict[int, Row] = {}
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


def _refuse_glued_links(row: Row) -> None:
    for word in (*row.links, *row.affinity):
        if _GLUED_LINK.fullmatch(word):
            raise errors.LogError(
                f"row {row.name}: {word!r} stands where one link is due;"
                " the columns cannot be told apart",
                code="GLUED",
                fix=_FIX,
            )


def _place(row: Row, line: str, columns: Sequence[str]) -> tuple[int | None, Problem | None]:
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


def _before_legend(block: Sequence[str]) -> Iterator[str]:
    return takewhile(lambda line: not line.strip().startswith("Legend"), block)
