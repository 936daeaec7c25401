"""The steps of one run in a DLLogger log, summed up as they come."""

from math import isfinite

from orchestrator.model.log import Rate
from orchestrator.workloads._dll_block import Block, Course
from orchestrator.workloads._dll_header import Header
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_rates import Rates
from orchestrator.workloads._dll_window import Window

_JUMPS = 1000


class Run:
    """One run of the program: what its header, its steps and its summary say."""

    def __init__(self, ends: tuple[int, int], notes: Notes) -> None:
        self._notes = notes
        self.header = Header(notes)
        self.window = Window(ends, notes)
        self.reported: dict[str, float] = {}
        self.steps = 0
        self.first: Step | None = None
        self.last: Step | None = None
        self.stride = 0
        self._epochs = 0
        self._jumps: dict[int, tuple[int, str]] = {}
        self._positive = True
        self._rates = Rates()

    @property
    def in_first_epoch(self) -> bool:
        return self._epochs == 1

    @property
    def course(self) -> Course | None:
        """How the run should go on; None as long as nothing can be expected."""
        return Course(self.last, self.stride) if self.last and self.stride else None

    def add(self, step: Step) -> None:
        """Take a step that lies after the last one."""
        if self.last is None or step.epoch > self.last.epoch:
            self._open_epoch(step)
        else:
            self._jump(self.last, step)
        self.first = self.first or step
        self.last = step
        self.steps += 1
        self._rates.append(step.rate)
        if not (isfinite(step.rate) and step.rate > 0):
            self._positive = False
            seen = f"line {step.line}: iteration {step.number}: rate {step.rate:g}"
            self._notes.add("NOT-FINITE", seen)
        if self.in_first_epoch:
            self.window.add(step)

    def add_block(self, block: Block, line: int) -> None:
        """Take steps that keep to the run's course, the first of them in ``line``."""
        if self.in_first_epoch:
            for step in block.inside(self.window.first, self.window.last, line):
                self.window.add(step)
        count, seen = self._jumps[self._key(self.stride)]
        self._jumps[self._key(self.stride)] = (count + len(block.rates), seen)
        self.last = block.last
        self.steps += len(block.rates)
        self._rates.extend(block.rates)

    def _open_epoch(self, step: Step) -> None:
        """Begin to take the steps of a new epoch, which counts from the start or goes on."""
        self._epochs += 1
        if not self.first or not self.last:
            return
        if step.number not in (self.first.number, self.last.number + self.stride):
            seen = f"line {step.line}: epoch {step.epoch} begins at iteration {step.number}"
            self._notes.add("SKIPPED-STEPS", seen, sort="epoch")

    def _jump(self, before: Step, here: Step) -> None:
        """Count how far steps are apart."""
        self.stride = here.number - before.number
        key = self._key(self.stride)
        if key not in self._jumps:
            seen = f"line {here.line}: iteration {here.number} after {before.number}"
            self._jumps[key] = (0, seen)
        count, seen = self._jumps[key]
        self._jumps[key] = (count + 1, seen)

    def _key(self, stride: int) -> int:
        """The stride, or 0 for all that are too many: random numbers could fill the memory."""
        return stride if stride in self._jumps or len(self._jumps) < _JUMPS else 0

    def judge(self) -> None:
        """Note what only the whole run shows: steps left out, steps missing at the end."""
        usual = max(self._jumps, key=lambda ahead: (self._jumps[ahead][0], -ahead), default=1)
        for ahead, (count, seen) in self._jumps.items():
            if ahead != usual:
                self._notes.add("SKIPPED-STEPS", seen, times=count)
        first = self.first or Step(b"", b"", 0, 1, 0.0, 0)
        if first.number > max(usual, 1):
            seen = f"the log begins at iteration {first.number}"
            self._notes.add("SKIPPED-STEPS", seen, sort="beginning")
        promised = self.header.promised(first, max(self._epochs, 1), max(usual, 1))
        if promised is not None and self.steps < promised:
            self._notes.add("TRUNCATED", f"have {self.steps} of {promised} steps")
        if not self.header.keys:
            self._notes.add("NO-HEADER", "no PARAMETER line before the steps")
        elif lacking := {"batch_size", "prof"} - self.header.keys:
            seen = f"the header does not say {' and '.join(sorted(lacking))}"
            self._notes.add("NO-HEADER", seen)

    @property
    def rate(self) -> Rate | None:
        return self._rates.summary() if self._positive else None
