"""Doctors: each changes an honest log in many ways, and says what must come of it."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from tests.doctored.honest import LOSSES, Base, Log, S, rounded


@dataclass(frozen=True)
class Bad:
    """A way to doctor a log.

    Args:
        expect: ``number``: none but the true one without a mark; ``tell``: a mark or no number;
            ``honest``: the true one without a mark; ``keep``: the true one; ``one log``: of the
            log and its copy at most one counts; ``two logs``: both do.
        slower: the changed log's own words are true.
        why: nobody can see it in the log.
        path: of the log; empty for that of the honest one.
    """

    how: str
    change: Callable[[Log], object]
    expect: str = "number"
    slower: bool = False
    why: str = ""
    path: str = ""


class Patient:
    """An honest log to look at, and the steps at which changes are tried."""

    def __init__(self, base: Base, name: str) -> None:
        self.base, self.log = base, base.log()
        self.rng = random.Random(f"{name} {base.path} {base.rule}")
        self.first, self.last = self.log.window(base)
        inside = self.rng.randint(self.first + 1, self.last - 1)
        self.ends = {"first": self.first, "inside": inside, "last": self.last}
        self.steps = dict(self.ends)
        if self.first:
            self.steps["before"] = self.first - 1
        if self.last + 1 < len(self.log):
            self.steps["after"] = self.last + 1
        self.is_timed, self.is_dll = self.log.has("t"), base.kind in ("pytorch", "reference")


Doctor = Callable[[Patient], Iterator[Bad]]
DOCTORS: dict[str, Doctor] = {}


def doctor(name: str) -> Callable[[Doctor], Doctor]:
    return lambda function: DOCTORS.setdefault(name, function)


def _sub(pattern: bytes, new: bytes | Callable[[re.Match[bytes]], bytes], log: Log) -> None:
    log.parts = [re.sub(pattern, new, part, flags=re.M) for part in log.parts]


def _wrap(before: bytes, behind: bytes, log: Log) -> None:
    log.parts[0], log.parts[-1] = before + log.parts[0], log.parts[-1] + behind


def _each(change: Callable[[Log, int], object], log: Log) -> None:
    for step in log.all:
        change(log, step)


def _set(step: int, line: bytes, log: Log) -> None:
    log[step] = line


def _put(step: int, name: str, value: bytes, log: Log) -> None:
    log.put(step, name, value)


def _end(text: bytes, log: Log) -> None:
    log.parts[-1] = text


def _all(*changes: Callable[[Log], object]) -> Callable[[Log], object]:
    return lambda log: [change(log) for change in changes]


_conclude = Log.conclude


@doctor("untouched")
def _untouched(_: Patient) -> Iterator[Bad]:
    yield Bad("as recorded", len, "honest")


MOVES = {"1 ms": S // 1000, "20 ms": S // 50, "0.3 s": 3 * S // 10, "2 s": 2 * S, "1 h": 3600 * S}


@doctor("clock moved")
def _clock(it: Patient) -> Iterator[Bad]:
    for (place, step), (by, ns), sign in product(it.steps.items(), MOVES.items(), (1, -1)):
        if it.is_timed:
            how = f"{place}, {'+' if sign > 0 else '-'}{by}"
            yield Bad(f"{how}, one step", partial(Log.move, steps=[step], by_ns=sign * ns))
            on = range(step, len(it.log))
            yield Bad(f"{how}, from there on", partial(Log.move, steps=on, by_ns=sign * ns))


@doctor("slow steps with their rates")
def _slow(it: Patient) -> Iterator[Bad]:
    for times in (1.5, 2, 3, 10, 30):
        slow = partial(Log.slow, step=it.ends["inside"], times=times)
        told = "tell" if times > 5 and it.base.rule != "reported" else "number"
        yield Bad(f"one x{times}", _all(slow, _conclude), told, slower=True)
    for times in (1.5, 3):
        steps = range(it.first + 1, min(it.first + 4, it.last))
        slows = (partial(Log.slow, step=step, times=times) for step in steps)
        yield Bad(f"the window's first ones x{times}", _all(*slows, _conclude), slower=True)


@doctor("scaled")
def _scaled(it: Patient) -> Iterator[Bad]:
    for factor in (0.5, 0.9, 0.97, 0.98, 0.99, 1.005, 1.01, 1.02, 1.03, 1.1, 2, 8, 10, 1000):
        rates = partial(Log.scale, steps=it.log.all, name="rate", factor=factor)
        backs = partial(Log.scale, steps=it.log.all, name="rate", factor=1 / factor)
        clock = partial(Log.stretch, factor=factor)
        yield Bad(f"clock or seconds x{factor}", clock)
        yield Bad(f"rates x{factor}", _all(rates, _conclude))
        yield Bad(f"rates / {factor}", _all(backs, _conclude))
        if factor in (0.97, 1.1):
            alike = _all(clock, backs, _conclude)
            yield Bad(f"all x{factor}", alike, why="clock, seconds, rates and result agree")
    for name, factor in product(("s", "rate"), (8, 10, 1000, 0.125, 0.1)):
        one = partial(Log.scale, steps=[it.ends["inside"]], name=name, factor=factor)
        if it.log.has(name):
            yield Bad(f"{name} of one step x{factor}", one)


@doctor("steps dropped")
def _dropped(it: Patient) -> Iterator[Bad]:
    size, first, last = len(it.log), it.first, it.last
    sets = {place: range(step, step + 1) for place, step in it.steps.items()}
    sets["five inside"] = range(first + 1, min(first + 6, last))
    sets |= {f"every {nth}th": range(nth - 1, size, nth) for nth in (2, 3, 5)}
    sets |= {"all before": range(first), "all after": range(last + 1, size)}
    sets["all inside"] = range(first + 1, last)
    for how, steps in sets.items():
        if steps:
            yield Bad(how, _all(*(partial(_set, step, b"") for step in steps)))
    if it.base.has_header == "yes":
        yield Bad("the header", lambda log: log.parts.__setitem__(0, b""), "tell")


@doctor("steps repeated or swapped")
def _repeated(it: Patient) -> Iterator[Bad]:
    log = it.log
    for (place, step), ahead in product(it.steps.items(), (0, 1, 3, -3)):
        there = step + ahead
        if 0 <= there < len(log):
            again = partial(_set, there, log[there] + log[step])
            yield Bad(f"{place}, again {ahead} steps later", again)
            swap = _all(partial(_set, step, log[there]), partial(_set, there, log[step]))
            yield Bad(f"{place}, swapped with {ahead} steps later", swap)
    yield Bad("each twice", partial(_each, lambda log, k: log.__setitem__(k, 2 * log[k])))


@doctor("two runs in one file")
def _two_runs(it: Patient) -> Iterator[Bad]:
    text, later = it.base.bytes(), it.base.log()
    later.move(later.all, 600 * S)
    half = b"".join(it.log.parts[: it.log.places[len(it.log) // 2]])
    yield Bad("the same twice", partial(_wrap, text, b""), "tell")
    yield Bad("again ten minutes later", partial(_wrap, b"", later.text()), "tell")
    yield Bad("half a run, then all", partial(_wrap, half, b""), "tell")
    yield Bad("all, then half a run", partial(_wrap, b"", half), "tell")
    yield Bad("again without its header", partial(_wrap, b"", b"".join(later.parts[1:])), "tell")
    for by_ms, factor in ((0, 1.0), (3, 1.0), (40, 1.3)):
        other = it.base.log()
        other.move(other.all, by_ms * S // 1000)
        other.scale(other.all, "rate", factor)
        ranks = _all(*(partial(_set, k, it.log[k] + other[k]) for k in it.log.all))
        yield Bad(f"ranks in turn, {by_ms} ms apart, rates x{factor}", ranks)


@doctor("cut short")
def _cut(it: Patient) -> Iterator[Bad]:
    starts = [sum(map(len, it.log.parts[:place])) for place in it.log.places]
    width, text = len(it.log[it.last]), it.base.bytes()
    cuts = {
        "within the header": len(it.log.parts[0]) // 2,
        "before the window": starts[it.first],
        "inside, between lines": starts[it.ends["inside"]],
        "inside, within a line": starts[it.ends["inside"]] + it.rng.randint(1, width - 2),
    }
    whole = starts[it.last] + width
    cuts |= {f"the last line by {back}": whole - back for back in range(1, 16)}
    if len(it.log) - it.last > 2 and not it.base.marks:
        cuts["behind the window"] = whole
    for how, at in cuts.items():  # of a number, digits may be missing
        told = "number" if "last line" in how else "tell"
        yield Bad(how, partial(Log.read, text=text[:at]), told)
    yield Bad("no last line end", partial(Log.read, text=text.rstrip(b"\n")), "keep")


@doctor("other bytes")
def _bytes(it: Patient) -> Iterator[Bad]:
    yield Bad("CRLF", partial(_sub, rb"\n", b"\r\n"), "honest")
    yield Bad("CR CR LF", partial(_sub, rb"\n", b"\r\r\n"))
    yield Bad("blank lines behind", partial(_wrap, b"", b"\n\n  \n\n"), "honest")
    yield Bad("BOM", partial(_wrap, b"\xef\xbb\xbf", b""))
    yield Bad("a hole of NULs before it", partial(_wrap, b"\0" * 4096, b""))
    for how, code in (("green", b"\x1b[32m"), ("bold", b"\x1b[1;37m")):
        yield Bad(how, partial(_sub, rb"^(.+)$", code + rb"\1" + b"\x1b[0m"), "honest")
    for junk in (b"\0" * 9, b"\xff\xfe\xe9", b"\x1b[31", b"\r", b"\xc2\xa0"):
        step = it.ends["inside"]
        line, at = it.log[step], it.rng.randint(1, len(it.log[step]) - 2)
        yield Bad(f"{junk!r} in a line", partial(_set, step, line[:at] + junk + line[at:]))
        yield Bad(f"a line of {junk!r}", partial(_set, step, junk + b"\n" + line))


@doctor("iterations renumbered")
def _renumbered(it: Patient) -> Iterator[Bad]:
    log, middle = it.log, (it.first + it.last) // 2
    stride = log.number(1) - log.number(0)
    shifts = {"a gap of one": stride, "a gap of ten": 10 * stride, "back by three": -3 * stride}
    for how, by in {**shifts, "from 1 again": log.number(0) - log.number(middle)}.items():
        new = [b"%d" % (log.number(k) + by) for k in log.all]
        puts = (partial(_put, k, "n", new[k]) for k in log.all[middle:])
        yield Bad(how, _all(*puts), "tell")
    one_on = [partial(_put, k, "n", b"%d" % (log.number(k) + stride)) for k in log.all]
    yield Bad("all one on", _all(*one_on))
    epochs = [partial(_put, k, "e", b"%d" % (int(log.get(k, "e") or 0) + 1)) for k in log.all]
    again = [partial(_put, k, "n", b"%d" % (k - middle + 1)) for k in log.all]
    if log.has("e"):
        new_epoch = epochs[middle:] + (again[middle:] if it.is_dll else [])
        yield Bad("another epoch", _all(*new_epoch))


@doctor("another day or zone")
def _days(it: Patient) -> Iterator[Bad]:
    middle = it.log.clock((it.first + it.last) // 2) if it.is_timed else 0
    for how, by_ns in (
        *(
            ("midnight", -middle % (86_400 * S)),
            ("zone +8", 28_800 * S),
            ("zone -5:30", -19_800 * S),
        ),
        ("New Year", 1_609_459_200 * S - middle),
        ("leap day", 1_582_934_400 * S - middle),
    ):
        if it.is_timed:
            yield Bad(how, partial(Log.move, steps=it.log.all, by_ns=by_ns), "honest")


def _cut_clock(step: int, is_shown: bool, log: Log) -> None:
    log.set_clock(step, log.clock(step) // S * S)
    if not is_shown:
        log.put(step, "t", log.get(step, "t").partition(b".")[0])


@doctor("whole seconds")
def _whole_seconds(it: Patient) -> Iterator[Bad]:
    sets = {place: [step] for place, step in it.steps.items()}
    sets |= {"all": [*it.log.all], "both ends": [it.first, it.last]}
    for (place, steps), are_shown in product(sets.items(), (True, False)):
        if it.is_timed:
            moves = [partial(_cut_clock, k, are_shown) for k in steps]
            yield Bad(f"{place}, decimals {are_shown}", _all(*moves))


_BATCH = (
    rb"((?<!optimizer_)\bbatch_size : |Per-GPU Batch Size:? |batch_size_per_device = |size_mib="
    rb"|(?:micro|global)_batch_size \.+ )(\d+)"
)
_WORLD = (
    rb"(world_size : |Num GPUs:? |gpu_num_per_node = |ranks=|(?:num_gpus_per_node"
    rb"|data_parallel_size|global_batch_size) \.+ )(\d+)"
)
_SIZES = {
    "batch": (_BATCH, r"(?<=[1-9]n[1-9]g/r50_b)\d+|(?<=rn50_b)\d+|(?<=base_b)\d+|(?<=[mg]bz)\d+"),
    "world": (_WORLD, r"(?<=\dn)\d+(?=[gd])|(?<=dp)\d+|(?<=gbz)\d+"),
}


@doctor("batch or world doubled")
def _sizes(it: Patient) -> Iterator[Bad]:
    for what, (header, name) in _SIZES.items():
        path = re.sub(name, lambda found: str(2 * int(found[0])), it.base.path)
        twice = partial(_sub, header, lambda found: found[1] + b"%d" % (2 * int(found[2])))
        images = partial(_sub, rb"(num_examples = )(\d+)", lambda f: f[1] + b"%d" % (2 * int(f[2])))
        if re.search(header, it.log.parts[0]):
            yield Bad(f"{what} in the header", twice, "tell")
            yield Bad(f"{what} in both", twice, "tell", path=path)
            yield Bad(f"{what} in both, and the images", _all(twice, images), "tell", path=path)
        if path != it.base.path:
            yield Bad(f"{what} in the name", len, "tell", path=path)


@doctor("a loss is lost")
def _losses(it: Patient) -> Iterator[Bad]:
    words = b"nan NaN NAN -nan inf -inf +inf Infinity INF nan(ind) tensor(nan)".split()
    for name, word in product(filter(it.log.has, LOSSES), words):
        place = it.rng.choice((*it.ends,))
        put = partial(_put, it.ends[place], name, word)
        yield Bad(f"{name} {word.decode()}, {place}", put, "tell")
        puts = (partial(_put, step, name, word) for step in it.log.all[it.first :])
        yield Bad(f"{name} {word.decode()}, from the first on", _all(*puts), "tell")


@doctor("a number is lost")
def _numbers(it: Patient) -> Iterator[Bad]:
    words = (b"nan", b"NaN", b"inf", b"0.0", b"-1.0", b"", b"1e400", b"-")
    for name, word in product(filter(it.log.has, ("rate", "s", "t", "n")), words):
        yield Bad(f"{name} {word.decode()!r}", partial(_put, it.ends["inside"], name, word))


CRASHES = (Path(__file__).parent / "crashes.txt").read_bytes().split(b"\n\n")


@doctor("a crash behind the last step")
def _crashes(_: Patient) -> Iterator[Bad]:
    for crash in CRASHES:
        yield Bad(crash.split(b"\n")[0][:30].decode(), partial(_end, crash + b"\n"), "tell")


@doctor("the same log again")
def _again(it: Patient) -> Iterator[Bad]:
    day, rng, log = partial(Log.move, steps=it.log.all, by_ns=90_061 * S + 7000), it.rng, it.log
    jitter = (partial(Log.move, steps=[k], by_ns=rng.randint(-9, 9) * 1000) for k in log.all)
    copies: dict[str, Callable[[Log], object]] = {
        "byte by byte": len,
        "with another line": partial(_wrap, b"Warning: x\n", b""),
        "CRLF": partial(_sub, rb"\n", b"\r\n"),
        "a blank more in each": partial(
            _each, lambda log, k: log.__setitem__(k, log[k][:-1] + b" \n")
        ),
        "a day later": day,
        "a day later, some us more": _all(day, *jitter),
    }
    for place, step in it.steps.items():
        copies[f"1 us more, {place}"] = partial(Log.move, steps=[step], by_ns=1000)
    for (place, step), name in product(it.ends.items(), filter(log.has, (*LOSSES, "rate", "s"))):
        old = log.get(step, name)
        new = old[:-1] + (b"2" if old[-1:] == b"1" else b"1")
        copies[f"a day later, last digit of {name}, {place}"] = _all(
            day, partial(_put, step, name, new)
        )
    for how, copy in copies.items():
        yield Bad(how, copy, "one log")


@doctor("two honest runs")
def _others(it: Patient) -> Iterator[Bad]:
    # Our reference program's seed and data are fixed: another run has the same losses.
    for k, repeat in product(range(3), (True, False) if it.base.kind == "reference" else (False,)):
        times = [it.rng.uniform(0.985, 1.015) for _ in it.log.all]
        changes = [partial(Log.slow, step=step, times=times[step]) for step in it.log.all[1:]]
        names = [] if repeat else [*filter(it.log.has, LOSSES)]
        changes += [
            partial(Log.scale, steps=[k], name=name, factor=it.rng.uniform(0.98, 1.02))
            for k, name in product(it.log.all, names)
        ]
        yield Bad(f"{k}, same losses {repeat}", _all(*changes, _conclude), "two logs")


def _swap_columns(log: Log, step: int) -> None:
    rate, took = log.get(step, "rate"), log.get(step, "s")
    log.put(step, "rate", rounded(float(took), rate))
    log.put(step, "s", rounded(float(rate), took))


@doctor("units and separators")
def _units(it: Patient) -> Iterator[Bad]:
    if it.log.has("s"):
        yield Bad("columns swapped", partial(_each, _swap_columns))
    for unit, factor in ((b"k", 1e-3), (b"M", 1e-6), (b"", 1e-3)):
        rates = [f"{it.log.rate(k) * factor:.6f}".encode() + unit for k in it.log.all]
        puts = (partial(_put, k, "rate", rates[k]) for k in it.log.all)
        yield Bad(f"rates in {unit.decode() or '1000'}", _all(*puts))
    for digits in (1, 3) if it.is_timed and b"-" not in it.log.get(0, "t") else ():
        point = partial(_sub, rb"(\d{10})\.(\d{%d})(\d+)" % digits, rb"\1\2.\3")
        yield Bad(f"clock in {10**digits}ths", point)
    for mark in ",'_ ":
        rates = [f"{1000 * it.log.rate(k):,.2f}".replace(",", mark).encode() for k in it.log.all]
        puts = (partial(_put, k, "rate", rates[k]) for k in it.log.all)
        yield Bad(f"rates such as 1{mark}234", _all(*puts))


@doctor("summaries")
def _summaries(it: Patient) -> Iterator[Bad]:
    told, ours = "tell" if it.base.rule == "reported" else "number", it.log.parts[-1]
    for factor in (0.5, 0.97, 0.99, 1.005, 1.02, 1.3):
        other = it.base.log()
        other.scale(other.all, "rate", factor)
        other.conclude()
        foreign = other.parts[-1]
        if foreign != ours:
            new, gone = partial(_end, foreign), partial(_end, b"")
            yield Bad(f"its number x{factor}", new)
            yield Bad(f"an old one x{factor} before the log", partial(_wrap, foreign, b""))
            yield Bad(f"again x{factor}", partial(_wrap, b"", foreign), told)
            yield Bad(
                f"an old one x{factor}, its own missing",
                _all(gone, partial(_wrap, foreign, b"")),
                told,
            )


@doctor("one digit changed")
def _digits(it: Patient) -> Iterator[Bad]:
    for k in range(18):
        step = (it.first, it.last, it.rng.randint(it.first, it.last))[k % 3]
        line = it.log[step]
        at = it.rng.choice([found.start() for found in re.finditer(rb"\d", line)])
        new = it.rng.choice([digit for digit in b"0123456789" if digit != line[at]])
        how = f"{k}: {line[max(0, at - 12) : at + 1].decode()} -> {chr(new)}"
        yield Bad(how, partial(_set, step, line[:at] + bytes([new]) + line[at + 1 :]))


@doctor("torn lines")
def _torn(it: Patient) -> Iterator[Bad]:
    for place, step in it.ends.items():
        line, at = it.log[step], it.rng.randint(1, len(it.log[step]) - 2)
        pieces = {
            "its end is missing": line[:at] + b"\n",
            "its beginning is missing": line[at:],
            "no line end": line[:-1],
            "broken in two": line[:at] + b"\n" + line[at:],
            "a warning in it": line[:at] + b"UserWarning: x" + line[at:],
            "glued to the next": line[:at],
        }
        for how, piece in pieces.items():
            yield Bad(f"{how}, {place}", partial(_set, step, piece))


CHATTER = (Path(__file__).parent / "chatter.txt").read_bytes().splitlines(True)


@doctor("chatter between steps")
def _chatter(it: Patient) -> Iterator[Bad]:
    for word, every in product(CHATTER, (1, 4)):
        steps = it.log.all[::every]
        puts = (partial(_set, step, it.log[step] + word) for step in steps)
        yield Bad(f"{word.strip()[:24].decode(errors='replace')!r} {every}", _all(*puts), "honest")


_MORE = {"pytorch": 40, "reference": 60, "oneflow": 4, "bert": 3, "all_reduce": 20}
_PROMISE = rb"(prof : |iter_num = |iterations=|num_examples = )(\d+)"


@doctor("a longer run")
def _longer(it: Patient) -> Iterator[Bad]:
    base, log, count = it.base, it.base.log(), _MORE.get(it.base.kind, 0)
    last, stride = len(log) - 1, log.number(1) - log.number(0)
    unit = int(float(base.samples)) if base.kind == "oneflow" else 1
    more, lines, begins = count * stride * unit, [log[last]], log.number(last)
    for k in range(1, count + 1):
        log.move([last], int(stride * float(base.samples) / log.rate(last) * S))
        log.put(last, "n", b"%d" % (begins + k * stride))
        lines.append(log[last])
    promise = partial(_sub, _PROMISE, lambda found: found[1] + b"%d" % (int(found[2]) + more))
    if count and not base.marks:
        whole = partial(_set, last, b"".join(lines))
        yield Bad(f"{count} steps more", _all(promise, whole), "honest")


@doctor("a collector's prefix")
def _prefixes(it: Patient) -> Iterator[Bad]:
    tags = (b"[1,0]<stdout>:", b"Fri Dec 18 20:04:13 2020[1,0]<stdout>:")
    others = (b"2020-12-16T11:32:19.886390123Z ", b"0: ", b"Dec 16 11:32:19 vs001 app[7]: ")
    is_mpi = it.base.workload.startswith("ngc") and b"]<std" not in it.log.text()
    for prefix in (*tags, *others):
        told = "honest" if prefix in tags and is_mpi else "number"
        yield Bad(prefix.decode(), partial(_sub, rb"^(?=.)", prefix), told)
