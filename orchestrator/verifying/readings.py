"""Throughput from the lines of a raw log that it stands on, whatever program printed them.

No list of formats: a line contains a date or seconds since 1970, a step number, and numbers behind
labels. A number that these cannot give is "not derived", never wrong.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

LONGEST = 64 << 10
"""Bytes of a line that are read."""
NS = 10**9
# 2020-09-16 22:31:45.309859
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?")
# 1597933942.9863544
_EPOCH = re.compile(r"(?<![\d.])(\d{9,10})\.(\d+)")
_NUMBER = re.compile(r"(?<![\d.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\d)")
# train.total_ips : 802.1 img/s; samples/s: 802.1; busbw=93.1 GB/s
_RATE = re.compile(r"/s\b|ips\b|per_sec|throughput|rate|busbw", re.IGNORECASE)
Key = tuple[str, str, int]
"""The text before a number, the word behind it, and which of such numbers it is on its line."""
Ends = tuple[int, int]


@dataclass(slots=True)
class Derived:
    """Every throughput that some reading of the lines gives.

    Args:
        values: the throughput is one of them, if it can be derived.
        likely: the ones that a clock or a named rate gives: if there are any and the written number
            is none of ``values``, it is wrong.
        tolerance: relative, for a clock without fractions of a second.
    """

    values: list[float] = field(default_factory=list)
    likely: list[float] = field(default_factory=list)
    tolerance: float = 0.0
    why_not: str = "no number on its lines gives it"


@dataclass(slots=True)
class _Sum:
    count: int = 0
    total: float = 0.0
    inverse: float = 0.0
    first: float = 0.0

    def add(self, value: float) -> None:
        self.first = self.first if self.count else value
        self.count += 1
        self.total += value
        self.inverse += 1 / value if value else 0.0

    @property
    def means(self) -> Iterator[float]:
        """Yield the harmonic and arithmetic mean, and the harmonic mean without the first."""
        if self.inverse > 0:
            yield self.count / self.inverse
        yield self.total / self.count
        rest = self.inverse - (1 / self.first if self.first else 0.0)
        if self.count > 1 and rest > 0:
            yield (self.count - 1) / rest


def derive(path: Path, rule: str, window: Ends | None, between: Ends, batch: int) -> Derived:
    """Derive the throughput of a trial from the lines of its log.

    Args:
        rule: clock, rates, arithmetic, latency or reported.
        window: first and last iteration; None where the rule needs none.
        between: first and last line, from 1.
        batch: global batch size.

    Raises:
        OSError: the log cannot be read.
    """
    first, last = between
    ends: dict[int, str] = {}
    sums: dict[Key, _Sum] = {}
    for count, line in _lines(path, last):
        if count in (first - 1, first, last - 1, last):
            ends[count] = line
        if count >= first and rule not in ("clock", "reported"):
            for key, value in _numbers(line).items():
                sums.setdefault(key, _Sum()).add(value)
    if first not in ends or last not in ends:
        return Derived(why_not=f"it has no lines {first} and {last}")
    for step, number in zip(window or (), between, strict=False):
        near = f"{ends.get(number - 1, '')} {ends[number]}"  # or the line before names the step
        if not re.search(rf"(?<!\d){step}(?!\d)", near):
            return Derived(why_not=f"line {number} does not name step {step}")
    if rule == "clock":
        begin, end = window or (0, 0)
        return _by_clock(ends[first], ends[last], batch * (end - begin))
    if rule == "reported":
        return _reported(ends[last])
    return _by_means([(key, sums[key]) for key in _numbers(ends[first])], rule, batch)


def _lines(path: Path, last: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line up to ``last``; the end of an overlong line is skipped."""
    count, is_whole = 1, True
    with open(path, "rb") as file:
        while count <= last and (raw := file.readline(LONGEST)):
            if is_whole:
                yield count, raw.decode("utf-8", "replace")
            is_whole = raw.endswith(b"\n")
            count += is_whole


def _by_clock(start: str, end: str, samples: int) -> Derived:
    found = Derived()
    ends = zip(_times_ns(start), _times_ns(end), strict=False)
    for (began_ns, begins_coarse), (ended_ns, ends_coarse) in ends:
        if (took_ns := ended_ns - began_ns) > 0:
            found.likely.append(samples * NS / took_ns)
            if begins_coarse or ends_coarse:
                found.tolerance = max(found.tolerance, NS / took_ns)
    found.values += found.likely
    numbers = _numbers(end)
    for key, value in _numbers(start).items():
        took = numbers.get(key, value) - value
        found.values += [samples / took, 1e3 * samples / took] if took > 0 else []
    return found


def _times_ns(line: str) -> list[tuple[int, bool]]:
    """Return the times on a line in nanoseconds, and whether they lack fractions of a second."""
    found = []
    for match in _DATE.finditer(line):
        try:
            moment = datetime.fromisoformat(f"{match[1]} {match[2]}").replace(tzinfo=UTC)
        except ValueError:
            continue
        fraction = match[3] or ""
        found.append((int(moment.timestamp()) * NS + int(fraction.ljust(9, "0")), not fraction))
    for match in _EPOCH.finditer(line):
        found.append((int(match[1]) * NS + int(match[2][:9].ljust(9, "0")), False))
    return found


def _reported(line: str) -> Derived:
    found = Derived()
    for key, value in _numbers(line).items():
        found.values.append(value)
        if _RATE.search(" ".join(key[:2])):
            found.likely.append(value)
    return found


def _by_means(sums: Iterable[tuple[Key, _Sum]], rule: str, batch: int) -> Derived:
    """Derive a mean rate, or the batch over a mean latency, from the numbers of all steps."""
    found = Derived()
    for key, summed in sums:
        means = [*summed.means]
        if rule == "latency":
            means = [batch / mean for mean in means if mean]
        found.values += means
        if rule != "latency" and _RATE.search(" ".join(key[:2])):
            found.likely += means[:1] if rule == "rates" else [summed.total / summed.count]
    return found


def _numbers(line: str) -> dict[Key, float]:
    """Return the numbers on a line behind the text before each, such as ``rate=``."""
    found: dict[Key, float] = {}
    seen: Counter[Sequence[str]] = Counter()
    before = 0
    for match in _NUMBER.finditer(line):
        unit = re.match(r"[^\s\d]*(?: [^\s\d:=]+(?=\s|$))?", line[match.end() :])
        label = (line[before : match.start()].strip(), unit[0].strip() if unit else "")
        found[*label, seen[label]] = float(match[0])
        seen[label] += 1
        before = match.end()
    return found
