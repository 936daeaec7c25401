"""The steps of one run of NVIDIA's TensorFlow ResNet-50, summed up as they come."""

import hashlib
from collections.abc import Mapping
from math import isfinite

from orchestrator.model.log import Rate
from orchestrator.workloads import _tf_line
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._dll_rates import Rates
from orchestrator.workloads._dll_window import Window
from orchestrator.workloads._tf_block import Block
from orchestrator.workloads._tf_header import Header

USUAL = (21, 120)
"""Of mode train: the 100 steps that it shows of 120. Source: DLPerf, extract_tensorflow_logs.py."""
RESULT = "train_throughput"
_JUMPS = 1000


class Run:
    """One run of the program: what its header, its steps and its result say.

    Args:
        ends: the window that was asked for; None for what is usual.
    """

    def __init__(self, ends: tuple[int, int] | None, notes: Notes) -> None:
        self._ends = ends
        self._notes = notes
        self.header = Header(notes)
        self.metric: str | None = None
        self.window: Window | None = None
        self._reported: dict[str, float] = {}
        self._unsure: set[str] = set()
        self.steps = 0
        self.first: Step | None = None
        self.last: Step | None = None
        self.stride = 0
        self._jumps: dict[int, tuple[int, str]] = {}
        self._positive = True
        self._rates = Rates()
        self._all = hashlib.sha256()

    @property
    def ends(self) -> tuple[int, int] | None:
        """The window to measure; None where the program's own result is taken."""
        benchmark = self.metric or self.header.told("mode")
        usual = None if benchmark in (_tf_line.BENCHMARK, "training_benchmark") else USUAL
        return self._ends or usual

    @property
    def usual_stride(self) -> int:
        """Iterations from one step line to the next: what is usual, or less if the header says so.

        Some releases print every step of a benchmark whatever ``--display_every`` asks for.
        """
        said = self.header.told("display_every")
        usual = max(self._jumps, key=lambda ahead: (self._jumps[ahead][0], -ahead), default=0)
        return min((each for each in (said, usual) if isinstance(each, int) and each), default=1)

    def add(self, metric: str, step: Step) -> None:
        """Take a step that lies after the last one."""
        if self.last is None:
            self._open(metric)
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
        if self.window:
            self.window.add(step)
        else:
            self._all.update(b"%d %s\n" % (step.number, step.stamp))

    def add_block(self, block: Block, line: int) -> None:
        """Take steps that keep to the run's stride, the first of them in ``line``."""
        if self.window is None:
            rows = zip(block.numbers, block.stamps, strict=True)
            self._all.update(b"".join([b"%d %s\n" % row for row in rows]))
        elif block.numbers[0] <= self.window.last and block.numbers[-1] >= self.window.first:
            for row in range(len(block.rates)):
                self.window.add(block.step(row, line))
        count, seen = self._jumps[self._key(block.numbers.step)]
        self._jumps[self._key(block.numbers.step)] = (count + len(block.rates), seen)
        self.last = block.step(len(block.rates) - 1, line)
        self.steps += len(block.rates)
        self._rates.extend(block.rates)

    def conclude(self, line: int, reported: Mapping[str, float]) -> None:
        """Take what the program reports at its end; a number with two values is none."""
        for name, value in reported.items():
            before = self._reported.setdefault(name, value)
            if not isfinite(value):
                self._unsure.add(name)
            elif value != before:
                self._unsure.add(name)
                seen = f"line {line}: {name} {value:g} after {before:g}"
                self._notes.add("DUP-STEPS", seen, sort=name)

    @property
    def reported(self) -> dict[str, float]:
        """The finite numbers that the program reports at its end."""
        return {name: it for name, it in self._reported.items() if name not in self._unsure}

    @property
    def is_over(self) -> bool:
        """Whether the program has reported; no step of this run comes after that."""
        return RESULT in self._reported

    def _open(self, metric: str) -> None:
        self.metric = metric
        self.window = Window(self.ends, self._notes) if self.ends else None

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
        """Note what only the whole run shows: steps that are missing, a header that is."""
        stride = self.usual_stride
        for ahead, (count, seen) in self._jumps.items():
            if ahead != stride:
                self._notes.add("SKIPPED-STEPS", seen, times=count)
        self._judge_beginning()
        first = self.first.number if self.first else None
        promised = self.header.promised(self.metric, first, stride)
        if promised is not None and self.steps < promised:
            self._notes.add("TRUNCATED", f"have {self.steps} of {promised} steps")
        if lacking := self.header.lacks:
            seen = f"the header does not say {' and '.join(lacking)}"
            # The recorded logs of 32 ranks under mpirun are whole and have no header.
            none = "no line of parameters, nor of GPUs and batch size, before the steps"
            begun = self.header.begun
            self._notes.add("NO-HEADER" if begun else "HEADERLESS", seen if begun else none)
        self._judge_mode()

    def _judge_beginning(self) -> None:
        begins = self.header.begins(self.metric)
        if not self.first or begins is None:
            return
        if self.first.number > begins + (self.metric == _tf_line.TRAINING):
            seen = f"the log begins at iteration {self.first.number}; needed {begins}"
            self._notes.add("SKIPPED-STEPS", seen, sort="beginning")

    def _judge_mode(self) -> None:
        mode = self.header.told("mode")
        metrics = {"train": _tf_line.TRAINING, "training_benchmark": _tf_line.BENCHMARK}
        if self.metric and metrics.get(str(mode), self.metric) != self.metric:
            seen = f"the header says mode {mode}, and the steps print {self.metric}"
            self._notes.add("MIXED-CONFIG", seen, sort="mode")

    @property
    def rate(self) -> Rate | None:
        return self._rates.summary() if self._positive else None

    @property
    def digest(self) -> str:
        """Over the window's steps, or over all where there is no window."""
        if self.window:
            return self.window.digest
        return self._all.hexdigest() if self.steps else ""
