"""Damage that any log may suffer: each recorded kind of log suffers all of it, once.

The snapshot contains what a user sees of it: problems, and every number that is not the recorded
one. ``another throughput`` never appears without a problem.
"""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.doctored.honest import S
from tests.logs.recorded import KINDS, Recorded

every_kind = pytest.mark.parametrize("log", KINDS.values(), ids=KINDS)
HEADER_AGAIN = {
    "pytorch": b"DLL 2020-12-16 11:37:19.700000 - PARAMETER data : /imagenet  prof : 100 \n",
    "benchmark": b"DLL 2020-12-16 11:37:19.700000 - PARAMETER arch : resnet50  mode : train \n",
    "nvlog": b":::NVLOGv0.2.3 None 1621936119.343728542 (runner.py:385) Starting Model Training\n",
    "rn50": b"num_nodes = 1\n",
    "bert": b"num_nodes = 1\n",
    "gpt": b"  num_nodes ..... 4\n",
    "all-reduce": b"all-reduce ranks=2 size_mib=64\n",
}


def damage_lines(log: Recorded) -> Iterator[tuple[str, bytes]]:
    """Yield texts in which one step, or its line, is not what the program printed."""
    old = log.log()
    first, last = log.ends
    inside = (first + last) // 2
    line = old[inside]
    half = line.index(old.get(inside, "rate")) + 2

    def put(step: int, new: bytes) -> bytes:
        changed = log.log()
        changed[step] = new
        return changed.text()

    def field(step: int, name: str, value: str) -> bytes:
        changed = log.log()
        changed.put(step, name, value.encode())
        return changed[step]

    yield "a step is missing", put(inside, b"")
    yield "the first step of the window is missing", put(first, b"")
    yield "the last step of the window is missing", put(last, b"")
    yield "the first step of the log is missing", put(0, b"")
    yield "a step is there twice", put(inside, line * 2)
    stamp = next(name for name in ("t", "s", "rate") if old.has(name))
    for name, step in (("first", first), ("last", last)):
        digits = old.get(step, stamp).decode()
        other = field(step, stamp, digits[:-1] + ("2" if digits[-1] == "1" else "1"))
        yield f"the {name} step of the window has two times", put(step, old[step] + other)
    yield "an earlier step comes again", put(inside, old[inside - 2] + line)
    yield "a line is torn in its rate", put(inside, line[:half] + b"\n" + line[half:])
    yield "the end of a line is missing", put(inside, line[:half] + b"\n")
    yield "the beginning of a line is missing", put(inside, line[half:])
    yield "a torn line is before the window", put(first, line[:half] + b"\n" + old[first])
    yield "a torn line is behind the window", put(last, old[last] + line[:half] + b"\n")
    yield "two lines are glued together", put(inside, line.rstrip() + line)
    yield "an iteration has foreign digits", put(inside, field(inside, "n", "३०"))
    yield "an iteration has an underscore", put(inside, field(inside, "n", "3_0"))
    for name, values in {
        "rate": ("nan", "nan(ind)", "-inf", "0", "-1.5", "None"),
        "loss": ("nan", "-inf", "NaN(ind)"),
        "loss2": ("-nan",),
        "loss3": ("Infinity",),
        "s": ("nan", "0.00000"),
    }.items():
        for value in values if old.has(name) else ():
            yield f"{name} {value}", put(inside, field(inside, name, value))


def damage_logs(log: Recorded) -> Iterator[tuple[str, bytes]]:
    """Yield texts whose lines are whole, and are too many, too few or in the wrong place."""
    old, raw = log.log(), log.raw
    first, last = log.ends
    inside, header, new = (first + last) // 2, old.parts[0], log.log()
    steps, end = b"".join(old.parts[1:-1]), old.parts[-1]

    yield "the log is there twice", raw + raw
    yield "the steps are there twice", header + steps + steps + end
    yield (
        "a crashed run is before the log",
        header + b"".join(old.parts[1 : old.places[inside]]) + raw,
    )
    yield "only a header is before the log", header + raw
    yield "only a header is there", header
    yield "the header is missing", steps + end
    again = next((line for name, line in HEADER_AGAIN.items() if KINDS[name] is log), header)
    yield (
        "a header begins among the steps",
        b"".join((*old.parts[: old.places[inside]], again, *old.parts[old.places[inside] :])),
    )
    yield "each step is there twice", header + b"".join(old[k] * 2 for k in old.all) + end
    yield "every second step is missing", header + b"".join(old[k] for k in old.all[1::2]) + end
    yield "the log ends behind the window", b"".join(old.parts[: old.places[last] + 1])
    yield "the last line feed is missing", raw.rstrip(b"\n")
    yield "the last step is cut", header + steps[:-6]
    yield "a crash is in place of the end", header + steps + b"RuntimeError: NCCL error\n"
    yield "a line of another kind is cut", raw + b"Loading data from /datas"
    stride = old.number(1) - old.number(0)
    for step in old.all:
        new.put(step, "n", b"%d" % (old.number(step) + stride))
    yield "all iterations are one on", new.text()
    new = log.log()
    for step in old.all[inside:]:
        new.put(step, "n", b"%d" % (old.number(step) - 2 * stride))
    yield "iterations go back", new.text()
    for name, by_ns in (("backward by an hour", -3600 * S), ("forward by half a second", S // 2)):
        new = log.log()
        new.move([inside] if by_ns < 0 else range(inside, len(old)), by_ns)
        yield f"the clock goes {name}", new.text()
    new = log.log()
    for step in old.all:
        new.put(step, "t", old.get(first, "t"))
    yield "the clock stands still", new.text()
    new = log.log()
    new.slow(inside, 10)
    yield "a step takes ten times as long", new.text()
    new = log.log()
    for step in (first, last) if old.has("t") else ():
        new.put(step, "t", old.get(step, "t").partition(b".")[0] + b".000000")
    yield "both ends have whole seconds", new.text()
    yield "a date does not exist", re.sub(rb"DLL 20\d\d-\d\d-", b"DLL 2020-13-", raw)


@pytest.mark.parametrize("damage", [damage_lines, damage_logs])
@every_kind
def test_what_a_user_sees_of_damage(
    log: Recorded, damage: Callable[[Recorded], Iterator[tuple[str, bytes]]], snapshot: object
) -> None:
    shown = []
    for name, text in damage(log):
        if text != log.raw:
            seen = log.compare(text)
            shown += [name, *(f"    {line}" for line in seen)]
            assert "another throughput" not in seen or re.match("[A-Z-]+: ", seen[0]), name
    assert "\n".join(shown) == snapshot
