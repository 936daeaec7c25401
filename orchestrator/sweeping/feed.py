"""Choose the trial that a free lane begins next, by the outcomes so far."""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from orchestrator.measuring import settling
from orchestrator.measuring.settling import Series
from orchestrator.model.case import Case
from orchestrator.model.plan import Plan, Trial
from orchestrator.planning.packing import Packing

LOOK_S = 0.2  # between two looks whether the sweep is to end, while a lane waits for another


class Feed(Iterator[Trial]):
    """Give each requested trial once; wait where a running trial decides which one is next.

    Args:
        whole: every trial requested of the sweep so far; the first trials of a case decide over
            later ones, whichever command ran them.
        packing: what may run beside what, and in which order, by how long a trial of a case lasts.
        value: the throughput of a trial's valid outcome; None without one.
        may_begin: once false, a lane that waits is given nothing more.
        say: given a line per case that has settled, and how many trials it needs no more.
    """

    def __init__(
        self,
        whole: Plan,
        trials: Sequence[Trial],
        value: Callable[[Trial], float | None],
        packing: Callable[[Mapping[Case, float]], Packing],
        may_begin: Callable[[], bool],
        say: Callable[[str, int], None],
    ) -> None:
        self._series, self._value = Series(whole), value
        self._may_begin, self._say = may_begin, say
        deciding = trials if isinstance(whole.method.repeats, int) else whole.trials
        self._values = {trial.name: value(trial) for trial in deciding}
        self._pending = [trial for trial in trials if self._values[trial.name] is None]
        self._packing = packing
        self._running: dict[Trial, float] = {}  # when each began
        self._lasted_s: dict[Case, list[float]] = defaultdict(list)
        self._changed = threading.Condition()
        self._drop_settled()

    def __next__(self) -> Trial:
        with self._changed:
            while self._may_begin():
                trial = self._following()
                if trial is not None:
                    self._pending.remove(trial)
                    self._running[trial] = time.monotonic()
                    return trial
                if not (self._pending and self._running):
                    break
                self._changed.wait(LOOK_S)
            raise StopIteration

    @contextlib.contextmanager
    def ending(self, trial: Trial) -> Iterator[None]:
        """Record the outcome of a trial when the block ends."""
        try:
            yield
        finally:
            with self._changed:
                lasted_s = time.monotonic() - self._running.pop(trial)
                self._changed.notify_all()  # they look once this lane has let go
                self._values[trial.name] = self._value(trial)
                if self._values[trial.name] is not None:
                    self._lasted_s[trial.case].append(lasted_s)
                self._drop_settled()

    def _following(self) -> Trial | None:
        now = time.monotonic()
        running = {trial: now - began for trial, began in self._running.items()}
        ready = self._series.ready(self._pending, running, self._values)
        lasted_s = {case: fmean(seconds) for case, seconds in self._lasted_s.items()}
        return self._packing(lasted_s).next(ready, running)

    def _drop_settled(self) -> None:
        """Drop trials that are not needed any more, with a line per case."""
        rests = self._series.not_needed(self._values)
        by_case: dict[Case, list[Trial]] = {}
        for trial in self._pending:
            if trial.name in rests:
                by_case.setdefault(trial.case, []).append(trial)
        self._pending = [trial for trial in self._pending if trial.name not in rests]
        for case, trials in by_case.items():
            totals = self._series.settled(case, self._values)
            if totals is not None:
                name = trials[0].name.rpartition("_")[0]
                self._say(f"{name}: {settling.describe(totals)}", len(trials))
