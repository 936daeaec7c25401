"""The runs that one log holds, told apart step by step."""

from orchestrator.workloads import _tf_block
from orchestrator.workloads._dll_line import Step
from orchestrator.workloads._dll_notes import Notes
from orchestrator.workloads._tf_block import Block
from orchestrator.workloads._tf_run import Run


class Runs:
    """All runs of a log, of which the last one is held."""

    def __init__(self, ends: tuple[int, int] | None, notes: Notes) -> None:
        self._ends = ends
        self._notes = notes
        self._before = 0
        self._doubtful: Step | None = None
        self.last = Run(ends, notes)

    @property
    def count(self) -> int:
        return self._before + bool(self.last.steps or self.last.header.begun)

    def begin(self, seen: str) -> None:
        """Begin another run, if there is anything of one."""
        self.settle(None)
        if self.last.steps or self.last.header.has_parameters:
            self._restart(seen)

    def add(self, metric: str, step: Step) -> None:
        """Take the next step, whatever run it belongs to."""
        if self._doubtful:
            self.settle(step)
        run, last = self.last, self.last.last
        if last is None:
            run.add(metric, step)
            return
        if run.is_over or metric != run.metric:
            words = "the result" if run.is_over else str(run.metric)
            self._restart(f"line {step.line}: {metric} of iteration {step.number} after {words}")
            self.last.add(metric, step)
            return
        if step.rank != last.rank and step.rank and last.rank:
            seen = f"line {step.line}: steps of ranks {int(last.rank)} and {int(step.rank)}"
            self._notes.add("DUP-STEPS", seen, sort="ranks")
        if step.number <= last.number:
            self._back(step, last)
            return
        if step.stamp < last.stamp:
            seen = f"line {step.line}: iteration {step.number}: the clock goes backwards"
            self._notes.add("CLOCK-STEP", seen)
        run.add(metric, step)

    def add_block(self, text: bytes, at: int, line: int) -> Block | None:
        """Take the steps from ``at`` on, if they are a block that goes on as the last run did."""
        run = self.last
        if not run.last or not run.metric or not run.stride or self._doubtful or run.is_over:
            return None
        block = _tf_block.read(text, at, run.last, run.metric, run.stride)
        if block:
            run.add_block(block, line)
        return block

    def _back(self, step: Step, last: Step) -> None:
        """Tell a second run from a repeated step, or leave it to the next step to tell."""
        first = self.last.first or last
        if step.number == last.number:
            self._repeat(step)
        elif step.number <= first.number:
            self._restart_at(step, last)
        else:
            self._doubtful = step

    def settle(self, following: Step | None) -> None:
        """Judge a step that went back: a run goes on from it, or it was an earlier one's copy."""
        step, self._doubtful = self._doubtful, None
        if step is None:
            return
        last = self.last.last
        if last and following and following.follows(step, self.last.stride or 1):
            self._restart_at(step, last)
        else:
            self._repeat(step)

    def _repeat(self, step: Step) -> None:
        seen = f"line {step.line}: iteration {step.number} is there again"
        self._notes.add("DUP-STEPS", seen)
        if self.last.window:
            self.last.window.repeat(step)

    def _restart_at(self, step: Step, last: Step) -> None:
        metric = str(self.last.metric)
        self._restart(f"line {step.line}: iteration {step.number} after {last.number}")
        self.last.add(metric, step)

    def _restart(self, seen: str) -> None:
        self._notes.add("SEVERAL-RUNS", seen)
        self._before += 1
        self.last = Run(self._ends, self._notes)
