"""From an experiment to its plan: every trial in order, bound to no node."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator import errors, nodeset
from orchestrator.model.case import Case, distinctions
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment, Method
from orchestrator.model.image import Program
from orchestrator.model.plan import Plan, Trial
from orchestrator.planning import matrix
from orchestrator.workloads import Workload


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that a plan is made of; the whole inventory also where --nodes is given."""

    name: str
    experiment: Experiment
    workload: Workload
    cluster: Cluster
    program: Program


def build(recipe: Recipe) -> Plan:
    """Plan an experiment without conflicts: every repeat of every case, and the canary.

    Trials come repeat by repeat, so that a drift of the machines spreads over all cases.
    """
    workload, cases = recipe.workload, matrix.cases(recipe.experiment)
    stems = _stems(cases, workload)
    trials = [
        Trial(
            name=f"{case.token}-{stem}_{repeat}",
            repeat=repeat,
            case=case,
            log=f"{case.token}/{stem}_{repeat}.log",
            ordinal=0,
            log_rank=case.nodes - 1 if workload.log_node == "last" else 0,
            name_of_case=workload.case_name(case) if workload.case_name else "",
        )
        for repeat in range(1, recipe.experiment.method.most + 1)
        for case, stem in zip(cases, stems, strict=True)
    ]
    return Plan(
        experiment=recipe.name,
        workload=workload.name,
        image=recipe.experiment.image,
        image_digest=recipe.program.digest,
        cluster=recipe.cluster.name,
        method=recipe.experiment.method,
        trials=tuple(
            replace(trial, ordinal=ordinal)
            for ordinal, trial in enumerate(_with_canary(trials, recipe.experiment.method))
        ),
    )


def _with_canary(trials: Sequence[Trial], method: Method) -> tuple[Trial, ...]:
    watch = method.watch
    if watch is None:
        return tuple(trials)
    fitting = [
        trial
        for trial in trials
        if trial.repeat == 1
        and any(
            nodeset.fits(name, watch.case or "*")
            for name in (trial.case.placement, trial.name_of_case)
        )
    ]
    model = min(fitting, key=lambda trial: trial.case.world_size)
    stem = model.log.removesuffix("_1.log")
    certain = sum(trial.repeat <= method.least for trial in trials)
    places = {"start": 0, "middle": certain // 2, "end": len(trials)}
    numbered = {places[it]: (number, it) for number, it in enumerate(places, 1) if it in watch.at}
    whole = list(trials)
    for index, (number, place) in sorted(numbered.items(), reverse=True):
        name = f"canary-{model.name.removesuffix('_1')}_{number}"
        log = f"canary/{stem}_{number}.log"
        canary = replace(model, name=name, repeat=number, log=log, canary=place)
        whole.insert(index, canary)
    return tuple(whole)


def repeated(recipe: Recipe, repeats: int) -> Recipe:
    """Return the recipe with other repeats; where cases may need fewer, the number is a maximum."""
    method = recipe.experiment.method.with_most(repeats)
    return replace(recipe, experiment=recipe.experiment.model_copy(update={"method": method}))


def select(trials: Sequence[Trial], given: Sequence[str]) -> tuple[Trial, ...]:
    """Return the trials of --case: ``2x*``, ``4n8g-*``, or the name of a case; and canaries.

    Args:
        given: patterns, split at commas except in the name of a case with a comma; none for all.

    Raises:
        UsageError: NO-CASE; a pattern matches no case.
    """
    names = {
        trial: (trial.case.placement, trial.name, trial.name_of_case or trial.name)
        for trial in trials
        if not trial.canary
    }
    known = set(itertools.chain(*names.values()))
    words = ((text,) if text in known else text.split(",") for text in given)
    patterns = [word.strip() for text in words for word in text]
    if unfit := [word for word in patterns if not any(nodeset.fits(name, word) for name in known)]:
        first = next(iter(names))
        cases = dict.fromkeys(trial.name_of_case or trial.case.placement for trial in names)
        raise errors.UsageError(
            f"no case matches {', '.join(map(repr, unfit))}; there are {', '.join(cases)}",
            code="NO-CASE",
            fix=f"a pattern of these names, of placements such as {first.case.placement}, or of"
            f" names of trials such as {first.name}",
        )
    return tuple(
        trial
        for trial in trials
        if trial.canary
        or not patterns
        or any(nodeset.fits(name, word) for name in names[trial] for word in patterns)
    )


def _stems(points: Sequence[Case], workload: Workload) -> tuple[str, ...]:
    """Name logs in DLPerf's form; where two would be equal, append the differing parameters."""
    stems = [
        workload.stem(case)
        if workload.stem
        else f"{workload.log_prefix}_b{case.micro_batch_size}_{case.precision}"
        for case in points
    ]
    taken = Counter(zip((case.token for case in points), stems, strict=True))
    if max(taken.values(), default=0) < 2:
        return tuple(stems)
    distinct = [
        "-".join((stem, *words)) for stem, words in zip(stems, distinctions(points), strict=True)
    ]
    if len({*zip((case.token for case in points), distinct, strict=True)}) == len(distinct):
        return tuple(distinct)
    # File names hold letters and digits only: 1e-22 and 1e+22 look the same there.
    return tuple(f"{stem}-case{place}" for place, stem in enumerate(distinct, 1))
