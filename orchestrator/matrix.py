"""From an experiment to its cases, and everything that makes them impossible."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Axes, CaseEntry, Exclusion, Experiment
from orchestrator.model.text import Contradiction, Scalar, nodes_and_gpus
from orchestrator.workloads import Workload

MOST_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class Point:
    """A case and the place in the playbook that asks for it."""

    path: tuple[str | int, ...]
    entry: CaseEntry
    case: Case


def contradictions(
    experiment: Experiment, workload: Workload, cluster: Cluster | None
) -> tuple[Contradiction, ...]:
    """Everything that makes this experiment impossible, all of it at once.

    Args:
        cluster: where it is to run; without one, only what needs none is judged.
    """
    found = [*experiment.contradictions(), *_params(experiment, workload.params)]
    trials = _count(experiment) * experiment.method.repeats
    if trials > MOST_TRIALS:
        found.append(
            Contradiction(
                ("grid",) if experiment.grid else ("cases",),
                f"{trials} trials; needed at most {MOST_TRIALS}",
            )
        )
    if found:
        return tuple(found)
    points = tuple(_points(experiment))
    found += _unused_exclusions(experiment)
    found += _doubles(points)
    for point in points:
        found += _arithmetic(point, workload)
        if cluster is not None:
            found += _room(point, workload, cluster)
    if not points:
        found.append(Contradiction(("exclude",), "every case is left out; needed at least one"))
    if cluster is not None and experiment.device is None:
        local = [node.name for node in cluster.members if node.transport == "local"]
        if local:
            found.append(
                Contradiction(
                    (),
                    f"node {local[0]} is local and no device is named; needed `device: cpu`"
                    " or `device: cuda`",
                )
            )
    return tuple(dict.fromkeys(found))


def cases(experiment: Experiment) -> tuple[Case, ...]:
    """The cases of an experiment without contradictions, in the playbook's order."""
    return tuple(point.case for point in _points(experiment))


def _count(experiment: Experiment) -> int:
    if experiment.grid is None:
        return len(experiment.cases or ())
    axes = experiment.grid
    sizes = [len(values) for _, values in axes if isinstance(values, tuple)]
    return math.prod([*sizes, *(len(values) for values in axes.params.values())])


def _points(experiment: Experiment) -> Iterator[Point]:
    for path, entry in _entries(experiment):
        if not any(_matches(exclusion, entry) for exclusion in experiment.exclude):
            yield Point(path, entry, _case(entry, experiment))


def _entries(experiment: Experiment) -> Iterator[tuple[tuple[str | int, ...], CaseEntry]]:
    for index, entry in enumerate(experiment.cases or ()):
        yield ("cases", index), entry
    if experiment.grid is not None:
        for entry in _product(experiment.grid):
            yield ("grid", "placement"), entry


def _product(axes: Axes) -> Iterator[CaseEntry]:
    """Every combination, placements fastest; parameters in the order of the file."""
    plain = ("precision", "micro_batch_size", "accumulation_steps")
    parallel = ("tensor_parallel", "pipeline_parallel")
    fields = (*plain, *parallel)
    values = (*(getattr(axes, field) for field in fields), *axes.params.values(), axes.placement)
    for point in itertools.product(*values):
        given = dict(zip((*fields, *axes.params, "placement"), point, strict=True))
        params = {name: given.pop(name) for name in axes.params}
        yield CaseEntry.model_validate({**given, "params": params})


def _matches(exclusion: Exclusion, entry: CaseEntry) -> bool:
    said = exclusion.model_dump(exclude_none=True, exclude={"params"})
    return all(getattr(entry, field) == value for field, value in said.items()) and all(
        entry.params.get(name) == value for name, value in exclusion.params.items()
    )


def _case(entry: CaseEntry, experiment: Experiment) -> Case:
    nodes, gpus = nodes_and_gpus(entry.placement)
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=entry.micro_batch_size,
        precision=entry.precision,
        device=experiment.device or "cuda",
        accumulation_steps=entry.accumulation_steps,
        tensor_parallel=entry.tensor_parallel,
        pipeline_parallel=entry.pipeline_parallel,
        params=tuple(sorted({**experiment.params, **entry.params}.items())),
    )


