"""The reader of training logs, which knows runs, order and ends; a format describes the lines."""

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import inf, isfinite
from statistics import median

from orchestrator import words
from orchestrator.logs import nccl
from orchestrator.logs.format import CRASH, Format, Promise, Step
from orchestrator.logs.header import Header, Notes
from orchestrator.logs.text import LONGEST_RECORD, select_lines, whole_lines
from orchestrator.logs.window import Window, compute_mean
from orchestrator.model.log import SECOND_NS, Rate, TrainingLog, global_batch_size, reduce_rates

RESULT = "train_throughput"
"""The name of a program's own result in ``TrainingLog.reported``."""

_CRASH = re.compile(CRASH)
_TOLERANCE = 0.03
"""Between a record's rate x latency and the batch, for formats that do not give their digits."""


class Run:
    """One run: its steps are summed up as they come."""

    def __init__(self, form: Format, requested: tuple[int, int] | None, notes: Notes) -> None:
        self._form = form
        self._requested = requested
        self.notes = notes
        self.header: Header = Header(form.header, notes)
        self.reported: dict[str, float] = {}
        self.result_line: int | None = None
        self.memory_mib: int | None = None
        self.is_over = False
        self.is_whole = False
        """True if all steps that the header promises are there, or the program's own end."""
        self.window: Window | None = None
        self.series = b""
        self.steps = 0
        self.first: Step | None = None
        self.last: Step | None = None
        self.epochs = 0
        self.rates = array("d")
        self.in_first_epoch = 0
        self._clock_ns: int | None = None
        self._batch: float | None = None
        self.strides = Counter[int]()
        self._seen: dict[int, str] = {}
        """The first step of each stride, in words."""
        self.damaged: list[int] = []
        """Lines of broken records since the last step."""
        self.ended_at = self.crashed_at = -1
        """The number of steps before the program's own end, and before a crash."""
        self.crash = ""

    @property
    def has_begun(self) -> bool:
        return bool(self.steps or self.header.keys)

    @property
    def ends(self) -> tuple[int, int] | None:
        """Return the window to measure; None for the last records, or the program's own result."""
        kind = self.series.decode() or self.header.get("mode")
        return self._requested or (None if kind in self._form.reporting else self._form.window)

    @property
    def usual(self) -> int:
        """Return the most frequent distance from one step to the next; 0 without any."""
        return max(self.strides, key=lambda ahead: (self.strides[ahead], -ahead), default=0)

    def add(self, step: Step) -> None:
        before = self.last
        if self.window is None:  # only the first step shows which window is the usual one
            self.series, self.first = step.series, step
            self._batch = self._form.promise(self).batch
            self.window = Window(self.ends, self._form, self.notes)
        if self._form.clock and not step.stamp:
            self.notes.add("NO-CLOCK", f"{step.where} without the time of its print")
        if step.clock_ns is not None:
            if self._clock_ns is not None and step.clock_ns < self._clock_ns:
                self.notes.add("CLOCK-STEP", f"{step.where}: the clock goes backwards")
            self._clock_ns = step.clock_ns
        self.note_damage(step)
        if before is None:
            self.epochs = 1
        elif step.epoch > before.epoch:
            self.epochs += 1
            self.in_first_epoch = self.in_first_epoch or self.steps
        else:
            ahead = step.number - before.number
            self.strides[ahead] += 1
            self._seen.setdefault(ahead, f"{step.where} after {before.number}")
        self._check_rate(step)
        if self.epochs == 1:
            self.window.add(step)
        self.last = step
        self.steps += 1
        self.rates.append(step.rate)

    def repeat(self, step: Step) -> None:
        seen = f"line {step.line}: iteration {self._form.place(step)} is there again"
        self.notes.add("DUP-STEPS", seen)
        if self.window and self.epochs == 1:
            self.window.repeat(step)

    def note_damage(self, after: Step | None) -> None:
        """Note the records that broke before a step, None at the end, if that may be measured."""
        if self.damaged and self.epochs <= 1:
            first, last = self.ends or (inf, -inf)
            is_measured = self.window is None or (
                (after is None or after.number > first)
                and (self.last is None or self.last.number < last)
            )
            if is_measured:
                seen = f"line {self.damaged[0]} begins or ends as a record but does not match"
                seen = f"{seen}, inside the window"
                self.notes.add("MALFORMED", seen, sort="record", times=len(self.damaged))
        self.damaged.clear()

    def _check_rate(self, step: Step) -> None:
        """Note a rate or latency that is not positive, or whose product is not the batch."""
        if not 0 < step.rate < inf:
            self.notes.add("NOT-FINITE", f"{step.where}: rate {step.rate:g}", sort="rate")
        if step.latency_ns is None:
            return
        if not step.latency_ns > 0:
            seen = f"{step.where}: the latency is not a positive number"
            self.notes.add("NOT-FINITE", seen, sort="latency")
            return
        if not self._batch or not isfinite(step.rate):
            return
        latency_s, tolerance, digits = step.latency_ns / SECOND_NS, _TOLERANCE, self._form.digits
        if digits and step.rate > 0:  # as exactly as both are printed
            tolerance = 0.51 * (digits[0] / step.rate + digits[1] / latency_s) + 1e-6
        made = step.rate * latency_s
        if abs(made / self._batch - 1) > tolerance:
            unit, _, _ = self._form.unit.partition("/")
            seen = f"{step.where}: {step.rate:g} {self._form.unit} x {latency_s:.9g} s are"
            seen = f"{seen} {made:.6g} {unit}; the header says {self._batch:.6g}"
            self.notes.add("RATE-MISMATCH", seen, sort="record")

    def judge(self, promise: Promise) -> int:
        """Note what only the whole run shows; return the distance from one step to the next."""
        self.note_damage(None)
        base = self._form.base
        alone = self.first.number + 1 - base if self.first else 1
        stride = promise.interval or self.usual or alone
        for ahead, times in self.strides.items():
            if ahead != stride:
                self.notes.add("SKIPPED-STEPS", self._seen[ahead], times=times)
        if self.first:
            begin, latest = self.first.number, promise.first
            needed = stride + base - 1 if latest is None else latest
            is_early = latest is None and promise.interval is not None and begin < needed
            if begin > needed or is_early:
                seen = f"the log begins at iteration {begin}; needed {needed}"
                self.notes.add("SKIPPED-STEPS", seen, sort="beginning")
        self._judge_length(stride, promise)
        if self.steps and self.crashed_at == self.steps != self.ended_at:
            self.notes.add("CRASHED", f"{self.crash}; after the last step, and no end of its own")
        keys, form = self.header.keys, self._form
        lacking = [name for name, any_of in form.needed if not any_of & keys]
        if not keys:
            self.notes.add(*form.headerless)
        elif lacking:
            self.notes.add("NO-HEADER", f"the header does not say {' and '.join(lacking)}")
        if not self.steps:
            self.notes.add("NO-STEPS", "no line of an iteration")
        return stride

    def _judge_length(self, stride: int, promise: Promise) -> None:
        """Compare the last step with what the header promises, and with the program's own end."""
        short = ""
        if promise.lines is not None and self.steps < promise.lines:
            short = f"have {self.steps} of {promise.lines} steps"
        elif promise.lines is None and self.last:
            done, epoch = self.last.number + 1 - self._form.base, self.last.epoch + 1
            epochs = promise.epochs or epoch
            seen = f"the log ends at iteration {self._form.place(self.last)}; its header promises"
            seen = f"{seen} {promise.least} iterations in each of {words.count(epochs, 'epoch')}"
            if done > (promise.most or done) or epoch > epochs:
                self.notes.add("MIXED-CONFIG", seen, sort="end")
            elif (promise.least or 0) - done >= stride or epoch < epochs:
                short = seen
        is_gapless = self.strides.keys() <= {stride} and self.epochs >= (promise.epochs or 1)
        has_ended = is_gapless and self.ended_at == self.steps > 0
        if short and has_ended:
            self.notes.add("SHORT-RUN", f"{short}; the program ended there by itself")
        elif short:
            self.notes.add("TRUNCATED", short, sort="end")
        is_promised = promise.lines is not None or promise.least is not None
        self.is_whole = has_ended or (is_promised and not short)


