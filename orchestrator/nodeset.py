"""Fold names into ranges such as ``vs[001-002,004],gpu7``, unfold them, and match globs."""

import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_BETWEEN = re.compile(r",(?![^\[]*\])")  # the comma behind ] in vs[1,3],gpu7
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>[0-9]+)(?P<after>[^0-9]*)")


def fits(name: str, pattern: str) -> bool:
    """Return True if the name is the pattern or fits its glob; upper and lower case differ."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def fold(names: Iterable[str]) -> str:
    """Return each name once; names that differ only in their last number become one range.

    Groups are in the order in which they first appear; leading zeros are kept. The notation is that
    of ClusterShell's nodeset command.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(names):
        around, number = _split(name)
        groups.setdefault(around, []).extend([number] if number else [])
    parts = []
    for around, numbers in groups.items():
        runs: list[tuple[str, str]] = []  # first and last of consecutive numbers
        for number in sorted(numbers, key=lambda text: (int(text), len(text))):
            first, last = runs[-1] if runs else ("", "")
            if last and number == f"{int(last) + 1:0{len(last)}}":
                runs[-1] = (first, number)
            else:
                runs.append((number, number))
        shown = ",".join(first if first == last else f"{first}-{last}" for first, last in runs)
        parts.append((f"[{shown}]" if len(numbers) > 1 else shown).join(around))
    return ",".join(parts)


def unfold(text: str, most: int) -> Sequence[str]:
    """Return at most ``most`` names of a text with ranges: ``vs[001-128]``, ``r[1-2]n[1-4,8]``.

    Of several ranges the last varies fastest. A text without ranges is returned alone.

    Raises:
        ValueError: a range is malformed, or there are more than ``most`` names.
    """
    parts = _BRACKETS.split(text)  # plain text and ranges in turn
    if any("[" in part or "]" in part for part in parts[::2]):
        raise ValueError("a bracket without its other one; needed ranges such as [001-128]")
    numbers = [_numbers(part, most) for part in parts[1::2]]
    count = prod(len(those) for those in numbers)
    if count > most:
        raise ValueError(f"{count} names; needed at most {most}")
    return [
        "".join(itertools.chain(*zip(parts[::2], (*row, ""), strict=True)))
        for row in itertools.product(*numbers)
    ]


def unfold_all(text: str, most: int) -> list[str]:
    """Return the names of a list such as ``vs[001-002,004],gpu7``, as ``fold`` writes it."""
    return [name for part in _BETWEEN.split(text) for name in unfold(part, most)]


def fold_lines(lines: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield nodes and their text; of lines that differ only in numbers, the first is whole.

    For the other nodes only the words that differ are given, as ranges in the order of the nodes:
    on ``n[2-4]``, ``RANK=[1-3]`` is 2 on ``n3``. If numbers do not ascend with the nodes, each
    node is listed alone.

    Args:
        lines: words by node.
    """
    kinds: dict[object, list[tuple[str, ...]]] = {}
    for row in ((node, *words) for node, words in lines.items()):
        kinds.setdefault(tuple(_split(word)[0] for word in row), []).append(row)
    for (node, *words), *others in kinds.values():
        yield node, f":\n{' '.join(words)}"
        in_order = all(map(_is_constant_or_ascending, zip(*others, strict=True)))
        for run in [others] if in_order and others else [[row] for row in others]:
            nodes, *columns = (fold(column) for column in zip(*run, strict=True))
            differing = [
                f"{option} {word}" if option.startswith("-") and "=" not in word else word
                for option, word, plain in zip(("", *words), columns, words, strict=False)
                if word != plain
            ]
            yield nodes, f" the same, but {' '.join(differing)}" if differing else " the same"


def _is_constant_or_ascending(words: Sequence[str]) -> bool:
    pairs = itertools.pairwise(int(_split(word)[1] or 0) for word in words)
    return len({*words}) == 1 or all(before < after for before, after in pairs)


def _split(word: str) -> tuple[tuple[str, ...], str]:
    """Return the text around the last number of a word, and that number."""
    match = _NUMBERED.fullmatch(word)
    return ((match["before"], match["after"]), match["number"]) if match else ((word,), "")


def _numbers(text: str, most: int) -> list[str]:
    """Return the numbers of ``001-003,007``, each as wide as it is written."""
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        in_two_widths = len(first) != len(last) and "0" in (first[0], last[0]) and first != "0"
        if int(first) > int(last) or in_two_widths:
            raise ValueError(f"[{text}] is no range; needed numbers such as [1-8] or [001-003,007]")
        if int(last) - int(first) >= most:
            raise ValueError(f"{part} is {int(last) - int(first) + 1} names; needed at most {most}")
        width = len(first) if first.startswith("0") else 0
        found += [f"{number:0{width}}" for number in range(int(first), int(last) + 1)]
    if len(set(found)) < len(found):
        raise ValueError(f"[{text}] has a number twice; needed each once")
    return found
