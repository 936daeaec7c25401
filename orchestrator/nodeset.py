"""Many node names in few words: ``vs[001-002,004],gpu7``."""

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>[0-9]+)(?P<after>[^0-9]*)")


def fold(names: Iterable[str]) -> str:
    """The names, each once, those that differ in their last number only as ranges.

    Groups stand in the order in which they first appear; leading zeros are kept.

    Source: the notation of ClusterShell's nodeset command.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(names):
        match = _NUMBERED.fullmatch(name)
        around = (match["before"], match["after"]) if match else (name,)
        groups.setdefault(around, []).extend([match["number"]] if match else [])
    return ",".join(_group(around, numbers) for around, numbers in groups.items())


def _group(around: tuple[str, ...], numbers: list[str]) -> str:
    if len(numbers) < 2:
        return "".join(numbers).join(around)
    ranges = _ranges(sorted(numbers, key=lambda number: (int(number), len(number))))
    shown = [first if first == last else f"{first}-{last}" for first, last in ranges]
    return f"[{','.join(shown)}]".join(around)


def _ranges(numbers: Iterable[str]) -> list[tuple[str, str]]:
    """First and last of each run of consecutive numbers, as they are written."""
    runs: list[tuple[str, str]] = []
    for number in numbers:
        first, last = runs[-1] if runs else ("", "")
        if last and number == f"{int(last) + 1:0{len(last)}}":
            runs[-1] = (first, number)
        else:
            runs.append((number, number))
    return runs
