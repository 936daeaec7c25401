"""The reader of training logs, which knows runs, order and ends; a format describes the lines."""

import re
from collections.abc import Iterable
from math import isfinite

from orchestrator.logs import nccl
from orchestrator.logs.format import CRASH, Format, Step
from orchestrator.logs.header import Notes
from orchestrator.logs.run import Run
from orchestrator.logs.text import LONGEST_RECORD, Raw, select_lines, whole_lines
from orchestrator.logs.window import Window, compute_harmonic_mean, compute_mean
from orchestrator.model.log import Rule, TrainingLog, global_batch_size

RESULT = "train_throughput"
"""The name of a program's own result in ``TrainingLog.reported``."""

_CRASH = re.compile(CRASH)


class Reader:
    """A log that is being read, from its first byte to its last.

    Args:
        requested: the window; None for the usual one.
    """

    def __init__(self, form: Format, requested: tuple[int, int] | None) -> None:
        self.form = form
        self._requested = requested
        self._libraries = nccl.Listener()
        self._runs_before = 0
        self._torn_line = 0
        self.notes = Notes()
        self.run = Run(form, requested, self.notes)
        self.line = 1
        self.half: Step | None = None
        """A record whose rest is in another line."""

    def take(self, text: bytes) -> None:
        """Read whole lines, or the last line of a log, which nothing ends."""
        if not text.endswith((b"\n", b"\r")):
            self._take_end(text)
            return
        after = self.line + text.count(b"\n")
        self._libraries.take(text, self.line)
        for number, line in select_lines(self.form.concerns, text, self.line):
            self.line = number
            self._take_line(line)
        self.line = after

    def _take_line(self, line: bytes) -> None:
        line = line.lstrip(b"\x00")  # a log that was cut short while it was written begins so
        if step := self.form.read(line, self.line):
            self.step(step)
            if self.form.lost.search(line):
                self.lose(step.number)
            return
        if len(line) <= LONGEST_RECORD:
            if self.form.end and self.form.end.search(line):
                self.run.end()
            if self.form.event(self, line):
                return
            if crash := _CRASH.search(line):
                self.run.crash(self.line, crash[0].decode())
        if self.form.broken(line):
            self.run.damage(self.line)

    def _take_end(self, line: bytes) -> None:
        """Read the last line, of which digits may be missing, unless its record is complete."""
        form, step, window = self.form, self.form.read(line, self.line), self.run.window
        is_behind = step is not None and window is not None and window.is_whole
        is_timed = is_behind and step and step.stamp and line.rstrip().endswith(step.stamp)
        if is_timed or (form.sealed and form.sealed.search(line)):
            self.take(line + b"\n")
        elif not is_behind and (step or self.half or form.broken(line)):
            self._torn_line = self.line  # behind the window nothing is measured

    def step(self, step: Step) -> None:
        """Take a step: the next one of its run, a repeated one, or the first of another run."""
        last = self.run.last
        if last is None:
            self.run.add(step)
            return
        if self.run.is_over or step.series != self.run.series:
            before = "the result" if self.run.is_over else self.run.series.decode()
            seen = f"{step.series.decode()} of iteration {step.number} after {before}"
            self.restart(f"line {step.line}: {seen}")
            last = None
        elif step.rank != last.rank and step.rank and last.rank:
            seen = f"line {step.line}: steps of ranks {int(last.rank)} and {int(step.rank)}"
            self.notes.add("DUP-STEPS", seen, sort="ranks")
        if last and step.place == last.place:
            self.run.repeat(step)
            return
        if last and step.place < last.place:
            here, before = self.form.place(step), self.form.place(last)
            self.restart(f"line {step.line}: iteration {here} after {before}")
        self.run.add(step)

    def restart(self, seen: str) -> None:
        """Begin another run."""
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
        """Note that the loss of a step is not finite."""
        seen = f"line {self.line}: iteration {iteration}: the loss is not finite"
        self.notes.add("LOSS-NOT-FINITE", seen)

    def log(self, raw: Raw) -> TrainingLog:
        """Return what has been read."""
        run, form = self.run, self.form
        runs = self._runs_before + run.has_begun
        promise = form.promise(run)
        stride, config = run.judge(promise), form.config(run)
        window = run.window if runs == 1 and run.window else Window(run.ends, form, self.notes)
        rule: Rule = "reported" if form.reporting and run.ends is None else form.rule
        reported = {name: value for name, value in run.reported.items() if isfinite(value)}
        if rule == "reported" and runs == 1 and RESULT not in reported:
            seen = f"no {RESULT}, which the program reports at its end; the log lacks that end"
            self.notes.add("NO-RESULT", seen)
        if window is run.window:
            window.judge(run, stride, promise.batch or global_batch_size(config))
        rates = window.rates if window.is_whole else []
        after_first = rates if form.rule == "latency" else rates[1:]
        mean = compute_mean(rates)
        has_number = RESULT in run.reported if rule == "reported" else window.is_whole
        if self._torn_line and not (has_number and run.is_whole):
            seen = f"the log ends in the middle of a record, in line {self._torn_line}"
            self.notes.add("TRUNCATED", seen, sort="record")
        start, end = window.moments
        return TrainingLog(
            runs=runs,
            steps=run.steps,
            first_iteration=run.first.number if run.first else None,
            last_iteration=run.last.number if run.last else None,
            config=config,
            start=start,
            end=end,
            rate=run.rate,
            window_rate=compute_harmonic_mean(after_first),
            unit=form.unit,
            reported=reported,
            digest=window.digest,
            words=window.words,
            size_bytes=raw.size_bytes,
            sha256=raw.sha256,
            fabric=self._libraries.fabric(),
            problems=self.notes.problems(),
            rule=rule,
            window=window.used,
            window_mean=mean if isfinite(mean) else None,
            window_weighed=compute_harmonic_mean(rates[1:] if form.averaged else rates),
            samples=window.samples,
            agreement=window.agreement,
            latency_s=window.latency_s,
            memory_mib=run.memory_mib,
            lines=window.lines,
            result_line=run.result_line if runs == 1 and RESULT in reported else None,
            origin_ns=window.origin_ns,
            tells=promise.tells,
            trace=run.trace if runs == 1 else None,
        )


def read(form: Format, chunks: Iterable[bytes], window: tuple[int, int] | None) -> TrainingLog:
    """Read a log; the result does not depend on how its bytes are cut into chunks.

    Holds the rates of all steps and a few pieces of the log in memory.

    Args:
        window: first and last iteration, by the log's own numbers, in its first epoch; None for
            the usual one.
    """
    reader, raw = Reader(form, window), Raw(chunks)
    for text in whole_lines(raw):
        reader.take(text)
    return reader.log(raw)


def progress(form: Format, block: bytes) -> tuple[int, float] | None:
    """Return iteration and printed rate of the last whole step in a part of a log."""
    reader = Reader(form, None)
    for text in whole_lines([block]):
        reader.take(text)
    return reader.run.pace
