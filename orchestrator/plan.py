"""From an experiment and a cluster to the plan that is shown and then run."""

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from orchestrator import matrix
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster, Node
from orchestrator.model.experiment import Experiment
from orchestrator.model.facts import JSON
from orchestrator.model.image import Program
from orchestrator.model.plan import Placement, Plan, Seat, Task, TrialPlan
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload

FIRST_PORT, PORTS = 20_000, 10_000  # below the ports that Linux gives to outgoing connections


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that a plan is made of."""

    name: str
    experiment: Experiment
    workload: Workload
    cluster: Cluster
    program: Program


def build(recipe: Recipe) -> Plan:
    """The plan of an experiment without contradictions: every repeat of every case.

    Trials come repeat by repeat, so that a drift of the machines spreads over all cases.
    """
    cases = matrix.cases(recipe.experiment)
    stems = _stems(cases, recipe.workload)
    points = [
        (repeat, case, stem)
        for repeat in range(1, recipe.experiment.method.repeats + 1)
        for case, stem in zip(cases, stems, strict=True)
    ]
    return Plan(
        experiment=recipe.name,
        workload=recipe.workload.name,
        image=recipe.experiment.image,
        image_digest=recipe.program.digest,
        cluster=recipe.cluster.name,
        method=recipe.experiment.method,
        trials=tuple(
            _trial(recipe, case, repeat, f"{stem}_{repeat}", _port(recipe.workload, case, ordinal))
            for ordinal, (repeat, case, stem) in enumerate(points)
        ),
    )


def inputs(recipe: Recipe) -> dict[str, JSON]:
    """Everything that must stay the same for two runs to be one sweep, as plain data.

    How often cases are repeated is not among it on purpose: more repeats extend a sweep. What the
    playbook itself says of repeats is, since an edited playbook starts a new one.
    """
    once = recipe.experiment.model_copy(
        update={"method": recipe.experiment.method.model_copy(update={"repeats": 1})}
    )
    tasks: dict[str, JSON] = {
        trial.name: [
            {"node": task.node, "argv": list(task.argv), "env": dict(task.env)}
            for task in trial.tasks
        ]
        for trial in build(replace(recipe, experiment=once)).trials
    }
    return {
        "experiment": recipe.experiment.model_dump(mode="json"),
        "cluster": recipe.cluster.model_dump(mode="json", exclude_none=True),
        "image_digest": recipe.program.digest,
        "tasks": tasks,
    }


def repeated(recipe: Recipe, repeats: int) -> Recipe:
    """The same recipe with another number of repeats."""
    method = recipe.experiment.method.model_copy(update={"repeats": repeats})
    return replace(recipe, experiment=recipe.experiment.model_copy(update={"method": method}))


def patterns(trials: Iterable[TrialPlan], given: Iterable[str]) -> tuple[str, ...]:
    """What ``given`` asks for, split at commas; what is a name as it stands stays whole."""
    names = {name for trial in trials for name in _names(trial)}
    words = ((text,) if text in names else text.split(",") for text in given)
    return tuple(word.strip() for each in words for word in each)


def selected(trials: Iterable[TrialPlan], wanted: Sequence[str]) -> tuple[TrialPlan, ...]:
    """The trials that any of the patterns fits: ``2x*``, ``4n8g-*``, or a case's own name.

    Args:
        wanted: empty for all.
    """
    return tuple(
        trial
        for trial in trials
        if not wanted
        or any(
            name == pattern or fnmatch.fnmatchcase(name, pattern)
            for name in _names(trial)
            for pattern in wanted
        )
    )


def _names(trial: TrialPlan) -> tuple[str, ...]:
    return (trial.case.placement, trial.name, trial.name_of_case or trial.name)


def port_after(first: int, steps: int) -> int:
    """The port that comes ``steps`` after ``first``, round the range that we take ports from."""
    return first if steps == 0 else FIRST_PORT + (first - FIRST_PORT + steps) % PORTS


def at_port(recipe: Recipe, trial: TrialPlan, port: int) -> TrialPlan:
    """The same trial, its ranks meeting at another port of the leader."""
    return replace(trial, port=port, tasks=_tasks(recipe, trial.case, port))


def _port(workload: Workload, case: Case, ordinal: int) -> int:
    first = workload.port(case)
    return first if workload.fixed_port(case) else port_after(first, ordinal)


def _trial(recipe: Recipe, case: Case, repeat: int, stem: str, port: int) -> TrialPlan:
    return TrialPlan(
        name=f"{case.token}-{stem}",
        repeat=repeat,
        case=case,
        log=f"{case.token}/{stem}.log",
        port=port,
        tasks=_tasks(recipe, case, port),
        log_rank=case.nodes - 1 if recipe.workload.log_node == "last" else 0,
        name_of_case=recipe.workload.case_name(case) if recipe.workload.case_name else "",
    )


def _tasks(recipe: Recipe, case: Case, port: int) -> tuple[Task, ...]:
    workload = recipe.workload
    placement = _placement(case, recipe.cluster, recipe.program, port)
    command = workload.command(case, recipe.experiment.method, placement)
    return tuple(
        Task(
            node=seat.node,
            node_rank=node_rank,
            argv=start.argv,
            env=workload.env(case, placement, seat),
            mounts=workload.mounts(case, seat),
            gpus=seat.gpus,
            service=start.service,
            files=start.files,
            capabilities=start.capabilities,
        )
        for node_rank, (seat, start) in enumerate(
            zip(placement.seats, workload.launcher(command, placement), strict=True)
        )
    )


def _placement(case: Case, cluster: Cluster, program: Program, port: int) -> Placement:
    return Placement(
        seats=tuple(_seat(node, case) for node in cluster.members[: case.nodes]),
        gpus_per_node=case.gpus_per_node,
        port=port,
        code=program.code,
        python=program.python,
    )


def _seat(node: Node, case: Case) -> Seat:
    gpus: tuple[int, ...] = ()
    if case.device == "cuda":
        gpus = node.usable_gpus[: case.gpus_per_node]
    return Seat(
        node=node.name,
        address=node.address,
        gpus=gpus,
        interface=node.interface,
        hcas=tuple(hca.name for hca in node.hcas),
        data=node.data,
    )


def _stems(points: Sequence[Case], workload: Workload) -> tuple[str, ...]:
    """Log names in DLPerf's form; where two would be one, what tells the cases apart is added."""
    stem = workload.stem or partial(_common_stem, workload.log_prefix)
    stems = [stem(case) for case in points]
    taken = Counter(zip((case.token for case in points), stems, strict=True))
    if max(taken.values(), default=0) < 2:
        return tuple(stems)
    documents = [case.document() for case in points]
    fixed = {"placement", "nodes", "gpus_per_node", "world_size", "precision", "micro_batch_size"}
    fixed |= {"global_batch_size", "data_parallel"}
    names = dict.fromkeys(name for document in documents for name in document)
    varying = [
        name
        for name in names
        if name not in fixed and len({document.get(name) for document in documents}) > 1
    ]
    told = [
        stem + "".join(_told_apart(name, document) for name in varying if name in document)
        for stem, document in zip(stems, documents, strict=True)
    ]
    if len({*zip((case.token for case in points), told, strict=True)}) == len(told):
        return tuple(told)
    # File names hold letters and digits only: 1e-22 and 1e+22 look the same there.
    return tuple(f"{stem}-case{place}" for place, stem in enumerate(told, 1))


def _common_stem(prefix: str, case: Case) -> str:
    return f"{prefix}_b{case.micro_batch_size}_{case.precision}"


def _told_apart(name: str, document: Mapping[str, Scalar]) -> str:
    word = f"{name.removeprefix('params.')}{document[name]}"
    return "-" + re.sub(r"[^A-Za-z0-9.]", "", word)
