"""The trials of a canary: one case measured at a sweep's start, middle and end, beside the plan."""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from orchestrator.model.experiment import Canary, Method
from orchestrator.model.plan import Trial
from orchestrator.model.text import Conflict


def with_canary(trials: Sequence[Trial], method: Method) -> tuple[Trial, ...]:
    """Insert the trials of the method's canary, if it has one.

    Args:
        trials: of all cases, repeat by repeat.
    """
    watch = method.watch
    if watch is None:
        return tuple(trials)
    fitting = [
        trial
        for trial in trials
        if trial.repeat == 1 and fits(watch, (trial.case.placement, trial.name_of_case))
    ]
    model = min(fitting, key=lambda trial: trial.case.world_size)
    stem = model.log.removesuffix("_1.log")
    certain = sum(trial.repeat <= method.least for trial in trials)
    places = {"start": 0, "middle": certain // 2, "end": len(trials)}
    canaries = {
        places[place]: replace(
            model,
            name=f"canary-{model.name.removesuffix('_1')}_{number}",
            repeat=number,
            log=f"canary/{stem}_{number}.log",
            canary=place,
        )
        for number, place in enumerate(places, 1)
        if place in watch.at
    }
    whole = list(trials)
    for index in sorted(canaries, reverse=True):
        whole.insert(index, canaries[index])
    return tuple(whole)


def fits(watch: Canary, names: Iterable[str]) -> bool:
    """Return True if a case with these names may be the canary."""
    pattern = watch.case or "*"
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in names)


def conflicts(watch: Canary | None, names: Sequence[Iterable[str]]) -> Iterator[Conflict]:
    """Yield a pattern that fits no case.

    Args:
        names: of each case: its placement, and its own name where it has one.
    """
    if watch is not None and names and not any(fits(watch, own) for own in names):
        text = f"{watch.case!r} is no case; needed a placement or name of one, maybe with `*`"
        yield Conflict(("method", "canary", "case"), text)
