"""One run of a program: what its header, its steps and its own result say."""

from dataclasses import dataclass
from math import isfinite

from orchestrator import words
from orchestrator.logs.format import Format, Promise, Step
from orchestrator.logs.header import Header
from orchestrator.logs.notes import Notes
from orchestrator.logs.rates import Rates
from orchestrator.logs.records import Records
from orchestrator.logs.window import Window
from orchestrator.model.log import SECOND_NS, Rate
from orchestrator.model.trace import Trace

_JUMPS = 1000
_TOLERANCE = 0.03
"""Between a record's rate x latency and the batch, of formats that do not say their digits."""


@dataclass(slots=True)
class _Times:
    """Where something was seen first, and how often it was."""

    seen: str
    times: int = 0


class Run:
    """One run: its steps are summed up as they come.

    Args:
        requested: the window; None for what is usual.
    """

    def __init__(self, form: Format, requested: tuple[int, int] | None, notes: Notes) -> None:
        self._form = form
        self._requested = requested
        self.notes = notes
        self.header = Header(form.header, notes)
        self.reported: dict[str, float] = {}
        self.result_line: int | None = None
        self.memory_mib: int | None = None
        self.is_over = False
        self.window: Window | None = None
        self.series = b""
        self.steps = 0
        self.first: Step | None = None
        self.last: Step | None = None
        self.epochs = 0
        self.stride = 0
        self.pace: tuple[int, float] | None = None
        self._stamp = b""
        self._batch: float | None = None
        self._jumps: dict[int, _Times] = {}
        self._damage = _Times("")
        self._damaged_at = 0
        self._positive = True
        self._in_first_epoch = 0
        self._ended_at = self._crashed_at = -1
        self._crash = ""
        self.is_whole = False
        """Whether all steps are there that the header promises, or the program's own end."""
        self._rates = Rates()

    @property
    def has_begun(self) -> bool:
        return bool(self.steps or self.header.keys)

    @property
    def ends(self) -> tuple[int, int] | None:
        """The window to measure; None for the last records, or for the program's own result."""
        kind = self.series.decode() or self.header.get("mode")
        return self._requested or (None if kind in self._form.reporting else self._form.window)

    @property
    def usual(self) -> int:
        """The most frequent distance from one step to the next; 0 without any."""
        return max(self._jumps, key=lambda ahead: (self._jumps[ahead].times, -ahead), default=0)

    def add(self, step: Step) -> None:
        """Take a step that lies after the last one."""
        before, self.window = self.last, self.window or self._open(step)
        self._check_clock(step)
        if self._damage.times:
            self._blame(step.number)
        if before is None or step.epoch > before.epoch:
            self._open_epoch(step, before)
        else:
            self.stride = step.number - before.number
            self._jump(step, before).times += 1
        self._check_rate(step)
        if self.window and self.epochs == 1:
            self.window.add(step)
        self.last = step
        self.steps += 1
        self._rates.add(step.rate)
        if isfinite(step.rate):
            self.pace = (step.number, step.rate)

    def repeat(self, step: Step) -> None:
        """Take a step that was printed before."""
        seen = f"line {step.line}: iteration {self._form.place(step)} is there again"
        self.notes.add("DUP-STEPS", seen)
        if self.window and self.last and self.epochs == 1:
            self.window.repeat(step, self.last)

    def end(self) -> None:
        """Take the words with which the program ends."""
        self._ended_at = self.steps

    def crash(self, line: int, words: str) -> None:
        """Take words of a failure."""
        if self._crashed_at != self.steps:
            self._crashed_at, self._crash = self.steps, f"line {line}: {words}"

    def damage(self, line: int) -> None:
        """Remember a broken record until the next step tells where it was."""
        if not self._damage.times:
            seen = f"line {line} begins or ends as a record but does not match"
            self._damage = _Times(seen)
        self._damage.times += 1
        self._damaged_at = self.steps

    def _blame(self, number: int | None) -> None:
        """Note the records that were broken since the last step, now that the next is known."""
        last, window, damage = self.last.number if self.last else None, self.window, self._damage
        inside = window is None or (
            self.epochs <= 1 and window.misses(last, number, self.steps - self._damaged_at)
        )
        if inside is None:
            return
        self._damage = _Times("")
        code, where = ("MALFORMED", "inside") if inside else ("MALFORMED-OUTSIDE", "outside")
        seen = f"{damage.seen}, {where} the window"
        self.notes.add(code, seen, sort="record", times=damage.times)

    def _open(self, step: Step) -> Window:
        """Begin with the first step, for what is measured may depend on it."""
        self.series, self.first = step.series, step
        self._batch = self._form.promise(self).batch
        kind = Records if self._form.rule == "latency" else Window
        return kind(self.ends, self._form, self.notes)

    def _open_epoch(self, step: Step, before: Step | None) -> None:
        """Begin an epoch, whose numbers begin as in the first one, or go on."""
        self.epochs += 1
        if before is None or self.first is None:
            return
        self._in_first_epoch = self._in_first_epoch or self.steps
        begins = step.number in (self.first.number, before.number + self.stride)
        if step.epoch != before.epoch + 1 or not begins:
            here, there = self._form.place(step), self._form.place(before)
            seen = f"line {step.line}: iteration {here} after {there}"
            self.notes.add("SKIPPED-STEPS", seen, sort="epoch")

    def _jump(self, here: Step, before: Step) -> _Times:
        """How far steps are apart, and how often."""
        key = self._key(self.stride)
        if key not in self._jumps:
            seen = f"line {here.line}: iteration {here.number} after {before.number}"
            self._jumps[key] = _Times(seen)
        return self._jumps[key]

    def _key(self, ahead: int) -> int:
        """The distance, or 0 for all that are too many: random numbers could fill the memory."""
        return ahead if ahead in self._jumps or len(self._jumps) < _JUMPS else 0

    def _check_clock(self, step: Step) -> None:
        if self._form.clock and not step.stamp:
            seen = f"line {step.line}: iteration {step.number} without the time of its print"
            self.notes.add("NO-CLOCK", seen)
            return
        if self._form.goes_back(step.stamp, self._stamp):
            seen = f"line {step.line}: iteration {step.number}: the clock goes backwards"
            self.notes.add("CLOCK-STEP", seen)
        self._stamp = step.stamp

    def _check_rate(self, step: Step) -> None:
        where = f"line {step.line}: iteration {step.number}"
        if not (isfinite(step.rate) and step.rate > 0):
            self._positive = False
            self.notes.add("NOT-FINITE", f"{where}: rate {step.rate:g}", sort="rate")
        if step.latency_ns is None:
            return
        if not step.latency_ns > 0:
            seen = f"{where}: the latency is not a positive number"
            self.notes.add("NOT-FINITE", seen, sort="latency")
        elif self._batch and isfinite(step.rate):
            self._check_product(step, step.latency_ns / SECOND_NS, self._batch)

    def _check_product(self, step: Step, latency_s: float, batch: float) -> None:
        """Compare rate x latency with the batch, as exactly as both are printed."""
        tolerance, digits = _TOLERANCE, self._form.digits
        if digits and step.rate > 0:
            tolerance = 0.51 * (digits[0] / step.rate + digits[1] / latency_s) + 1e-6
        made = step.rate * latency_s
        if abs(made / batch - 1) > tolerance:
            unit, _, _ = self._form.unit.partition("/")
            seen = f"line {step.line}: iteration {step.number}: {step.rate:g} {self._form.unit}"
            seen = f"{seen} x {latency_s:.9g} s are {made:.6g} {unit}; the header says {batch:.6g}"
            self.notes.add("RATE-MISMATCH", seen, sort="record")

    def close(self) -> None:
        """Note what the records were that no step follows."""
        if self._damage.times:
            self._blame(None)

    def judge(self, promise: Promise) -> int:
        """Note what only the whole run shows, and return how far its steps are apart."""
        alone = self.first.number + 1 - self._form.base if self.first else 1
        stride = promise.interval or self.usual or alone
        for ahead, jump in self._jumps.items():
            if ahead != stride:
                self.notes.add("SKIPPED-STEPS", jump.seen, times=jump.times)
        if self.first:
            self._judge_beginning(self.first.number, stride, promise)
        self._judge_length(stride, promise)
        if self.steps and self._crashed_at == self.steps != self._ended_at:
            self.notes.add("CRASHED", f"{self._crash}; after the last step, and no end of its own")
        self._judge_header()
        if not self.steps:
            self.notes.add("NO-STEPS", "no line of an iteration")
        return stride

    def _judge_beginning(self, begin: int, stride: int, promise: Promise) -> None:
        first = stride + self._form.base - 1 if promise.first is None else promise.first
        early = promise.first is None and promise.interval is not None and begin < first
        if begin > first or early:
            seen = f"the log begins at iteration {begin}; needed {first}"
            self.notes.add("SKIPPED-STEPS", seen, sort="beginning")

    def _judge_length(self, stride: int, promise: Promise) -> None:
        """Compare the last step with what the header promises, and with the program's own end."""
        short = self._behind(self.last, stride, promise)
        if promise.lines is not None and self.steps < promise.lines:
            short = f"have {self.steps} of {promise.lines} steps"
        is_gapless = self._jumps.keys() <= {stride} and self.epochs >= (promise.epochs or 1)
        has_ended = is_gapless and self._ended_at == self.steps > 0
        if short and has_ended:
            self.notes.add("SHORT-RUN", f"{short}; the program ended there by itself")
        elif short:
            self.notes.add("TRUNCATED", short, sort="end")
        is_promised = promise.lines is not None or promise.least is not None
        self.is_whole = has_ended or (is_promised and not short)

    def _behind(self, last: Step | None, stride: int, promise: Promise) -> str:
        """Return in words how far the last step is from the promised end; empty if it is there."""
        if last is None or promise.lines is not None:
            return ""
        done, epochs = last.number + 1 - self._form.base, promise.epochs or last.epoch + 1
        seen = f"the log ends at iteration {self._form.place(last)}; its header promises"
        seen = f"{seen} {promise.least} iterations in each of {words.count(epochs, 'epoch')}"
        if done > (promise.most or done) or last.epoch + 1 > epochs:
            self.notes.add("MIXED-CONFIG", seen, sort="end")
        elif (promise.least or 0) - done >= stride or last.epoch + 1 < epochs:
            return seen
        return ""

    def _judge_header(self) -> None:
        keys, form = self.header.keys, self._form
        lacking = [name for name, any_of in form.needed if not any_of & keys]
        if not keys:
            self.notes.add(*form.headerless)
        elif lacking:
            self.notes.add("NO-HEADER", f"the header does not say {' and '.join(lacking)}")

    @property
    def rate(self) -> Rate | None:
        """The rates of all steps; None with one that is not a positive number."""
        return self._rates.summary() if self._positive else None

    @property
    def trace(self) -> Trace | None:
        """The rates of the first epoch; None where iterations are skipped."""
        if self.first is None or not self._positive or len(self._jumps) > 1:
            return None
        steps = self._in_first_epoch or self.steps
        return self._rates.trace(self.first.number, self.usual or 1, steps)
