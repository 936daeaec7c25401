"""Doctors: each changes an honest log in many ways, and says what must come of it."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from tests.doctored.honest import LOSSES, Base, S, rounded


@dataclass(frozen=True)
class Bad:
    """A doctored log.

    Args:
        expect: ``number``: none but the true one without a mark; ``tell``: a mark or no number;
            ``honest``: the true one without a mark; ``keep``: the true one; ``one log``: of the
            log and its copy at most one counts; ``two logs``: both do.
        slower: the changed log's own words are true.
        why: nobody can see it in the log.
        path: of the log; empty for that of the honest one.
    """

    how: str
    text: bytes
    expect: str = "number"
    slower: bool = False
    why: str = ""
    path: str = ""


class Patient:
    """A log to be doctored, fresh after each time, and the steps at which changes are tried."""

    def __init__(self, base: Base, name: str) -> None:
        self.base, self.log, self.old = base, base.log(), base.log()
        self.rng = random.Random(f"{name} {base.path} {base.rule}")
        self.first, self.last = self.old.window(base)
        self.inside = self.rng.randint(self.first + 1, self.last - 1)
        self.ends = {"first": self.first, "inside": self.inside, "last": self.last}
        before, after = self.first - 1, self.last + 1
        outside = {"before": before, "after": after}
        self.steps = self.ends | {k: it for k, it in outside.items() if it in self.old.all}
        self.losses = [*filter(self.old.has, LOSSES)]
        self.is_timed = self.old.has("t")

    def bad(self, how: str, expect: str = "number", **more: str) -> Bad:
        """What has become of the log, which then is as before."""
        text, self.log = self.log.text(), self.base.log()
        slower = bool(more.pop("slower", ""))
        return Bad(how, text, expect, slower, **more)


Doctor = Callable[[Patient], Iterator[Bad]]
DOCTORS: dict[str, Doctor] = {}


def doctor(name: str) -> Callable[[Doctor], Doctor]:
    return lambda function: DOCTORS.setdefault(name, function)


@doctor("untouched")
def _untouched(it: Patient) -> Iterator[Bad]:
    yield it.bad("as recorded", "honest")


@doctor("clock moved")
def _clock(it: Patient) -> Iterator[Bad]:
    moves = (S // 1000, S // 50, 3 * S // 10, 2 * S, 3600 * S)
    for (place, step), by, sign in product(it.steps.items(), moves, (1, -1)):
        if it.is_timed:
            it.log.move([step], sign * by)
            yield it.bad(f"{place}, {sign * by / S} s, one step")
            it.log.move(it.log.all[step:], sign * by)
            yield it.bad(f"{place}, {sign * by / S} s, from there on")


@doctor("slow steps with their rates")
def _slow(it: Patient) -> Iterator[Bad]:
    for times in (1.5, 2, 3, 10, 30):
        it.log.slow(it.inside, times)
        it.log.conclude()
        told = "tell" if times > 5 and it.base.rule != "reported" else "number"
        yield it.bad(f"one x{times}", told, slower="yes")
    for times in (1.5, 3):
        for step in range(it.first + 1, min(it.first + 4, it.last)):
            it.log.slow(step, times)
        it.log.conclude()
        yield it.bad(f"the window's first ones x{times}", slower="yes")


@doctor("scaled")
def _scaled(it: Patient) -> Iterator[Bad]:
    for factor in (0.5, 0.9, 0.97, 0.98, 0.99, 1.005, 1.01, 1.02, 1.03, 1.1, 2, 8, 10, 1000):
        it.log.stretch(factor)
        yield it.bad(f"clock or seconds x{factor}")
        for by in (factor, 1 / factor):
            it.log.scale(it.log.all, "rate", by)
            it.log.conclude()
            yield it.bad(f"rates x{by:.4g}")
    for factor in (0.97, 1.1):
        it.log.stretch(factor)
        it.log.scale(it.log.all, "rate", 1 / factor)
        it.log.conclude()
        yield it.bad(f"all x{factor}", why="clock, seconds, rates and result agree")
    names = filter(it.old.has, ("s", "rate"))
    for name, factor in product(names, (8, 10, 1000, 0.125, 0.1)):
        it.log.scale([it.inside], name, factor)
        yield it.bad(f"{name} of one step x{factor}")


@doctor("steps repeated or swapped")
def _repeated(it: Patient) -> Iterator[Bad]:
    for (place, step), ahead in product(it.steps.items(), (0, 1, 3, -3)):
        if (there := step + ahead) in it.old.all:
            it.log[there] += it.old[step]
            yield it.bad(f"{place}, again {ahead} steps later")
            it.log[step], it.log[there] = it.old[there], it.old[step]
            yield it.bad(f"{place}, swapped with {ahead} steps later")
    for step in it.log.all:
        it.log[step] *= 2
    yield it.bad("each twice")


@doctor("two runs in one file")
def _two_runs(it: Patient) -> Iterator[Bad]:
    text, later = it.base.bytes(), it.base.log()
    later.move(later.all, 600 * S)
    half, headless = text[: len(text) // 2], b"".join(later.parts[1:])
    runs = {"twice": text + text, "later": text + later.text(), "half before": half + text}
    runs |= {"half behind": text + half, "again without its header": text + headless}
    for how, both in runs.items():
        it.log.read(both)
        yield it.bad(how, "tell")
    for by_ms, factor in ((0, 1.0), (3, 1.0), (40, 1.3)):
        other = it.base.log()
        other.move(other.all, by_ms * S // 1000)
        other.scale(other.all, "rate", factor)
        for step in it.log.all:
            it.log[step] += other[step]
        yield it.bad(f"ranks in turn, {by_ms} ms apart, rates x{factor}")


@doctor("other bytes")
def _bytes(it: Patient) -> Iterator[Bad]:
    for new, told in ((b"\r\n", "honest"), (b"\r\r\n", "number")):
        it.log.sub(rb"\n", new)
        yield it.bad(repr(new), told)
    for before, behind in ((b"", b"\n\n  \n\n"), (b"\xef\xbb\xbf", b""), (b"\0" * 4096, b"")):
        it.log.read(before + it.base.bytes() + behind)
        yield it.bad(f"around it {before[:4]!r} {behind!r}", "number" if before else "honest")
    for code in (b"\x1b[32m", b"\x1b[1;37m"):
        it.log.sub(rb"^(.+)$", code + rb"\1" + b"\x1b[0m")
        yield it.bad(f"lines in {code!r}", "honest")
    for junk in (b"\0" * 9, b"\xff\xfe\xe9", b"\x1b[31", b"\r", b"\xc2\xa0"):
        line = it.old[it.inside]
        at = it.rng.randint(1, len(line) - 2)
        for how, new in (
            ("in a line", line[:at] + junk + line[at:]),
            ("alone", junk + b"\n" + line),
        ):
            it.log[it.inside] = new
            yield it.bad(f"{junk!r} {how}")


@doctor("iterations renumbered")
def _renumbered(it: Patient) -> Iterator[Bad]:
    middle, stride = (it.first + it.last) // 2, it.old.number(1) - it.old.number(0)
    again = it.old.number(0) - it.old.number(middle)
    for by in (stride, 10 * stride, -3 * stride, again):
        for step in it.log.all[middle:]:
            it.log.put(step, "n", b"%d" % (it.old.number(step) + by))
        yield it.bad(f"inside by {by}", "tell")
    for step in it.log.all:
        it.log.put(step, "n", b"%d" % (it.old.number(step) + stride))
    yield it.bad("all one on")
    for step in it.log.all[middle:] if it.old.has("e") else ():
        it.log.put(step, "e", b"%d" % (int(it.old.get(step, "e")) + 1))
        if it.base.kind in ("pytorch", "reference"):
            it.log.put(step, "n", b"%d" % (step - middle + 1))
    yield it.bad("another epoch")


@doctor("another day or zone")
def _days(it: Patient) -> Iterator[Bad]:
    middle = it.old.clock((it.first + it.last) // 2) if it.is_timed else 0
    new_year, leap_day = 1_609_459_200 * S - middle, 1_582_934_400 * S - middle
    for by in (-middle % (86_400 * S), 28_800 * S, -19_800 * S, new_year, leap_day):
        it.log.move(it.log.all, by)
        yield it.bad(f"by {by / 3600 / S:.2f} h", "honest")


_BATCH = (
    rb"((?<!optimizer_)\bbatch_size : |Per-GPU Batch Size:? |batch_size_per_device = |size_mib="
    rb"|(?:micro|global)_batch_size \.+ )(\d+)"
)
_WORLD = (
    rb"(world_size : |Num GPUs:? |gpu_num_per_node = |ranks=|(?:num_gpus_per_node"
    rb"|data_parallel_size|global_batch_size) \.+ )(\d+)"
)
_SIZES = {
    _BATCH: r"(?<=[1-9]n[1-9]g/r50_b)\d+|(?<=rn50_b)\d+|(?<=base_b)\d+|(?<=[mg]bz)\d+",
    _WORLD: r"(?<=\dn)\d+(?=[gd])|(?<=dp)\d+|(?<=gbz)\d+",
}


@doctor("batch or world doubled")
def _sizes(it: Patient) -> Iterator[Bad]:
    for header, name in _SIZES.items():
        what = "batch" if header == _BATCH else "world"
        path = re.sub(name, lambda found: str(2 * int(found[0])), it.base.path)
        if re.search(header, it.old.parts[0]):
            it.log.grow(header, 2, 0)
            yield it.bad(f"{what} in the header", "tell")
            it.log.grow(header, 2, 0)
            yield it.bad(f"{what} in both", "tell", path=path)
            it.log.grow(header, 2, 0)
            it.log.grow(rb"(num_examples = )(\d+)", 2, 0)
            yield it.bad(f"{what} in both, and the images", "tell", path=path)
        if path != it.base.path:
            yield it.bad(f"{what} in the name", "tell", path=path)


@doctor("the same log again")
def _again(it: Patient) -> Iterator[Bad]:
    yield it.bad("byte by byte", "one log")
    it.log.read(b"Warning: x\n" + it.base.bytes())
    yield it.bad("with another line", "one log")
    for new in (b"\r\n", b" \n"):
        it.log.sub(rb"\n", new)
        yield it.bad(f"with {new!r}", "one log")


@doctor("two honest runs")
def _others(it: Patient) -> Iterator[Bad]:
    # Our reference program's seed and data are fixed: another run has the same losses.
    for k, repeats in product(range(3), (False, True) if it.base.kind == "reference" else (False,)):
        for step in it.log.all[1:]:
            it.log.slow(step, it.rng.uniform(0.985, 1.015))
            for name in () if repeats else it.losses:
                it.log.scale([step], name, it.rng.uniform(0.98, 1.02))
        it.log.conclude()
        yield it.bad(f"{k}, same losses {repeats}", "two logs")


@doctor("units and separators")
def _units(it: Patient) -> Iterator[Bad]:
    for step in it.log.all if it.old.has("s") else ():
        rate, took = it.old.get(step, "rate"), it.old.get(step, "s")
        it.log.put(step, "rate", rounded(float(took), rate))
        it.log.put(step, "s", rounded(float(rate), took))
    yield it.bad("columns swapped")
    for form in ("{:.6f}k", "{:.6f}M", "{:.6f}", "{:,.2f}", "{:_.2f}"):
        for step in it.log.all:
            factor = 1000 if "2f" in form else 0.001
            it.log.put(step, "rate", form.format(it.old.rate(step) * factor).encode())
        yield it.bad(f"rates as {form}")
    for digits in (1, 3) if it.is_timed and b"-" not in it.old.get(0, "t") else ():
        it.log.sub(rb"(\d{10})\.(\d{%d})(\d+)" % digits, rb"\1\2.\3")
        yield it.bad(f"clock in {10**digits}ths")


@doctor("summaries")
def _summaries(it: Patient) -> Iterator[Bad]:
    told = "tell" if it.base.rule == "reported" else "number"
    for factor in (0.5, 0.97, 0.99, 1.005, 1.02, 1.3):
        other, text = it.base.log(), it.base.bytes()
        other.scale(other.all, "rate", factor)
        other.conclude()
        foreign, steps = other.parts[-1], b"".join(it.old.parts[:-1])
        if foreign != it.old.parts[-1]:
            for how, new, expect in (
                ("it", steps + foreign, "number"),
                ("an old one before the log,", foreign + text, "number"),
                ("another one behind it,", text + foreign, told),
                ("an old one before the log, its own gone,", foreign + steps, told),
            ):
                it.log.read(new)
                yield it.bad(f"{how} x{factor}", expect)


@doctor("one digit changed")
def _digits(it: Patient) -> Iterator[Bad]:
    for k in range(18):
        step = (it.first, it.last, it.rng.randint(it.first, it.last))[k % 3]
        line = it.old[step]
        at = it.rng.choice([found.start() for found in re.finditer(rb"\d", line)])
        new = it.rng.choice([b"%d" % digit for digit in range(10)])
        it.log[step] = line[:at] + new + line[at + 1 :]
        yield it.bad(f"{k}: {line[max(0, at - 12) : at + 1].decode()} -> {new.decode()}")


_MORE = {"pytorch": 40, "reference": 60, "oneflow": 4, "bert": 3, "all_reduce": 20}


@doctor("a longer run")
def _longer(it: Patient) -> Iterator[Bad]:
    base, log, count = it.base, it.log, _MORE.get(it.base.kind, 0)
    last, stride, samples = len(log) - 1, log.number(1) - log.number(0), float(base.samples)
    more, line, lines = count * stride, log[last], [log[last]]
    for _ in range(count):
        log.move([last], int(stride * samples / log.rate(last) * S))
        log.put(last, "n", b"%d" % (log.number(last) + stride))
        lines.append(log[last])
    log[last] = b"".join(lines) if count else line
    log.grow(rb"(prof : |iter_num = |iterations=)(\d+)", 1, more)
    log.grow(rb"(num_examples = )(\d+)", 1, int(more * samples))
    if count and not base.marks:
        yield it.bad(f"{count} steps more", "honest")


@doctor("a collector's prefix")
def _prefixes(it: Patient) -> Iterator[Bad]:
    tags = (b"[1,0]<stdout>:", b"Fri Dec 18 20:04:13 2020[1,0]<stdout>:")
    others = (b"2020-12-16T11:32:19.886390123Z ", b"0: ", b"Dec 16 11:32:19 vs001 app[7]: ")
    is_mpi = it.base.workload.startswith("ngc") and b"]<std" not in it.old.text()
    for prefix in (*tags, *others):
        it.log.sub(rb"^(?=.)", prefix)
        yield it.bad(prefix.decode(), "honest" if prefix in tags and is_mpi else "number")