def _params(experiment: Experiment, model: type[BaseModel]) -> Iterator[Contradiction]:
    yield from _judged(("params",), experiment.params, model)
    for index, entry in enumerate(experiment.cases or ()):
        yield from _judged(("cases", index, "params"), entry.params, model)
    for name, values in (experiment.grid.params if experiment.grid else {}).items():
        if not values:
            yield Contradiction(("grid", "params", name), "an empty list; needed a value")
        for index, value in enumerate(values):
            for found in _judged(("grid", "params"), {name: value}, model):
                yield Contradiction((*found.path, index), found.text)


def _judged(
    path: tuple[str | int, ...], params: Mapping[str, Scalar], model: type[BaseModel]
) -> Iterator[Contradiction]:
    known = ", ".join(sorted(model.model_fields)) or "none"
    for name in params.keys() - model.model_fields.keys():
        yield Contradiction(
            (*path, name), f"unknown parameter {name!r}; this workload has: {known}"
        )
    try:
        model.model_validate({k: v for k, v in params.items() if k in model.model_fields})
    except ValidationError as error:
        by_name: dict[str, list[str]] = {}
        for problem in error.errors(include_url=False):
            by_name.setdefault(str(problem["loc"][0]), []).append(_plain(problem["msg"]))
        for name, needs in by_name.items():
            yield Contradiction((*path, name), f"got {params[name]!r}; {' or '.join(needs)}")


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should be", "needed")


def _unused_exclusions(experiment: Experiment) -> Iterator[Contradiction]:
    entries = [entry for _, entry in _entries(experiment)]
    for index, exclusion in enumerate(experiment.exclude):
        if not any(_matches(exclusion, entry) for entry in entries):
            yield Contradiction(("exclude", index), "no case agrees with it; needed one that does")


def _doubles(points: Sequence[Point]) -> Iterator[Contradiction]:
    seen: dict[Case, Point] = {}
    for point in points:
        if seen.setdefault(point.case, point) is not point:
            yield Contradiction(
                point.path, f"the case {point.case.placement} is there twice; needed each case once"
            )


def _arithmetic(point: Point, workload: Workload) -> Iterator[Contradiction]:
    case, entry = point.case, point.entry
    parts = case.tensor_parallel * case.pipeline_parallel
    if case.world_size % parts:
        yield Contradiction(
            point.path,
            f"{case.placement}: {case.world_size} ranks cannot be split into tensor"
            f" {case.tensor_parallel} x pipeline {case.pipeline_parallel}",
        )
    elif entry.data_parallel not in (None, case.data_parallel):
        yield Contradiction(
            (*point.path, "data_parallel"),
            f"data {entry.data_parallel} x tensor {case.tensor_parallel} x pipeline"
            f" {case.pipeline_parallel} is not {case.world_size} ranks;"
            f" needed data_parallel {case.data_parallel}",
        )
    for field in ("accumulation_steps", "tensor_parallel", "pipeline_parallel"):
        if getattr(case, field) != 1 and field not in workload.axes:
            yield Contradiction(
                point.path,
                f"{case.placement}: {field} {getattr(case, field)};"
                f" workload {workload.name} can only do 1",
            )


def _room(point: Point, workload: Workload, cluster: Cluster) -> Iterator[Contradiction]:
    case, members = point.case, cluster.members
    if case.nodes > len(members):
        yield Contradiction(
            point.path,
            f"{case.placement} asks for {case.nodes} nodes;"
            f" inventory {cluster.name} has {len(members)}",
        )
    for node in members[: case.nodes]:
        has = len(node.usable_gpus)
        if case.device == "cuda" and has < case.gpus_per_node:
            yield Contradiction(
                point.path,
                f"{case.placement} asks for {case.gpus_per_node} GPUs on node {node.name};"
                f" inventory {cluster.name} lets it use {has}",
            )
        for name in workload.data:
            if name not in node.data:
                yield Contradiction(
                    (),
                    f"workload {workload.name} reads the data set {name!r};"
                    f" needed data.{name} for node {node.name} in inventory {cluster.name}",
                )