class Reader:
    """A log that is being read, from its first byte to its last."""

    def __init__(self, form: Format, requested: tuple[int, int] | None) -> None:
        self.form = form
        self._requested = requested
        self._libraries = nccl.Listener()
        self._runs_before = 0
        self._torn_line = 0
        self.notes = Notes()
        self.run = Run(form, requested, self.notes)
        self.line = 1
        self.half: tuple[bytes, Step] | None = None
        """The rank and the first half of a record whose rest is in another line."""

    def take(self, text: bytes) -> None:
        """Read whole lines, or the last line of a log, which nothing ends."""
        if not text.endswith((b"\n", b"\r")):
            self._take_end(text)
            return
        form, after = self.form, self.line + text.count(b"\n")
        self._libraries.take(text, self.line)
        for number, raw in select_lines(form.concerns, text, self.line):
            self.line = number
            line = raw.lstrip(b"\x00")  # a log that was cut short while it was written begins so
            if step := form.read(line, self.line):
                self.step(step)
                if form.lost.search(line):
                    self.lose(step.number)
                continue
            if len(line) <= LONGEST_RECORD:
                if form.end and form.end.search(line):
                    self.run.ended_at = self.run.steps
                if form.event(self, line):
                    continue
                crash, run = _CRASH.search(line), self.run
                if crash and run.crashed_at != run.steps:
                    run.crashed_at, run.crash = run.steps, f"line {number}: {crash[0].decode()}"
            if form.broken(line):
                self.run.damaged.append(self.line)
        self.line = after

    def _take_end(self, line: bytes) -> None:
        """Read the last line, of which digits may be missing, unless its record is complete."""
        form, step, window = self.form, self.form.read(line, self.line), self.run.window
        is_behind = step and window and form.rule != "latency" and all(window.find_ends())
        is_timed = is_behind and step and step.stamp and line.rstrip().endswith(step.stamp)
        if is_timed or (form.sealed and form.sealed.search(line)):
            self.take(line + b"\n")
        elif not is_behind and (step or self.half or form.broken(line)):
            self._torn_line = self.line  # behind the window nothing is measured

    def step(self, step: Step) -> None:
        """Take a step: the next one of its run, a repeated one, or the first of another run."""
        last = self.run.last
        if last and (self.run.is_over or step.series != self.run.series):
            before = "the result" if self.run.is_over else self.run.series.decode()
            seen = f"{step.series.decode()} of iteration {step.number} after {before}"
            self.restart(f"line {step.line}: {seen}")
        elif last and step.place == last.place:
            self.run.repeat(step)
            return
        elif last and step.place < last.place:
            here, before = self.form.place(step), self.form.place(last)
            self.restart(f"line {step.line}: iteration {here} after {before}")
        self.run.add(step)

    def restart(self, seen: str) -> None:
        self.notes.add("SEVERAL-RUNS", seen)
        self.run.note_damage(None)
        self._runs_before += 1
        self.run = Run(self.form, self._requested, self.notes)

    def open_header(self) -> None:
        """Begin another run where a header begins, if this one has begun."""
        if self.run.has_begun:
            self.restart(f"line {self.line}: another header")

    def argument(self, key: bytes, value: bytes) -> None:
        """Take an argument of a header; one that is given again, or after steps, opens a run."""
        name = key.decode("ascii")
        if name not in self.form.header:
            return
        if self.run.steps or name in self.run.header.keys:
            self.open_header()
        text = value.decode("utf-8", "backslashreplace").strip()
        self.run.header.add(name, text, self.line)

    def lose(self, iteration: int) -> None:
        seen = f"line {self.line}: iteration {iteration}: the loss is not finite"
        self.notes.add("LOSS-NOT-FINITE", seen)

    def log(self, sha256: str) -> TrainingLog:
        run, form = self.run, self.form
        runs = self._runs_before + run.has_begun
        promise = form.promise(run)
        stride, config = run.judge(promise), form.config(run)
        reported = {name: value for name, value in run.reported.items() if isfinite(value)}
        log = TrainingLog(
            runs=runs,
            steps=run.steps,
            first_iteration=run.first.number if run.first else None,
            last_iteration=run.last.number if run.last else None,
            config=config,
            unit=form.unit,
            reported=reported,
            sha256=sha256,
            fabric=self._libraries.fabric(),
            rule="reported" if form.reporting and run.ends is None else form.rule,
            window=run.ends,
            memory_mib=run.memory_mib,
            result_line=run.result_line if runs == 1 and RESULT in reported else None,
            tells=promise.tells,
        )
        if run.first and all(0 < rate < inf for rate in run.rates):
            log = replace(log, rate=Rate(run.steps, compute_mean(run.rates), median(run.rates)))
            if runs == 1 and len(run.strides) <= 1:  # no iterations are skipped
                rates = run.rates[: run.in_first_epoch or run.steps]
                log = replace(log, trace=reduce_rates(run.first.number, run.usual or 1, rates))
        if log.rule == "reported" and runs == 1 and RESULT not in reported:
            seen = f"no {RESULT}, which the program reports at its end; the log lacks that end"
            self.notes.add("NO-RESULT", seen)
        if runs == 1 and run.window:
            batch = promise.batch or global_batch_size(config)
            log = run.window.measure(log, stride, batch)
        has_number = RESULT in run.reported if log.rule == "reported" else log.lines
        if self._torn_line and not (has_number and run.is_whole):
            seen = f"the log ends in the middle of a record, in line {self._torn_line}"
            self.notes.add("TRUNCATED", seen, sort="record")
        return replace(log, problems=self.notes.problems())


def reader(
    form: Format, usual: tuple[int, int] | None = None
) -> Callable[[Iterable[bytes], tuple[int, int] | None], TrainingLog]:
    """Return a function that reads logs of one format, given in chunks, for a window.

    The result does not depend on how the bytes are cut into chunks. In memory it holds the steps of
    the window, all rates and a few pieces of the log.

    Args:
        usual: the window where none is requested; None for the format's own.
    """

    def read(chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
        reader, sha256 = Reader(form, window or usual), hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for chunk in chunks:
                sha256.update(chunk)
                yield chunk

        for text in whole_lines(hashed()):
            reader.take(text)
        return reader.log(sha256.hexdigest())

    return read


def progress(form: Format) -> Callable[[bytes], tuple[int, float] | None]:
    """Return a function that finds iteration and rate of the last whole step in a part of a log."""

    def find(block: bytes) -> tuple[int, float] | None:
        reader = Reader(form, None)
        for text in whole_lines([block]):
            reader.take(text)
        last = reader.run.last
        return (last.number, last.rate) if last and isfinite(last.rate) else None

    return find
