"""The trials of a canary: one case measured at a sweep's start, middle and end, beside the plan."""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from orchestrator.model.case import Case
from orchestrator.model.experiment import Canary, Method
from orchestrator.model.plan import Trial
from orchestrator.model.text import Conflict

FOLDER = "canary"
PLACES = ("start", "middle", "end")


def with_canary(trials: Sequence[Trial], method: Method) -> tuple[Trial, ...]:
    """Insert the trials of the method's canary, if it has one.

    Args:
        trials: of all cases, repeat by repeat.
    """
    watch = method.watch
    if watch is None:
        return tuple(trials)
    first = [trial for trial in trials if trial.repeat == 1]
    fitting = (it for it in first if fits(watch, (it.case.placement, it.name_of_case)))
    case = smallest([trial.case for trial in fitting])
    model = next(trial for trial in first if trial.case == case)
    certain = sum(trial.repeat <= method.least for trial in trials)
    before = {"start": 0, "middle": certain // 2, "end": len(trials)}
    return tuple(_among(trials, {before[place]: _trial(model, place) for place in watch.at}))


def smallest(cases: Sequence[Case]) -> Case:
    """Return the case of the fewest ranks, the first of several."""
    return min(cases, key=lambda case: case.world_size)


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


def _trial(model: Trial, place: str) -> Trial:
    number = PLACES.index(place) + 1
    stem = model.log.removesuffix("_1.log")
    return replace(
        model,
        name=f"{FOLDER}-{model.name.removesuffix('_1')}_{number}",
        repeat=number,
        log=f"{FOLDER}/{stem}_{number}.log",
        canary=place,
    )


def _among(trials: Sequence[Trial], canaries: dict[int, Trial]) -> Iterator[Trial]:
    for place in range(len(trials) + 1):
        if place in canaries:
            yield canaries[place]
        yield from trials[place : place + 1]
