"""The trials of a sweep in the order in which lanes begin them, as outcomes come in."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.measuring import settling
from orchestrator.measuring.settling import Series
from orchestrator.model.case import Case
from orchestrator.model.plan import Plan, Trial

LOOK_S = 0.2  # between two looks whether the sweep is to end, while a lane waits for another


@dataclass(frozen=True, slots=True)
class Ears:
    """What a feed asks and tells.

    Args:
        may_begin: once false, a lane that waits is given nothing more.
        say: given a line for each case that has settled, and how many trials it needs no more.
    """

    may_begin: Callable[[], bool]
    say: Callable[[str, int], None]


class Feed(Iterator[Trial]):
    """Requested trials, each given once; waits where what runs decides which one is next.

    Args:
        whole: every trial requested of the sweep so far; the first trials of a case decide over
            later ones, whichever command ran them.
        value: what a trial's valid outcome gave; None where it has none.
    """

    def __init__(
        self,
        whole: Plan,
        trials: Sequence[Trial],
        value: Callable[[Trial], float | None],
        ears: Ears,
    ) -> None:
        self._series, self._value, self._ears = Series.of(whole), value, ears
        deciding = trials if isinstance(whole.method.repeats, int) else whole.trials
        self._values = {trial.name: value(trial) for trial in deciding}
        self._pending = [trial for trial in trials if self._values[trial.name] is None]
        self._running: list[Trial] = []
        self._changed = threading.Condition()
        self._drop_settled()

    def __next__(self) -> Trial:
        with self._changed:
            while True:
                following = settling.following(
                    self._pending, self._running, self._series, self._values
                )
                if following.trial is not None:
                    self._pending.remove(following.trial)
                    self._running.append(following.trial)
                    return following.trial
                if not following.waits or not self._ears.may_begin():
                    raise StopIteration
                self._changed.wait(LOOK_S)

    @contextlib.contextmanager
    def ending(self, trial: Trial) -> Iterator[None]:
        """Take in afterwards how a trial ended that was given."""
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(trial)
                self._changed.notify_all()  # they look once this lane has let go
                self._values[trial.name] = self._value(trial)
                self._drop_settled()

    def _drop_settled(self) -> None:
        """Leave out what is not needed any more, and say so."""
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
                self._ears.say(f"{name}: {settling.words_of(totals)}", len(trials))
