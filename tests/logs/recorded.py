"""Recorded logs by short names, and the differences that a user sees in a changed one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from orchestrator import workloads
from orchestrator.measuring import validity
from orchestrator.model.log import TrainingLog
from orchestrator.model.problem import Problem
from tests.doctored.honest import BASES, Base, Log

FIELDS = ("runs", "steps", "first_iteration", "last_iteration", "window", "memory_mib")


@dataclass(frozen=True)
class Recorded:
    """A log of ``tests/doctored/bases.csv``, and the window over which it is read."""

    base: Base
    window: tuple[int, int] | None

    @cached_property
    def raw(self) -> bytes:
        return self.base.bytes()

    @cached_property
    def whole(self) -> TrainingLog:
        return self.read(self.raw)

    def log(self) -> Log:
        return self.base.log()

    def read(self, text: bytes, window: tuple[int, int] | None = None) -> TrainingLog:
        return workloads.require(self.base.workload).read([text], window or self.window)

    def measure(self, log: TrainingLog) -> float | None:
        """Return the throughput that a trial of the recorded case gets from this log."""
        rule = self.base.rule
        if rule == "none":
            rule = "rates"
        elif rule == "reported" and self.window:
            rule = "clock"
        samples = round(float(self.base.samples))
        found = validity.compute_throughput(log, samples, rule)  # type: ignore[arg-type] # by name
        return None if isinstance(found, Problem) else found

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last step of the window, as places in ``log()``."""
        window, log = self.window or self.whole.window, self.log()
        assert window
        return log.at(window[0]), log.at(window[1])

    def replace(self, before: bytes, after: bytes) -> bytes:
        assert before in self.raw
        return self.raw.replace(before, after)

    def line(self, iteration: int) -> bytes:
        log = self.log()
        return log[log.at(iteration)]

    def compare(self, text: bytes) -> list[str]:
        """List the problems of a changed log, and where its reading differs from the recorded."""
        return [*self._differ(self.read(text))]

    def _differ(self, log: TrainingLog) -> Iterator[str]:
        whole = self.whole
        yield from (f"{problem.code}: {problem.message}" for problem in log.problems)
        for name in FIELDS:
            if getattr(log, name) != getattr(whole, name):
                yield f"{name} {getattr(log, name)}, not {getattr(whole, name)}"
        for kind, now, before in (
            ("header", log.config, whole.config),
            ("result", log.reported, whole.reported),
        ):
            if before and not now:
                yield f"{kind}: nothing"
                continue
            for name in dict.fromkeys((*before, *now)):
                if now.get(name) != before.get(name):
                    yield f"{kind}: {name} {now.get(name)}, not {before.get(name)}"
        found, true = self.measure(log), self.measure(whole)
        if found != true:
            yield "no throughput" if found is None else "another throughput"
        elif log.digest != whole.digest:
            yield "other evidence"


def _find(source: str, window: tuple[int, int] | None = None) -> Recorded:
    base = next(base for base in BASES if source in base.source)
    own = tuple(map(int, base.window.split(":"))) if base.window else None
    return Recorded(base, window or (None if own is None else (own[0], own[1])))


LOGS = {
    "pytorch": _find("be362d9_pytorch_gpu8"),
    "pytorch mpirun": _find("b150233_pytorch_gpu32"),
    "pytorch short": _find("8c650ff_pytorch_gpu8"),
    "benchmark": _find("be362d9_tf_gpu1"),
    "benchmark amp": _find("be362d9_tf_gpu8"),
    "benchmark mpirun": _find("45057af_tf_gpu32"),
    "nvlog": _find("37ea901_tf_gpu8"),
    "every tenth": _find("8c650ff_tf_gpu8"),
    "training": _find("1n1g_train_r50"),
    "rn50": _find("637bb9c_1n1g_rn50"),
    "rn50 amp": _find("638d8f4_1n1g_rn50"),
    "rn50 old": _find("v0.1.8_1n1g"),
    "bert": _find("638d8f4_1n1g_bert"),
    "gpt": _find("of_gpt_4n8d", (60, 100)),
    "all-reduce": _find("gloo_2ranks", (6, 25)),
}
# One log of each kind, over a window that its clock, rates or latencies measure.
KINDS = {
    "pytorch": LOGS["pytorch"],
    "pytorch mpirun": LOGS["pytorch mpirun"],
    "benchmark": _find("be362d9_tf_gpu1", (200, 300)),
    "nvlog": _find("37ea901_tf_gpu8", (200, 490)),
    "training": LOGS["training"],
    "rn50": LOGS["rn50"],
    "bert": LOGS["bert"],
    "gpt": LOGS["gpt"],
    "all-reduce": LOGS["all-reduce"],
}


def problems(log: TrainingLog, code: str) -> list[str]:
    """Return the messages of one code."""
    return [problem.message for problem in log.problems if problem.code == code]


def codes(log: TrainingLog) -> set[str]:
    return {problem.code for problem in log.problems}
