"""What people see: lines, tables and the live view of a sweep. The home of rich."""

import contextlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Literal

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.status import Status
from rich.table import Table
from rich.text import Text

from orchestrator import errors, nodeset
from orchestrator.model.plan import Plan, TrialPlan
from orchestrator.model.report import PublishedResult, Report
from orchestrator.model.result import Result
from orchestrator.model.site import Finding

PLAIN_EVERY_S = 30.0
WORKING_EVERY_S = 10.0
PLAIN_COLUMNS = 200
# Control characters, and those that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """The text without what a terminal would obey; it may come from a node or a log."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _Quiet(io.TextIOWrapper):
    """Standard error that nobody may be listening to any more: that stops no sweep."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().flush()


class _Out(Console):
    """Standard output; a reader that has gone away is an error of ours to handle, not rich's."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Voice:
    """Speaks to a person, or to a program that asked for JSON.

    Results go to standard output, everything on the way to standard error; with ``as_json``
    standard output holds one JSON document and nothing else.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = _Out(highlight=False, soft_wrap=True)
        if not self._out.is_terminal:  # a file or a pipe has no width to fold to
            self._out = _Out(highlight=False, soft_wrap=True, width=PLAIN_COLUMNS)
        quiet = _Quiet(os.fdopen(os.dup(2), "wb"), encoding=sys.stderr.encoding, errors="replace")
        self._err = Console(file=quiet, highlight=False, soft_wrap=True)
        self._status: Status | None = None
        self._worked = time.monotonic()

    def line(self, text: str) -> None:
        """One line on the way."""
        self._err.print(Text(harmless(text)))

    def working(self, text: str) -> None:
        """What a long work is at: the terminal's last line, or a plain line now and then."""
        if self._err.is_terminal and not self.as_json:
            if self._status is None:
                self._status = self._err.status("")
                self._status.start()
            self._status.update(Text(harmless(text)))
        elif time.monotonic() - self._worked > WORKING_EVERY_S:
            self._worked = time.monotonic()
            self.line(text)

    def rested(self) -> None:
        """The long work is over; its line goes."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def result(self, text: str) -> None:
        """Lines of a result, left out where JSON was asked for."""
        if not self.as_json:
            self._out.print(Text(harmless(text)))

    def document(self, document: object) -> None:
        """The one JSON document, if that was asked for."""
        if self.as_json:
            sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
            sys.stdout.flush()

    def error(self, error: errors.DlperfError) -> None:
        """An error in its own words on standard error, and as JSON if that was asked for."""
        for line in str(error).splitlines():
            self._err.print(Text(harmless(line)))
        problems: list[object] = [{"code": error.code, "message": error.cause, **error.where}]
        if isinstance(error, errors.ConfigError):
            problems = [
                {
                    "code": "CONFIG",
                    "file": each.file,
                    "line": each.line,
                    "column": each.column,
                    "path": each.path,
                    "message": each.text,
                }
                for each in error.complaints
            ]
        self.document({"exit_code": error.exit_code, "errors": problems})

    def table(self, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table as a result; numbers stand right, columns without a word are left out."""
        if self.as_json:
            return
        cells = [[harmless(cell) for cell in row] for row in rows]
        table = Table(
            title=Text(harmless(title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        shown = [
            column for column in range(len(head)) if not cells or any(r[column] for r in cells)
        ]
        for column in shown:
            numbers = all(re.fullmatch(r"[-+0-9.,:%x/ ]*|n/a", row[column]) for row in cells)
            justify: Literal["left", "right"] = "right" if numbers else "left"
            table.add_column(head[column], justify=justify, overflow="fold")
        for row in cells:
            table.add_row(*(Text(row[column]) for column in shown))
        self._out.print(table, soft_wrap=False)

    def findings(self, findings: Sequence[Finding]) -> None:
        """What checks found, equal findings of several nodes in one row."""
        folded: dict[tuple[str, ...], list[str]] = {}
        for each in findings:
            key = (each.severity, each.code, each.seen, each.expected, each.fix)
            folded.setdefault(key, []).append(each.node)
        rows = [
            (severity, code, nodeset.fold(nodes), seen, expected, fix)
            for (severity, code, seen, expected, fix), nodes in folded.items()
        ]
        head = ("severity", "code", "node", "seen", "expected", "what to do")
        self.table("Findings", head, rows)

    def plan(self, plan: Plan) -> None:
        """Every trial's command lines, environment, mounts and node ranks."""
        self.result(f"experiment {plan.experiment} on cluster {plan.cluster}")
        locked = plan.image_digest or "UNLOCKED: the digest is not known yet"
        self.result(f"workload {plan.workload}, image {plan.image} ({locked})")
        self.result(f"{len(plan.trials)} trials; method {plan.method}")
        for trial in plan.trials:
            self.result(f"\ntrial {trial.name} -> logs/{trial.log}")
            for line in _tasks(trial):
                self.result(line)

    def results(self, report: Report) -> None:
        """The table of medians and speedups, or of logs."""
        if report.results:
            head = ("case", "batch", "precision", report.unit, "speedup", "effic.")
            more = ("trials", "spread", "interval", "cover", "transport", "marks")
            rows = [_row(report, result) for result in report.results]
            self.table(report.source, (*head, *more), rows)
            self._published(report)
        if report.lone:
            columns = ("world size", "batch", "precision", report.unit, "mean of printed")
            logs = [
                (
                    str(lone.log.config.get("world_size", "?")),
                    str(lone.log.config.get("micro_batch_size", "?")),
                    str(lone.log.config.get("precision", "?")),
                    _number(lone.throughput),
                    _number(lone.log.rate.mean if lone.log.rate else None),
                    " ".join(problem.code for problem in lone.problems),
                    lone.path,
                )
                for lone in report.lone
            ]
            self.table(f"Logs in {report.source}", (*columns, "problems", "log"), logs)

    def _published(self, report: Report) -> None:
        """Of each case that has one, the published result to compare with first."""
        rows = [
            _published(first, result, len(report.known(result)) - 1)
            for result in report.results
            for first in report.known(result)[:1]
        ]
        head = ("published by", "case", "precision", report.unit, "difference", "source")
        if rows:
            self.table("Published results of these cases", head, rows)

    def view(self, name: str, total: int, done: int) -> "View":
        """The live view of a sweep of ``total`` trials, of which ``done`` need no run."""
        return View(self, self._err, name, total, done)


def _tasks(trial: TrialPlan) -> Iterable[str]:
    for task in trial.tasks:
        yield f"  node {task.node}, node_rank {task.node_rank}, gpus {list(task.gpus) or 'none'}"
        yield f"    argv   {json.dumps(list(task.argv))}"
        for name, value in task.env.items():
            yield f"    env    {name}={value}"
        for mount in task.mounts:
            mode = "ro" if mount.read_only else "rw"
            yield f"    mount  {mount.source} -> {mount.target} ({mode})"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _told_apart(report: Report, result: Result) -> Iterable[str]:
    """The parameters of a case that are not the same in every case."""
    for name, value in result.case.params:
        if any(dict(other.case.params).get(name) != value for other in report.results):
            yield f"{name}={value}"


def _row(report: Report, result: Result) -> tuple[str, ...]:
    said, case = result.statistics, result.case
    interval = said.interval if said else None
    return (
        " ".join(filter(None, (case.placement, report.names.get(case)))),
        str(case.micro_batch_size),
        " ".join([case.precision, *_told_apart(report, result)]),
        _number(said.median if said else None),
        _number(result.speedup),
        f"{result.efficiency:.1%}" if result.efficiency is not None else "n/a",
        f"{said.n if said else 0}/{report.trials_planned or len(result.trials)}",
        f"{said.spread:.1%}" if said else "n/a",
        f"{interval.low:.2f}-{interval.high:.2f}" if interval else "n/a",
        f"{interval.coverage:.1%}" if interval else "n/a",
        result.transport.removeprefix("-"),
        " ".join(mark.code for mark in result.marks),
    )


def _published(first: PublishedResult, result: Result, others: int) -> tuple[str, ...]:
    batch = f"b{first.batch}" if first.batch.isdecimal() else first.batch
    difference = first.difference(result)
    return (
        first.framework,
        f"{first.placement} {batch}",
        first.precision,
        str(first.throughput),
        "n/a" if difference is None else f"{difference:+z.1%}",
        first.source + (f" (and {others} more in the report)" if others else ""),
    )


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as short as they can be said."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class View:
    """A sweep while it runs: live on a terminal, plain lines elsewhere."""

    def __init__(self, voice: Voice, console: Console, name: str, total: int, done: int) -> None:
        self._voice, self._name, self._total = voice, name, total
        self._before = self._done = done
        self._bad = 0
        self._trial, self._of = "", 0
        self._iteration, self._rate = 0, 0.0
        self._began = self._trial_began = self._said = time.monotonic()
        live = console.is_terminal and not voice.as_json
        self._live = Live(self, console=console, refresh_per_second=4) if live else None

    def __enter__(self) -> "View":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def trial(self, name: str, attempt: int, iterations: int) -> None:
        """A trial's attempt starts."""
        self._trial, self._of = f"{name} a{attempt}", iterations
        self._iteration, self._rate = 0, 0.0
        self._trial_began = self._said = time.monotonic()
        if not self._live:
            self._voice.line(f"[{self._done + 1}/{self._total}] {self._trial}: started")

    def progress(self, iteration: int, rate: float) -> None:
        """The running trial has come to an iteration, at a rate in samples per second."""
        self._iteration, self._rate = iteration, rate
        if not self._live and time.monotonic() - self._said > PLAIN_EVERY_S:
            self._said = time.monotonic()
            self._voice.line(f"[{self._done + 1}/{self._total}] {self._trial}: {self._progress()}")

    def ended(self, state: str, words: str, *, final: bool) -> None:
        """The running attempt ended; ``final`` if its trial needs no further one."""
        took = duration(time.monotonic() - self._trial_began)
        number = self._done + 1
        self._done += final
        self._bad += final and state != "valid"
        left = self._left()
        line = f"[{number}/{self._total}] {self._trial}: {state}, {words}, took {took}"
        self._voice.line(line + (f", about {duration(left)} left" if left else ""))
        self._trial = ""

    def _progress(self) -> str:
        took = duration(time.monotonic() - self._trial_began)
        return f"iteration {self._iteration} of {self._of}, {self._rate:.2f} samples/s, {took}"

    def _left(self) -> float | None:
        done = self._done - self._before
        if not done or self._done >= self._total:
            return None
        return (time.monotonic() - self._began) / done * (self._total - self._done)

    def __rich__(self) -> Group:
        """What the terminal shows now."""
        left = self._left()
        head = (
            f"{self._name}: {self._done} of {self._total} trials"
            + (f", {self._bad} not valid" if self._bad else "")
            + f", {duration(time.monotonic() - self._began)} elapsed"
            + (f", about {duration(left)} left" if left else "")
        )
        share = self._iteration / self._of if self._of else 0.0
        bar = ProgressBar(total=self._total, completed=min(self._done + share, self._total))
        now = f"{self._trial}: {self._progress()}" if self._trial else ""
        return Group(Text(head), Text(now), bar)
