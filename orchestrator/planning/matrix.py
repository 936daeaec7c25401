"""From an experiment to its cases, and the errors in a playbook that make cases impossible."""

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import BaseModel, ValidationError

from orchestrator import documents, nodeset
from orchestrator.launchers import mpirun
from orchestrator.model.case import AXES, Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Canary, Exclusion, Experiment
from orchestrator.model.text import Conflict, Scalar
from orchestrator.planning import environment
from orchestrator.workloads import Workload

MOST_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class Point:
    """A case, the place in the playbook that asks for it, and the replicas written there."""

    path: tuple[str | int, ...]
    case: Case
    data_parallel: int | None = None

    def conflict(self, text: str) -> Conflict:
        """Return an error about the case."""
        return Conflict(self.path, f"{self.case.placement}: {text}")


def conflicts(
    experiment: Experiment,
    workload: Workload,
    cluster: Cluster | None,
    chosen: Collection[Case] | None = None,
) -> tuple[Conflict, ...]:
    """List all errors of an experiment, each once; ``chosen`` cases are to run on the cluster."""
    conflicts = [*environment.refused(experiment.env)]
    conflicts += _check_method(experiment, workload, cluster)
    conflicts += _check_all_params(experiment, workload.params)
    trials = _count(experiment) * experiment.method.most
    if trials > MOST_TRIALS:
        path = ("grid",) if experiment.grid else ("cases",)
        text = f"{trials} trials; needed at most {MOST_TRIALS}"
        return (*conflicts, Conflict(path, text))
    every = [*_list_points(experiment)]
    for index, exclusion in enumerate(experiment.exclude):
        if not any(_matches(exclusion, point.case) for point in every):
            text = "no case matches it; needed one that does"
            conflicts.append(Conflict(("exclude", index), text))
    points, written = [*places(experiment)], set[Case]()
    if every and not points:
        conflicts.append(Conflict(("exclude",), "every case is left out; needed at least one"))
    for point in points:
        case = point.case
        if point.path[0] == "cases" and case in written:
            text = f"the case {case.placement} is there twice; needed each case once"
            conflicts.append(Conflict(point.path, text))
        written.add(case)
        conflicts += _check_arithmetic(point, workload)
        missing = [
            point.conflict(f"the workload needs params.{name}")
            for name, field in workload.params.model_fields.items()
            if field.is_required() and name not in case.given
        ]
        conflicts += missing
        if not missing and not any(_check_params((), case.given, workload.params)):
            texts = workload.unsupported(case, experiment.method)  # which reads the parameters
            conflicts += map(point.conflict, texts)
            conflicts += environment.find_conflicts(case, workload, experiment, cluster)
    conflicts += _check_canary(experiment.method.watch, points, workload)
    if cluster is not None:
        running = [point for point in points if chosen is None or point.case in chosen]
        conflicts += _check_nodes(running, workload, cluster)
    return tuple(dict.fromkeys(conflicts))


def cases(experiment: Experiment) -> tuple[Case, ...]:
    """Return the cases of an experiment without conflicts, in the playbook's order."""
    return tuple(point.case for point in places(experiment))


def add_placement(experiment: Experiment, like: str, placement: str) -> Experiment:
    """Repeat an experiment's cases of one placement in another placement too."""
    written, grid = experiment.cases or (), experiment.grid
    more = [
        entry.model_copy(update={"placement": placement})
        for entry in written
        if entry.placement == like
    ]
    if grid and like in grid.placement:
        grid = grid.model_copy(update={"placement": (*grid.placement, placement)})
    return experiment.model_copy(update={"cases": (*written, *more) or None, "grid": grid})


def _count(experiment: Experiment) -> int:
    written, axes = len(experiment.cases or ()), experiment.grid
    if axes is None:
        return written
    sizes = [len(values) for _, values in axes if isinstance(values, tuple)]
    return written + math.prod([*sizes, *(len(values) for values in axes.params.values())])


def places(experiment: Experiment) -> Iterator[Point]:
    """Yield the cases of an experiment and their places in the playbook."""
    for point in _list_points(experiment):
        if not any(_matches(exclusion, point.case) for exclusion in experiment.exclude):
            yield point


def _list_points(experiment: Experiment) -> Iterator[Point]:
    """Yield written cases, then every combination of the grid, placements fastest."""

    def build(placement: str, settings: Iterable[Any], params: Mapping[str, Scalar]) -> Case:
        nodes, gpus = map(int, placement.split("x"))
        return Case(
            nodes=nodes,
            gpus_per_node=gpus,
            device=experiment.device or "cuda",
            params=tuple(sorted({**experiment.params, **params}.items())),
            **dict(zip(fields, settings, strict=True)),
        )

    fields = ("precision", "micro_batch_size", *AXES)
    for index, entry in enumerate(experiment.cases or ()):
        settings = [getattr(entry, field) for field in fields]
        case = build(entry.placement, settings, entry.params)
        yield Point(("cases", index), case, entry.data_parallel)
    if axes := experiment.grid:
        values = [getattr(axes, field) for field in fields]
        placements = enumerate(axes.placement)
        for *row, (index, placement) in product(*values, *axes.params.values(), placements):
            params = dict(zip(axes.params, row[len(fields) :], strict=True))
            case = build(placement, row[: len(fields)], params)
            yield Point(("grid", "placement", index), case)


def _matches(exclusion: Exclusion, case: Case) -> bool:
    excluded = exclusion.model_dump(exclude_none=True, exclude={"params"})
    return all(getattr(case, field) == value for field, value in excluded.items()) and all(
        case.given.get(name) == value for name, value in exclusion.params.items()
    )


def _check_all_params(experiment: Experiment, model: type[BaseModel]) -> Iterator[Conflict]:
    yield from _check_params(("params",), experiment.params, model)
    for index, entry in enumerate(experiment.cases or ()):
        yield from _check_params(("cases", index, "params"), entry.params, model)
    for name, values in (experiment.grid.params if experiment.grid else {}).items():
        for index, value in enumerate(values):
            for conflict in _check_params(("grid", "params"), {name: value}, model):
                yield Conflict((*conflict.path, index), conflict.text)


def _check_params(
    path: tuple[str | int, ...], params: Mapping[str, Scalar], model: type[BaseModel]
) -> Iterator[Conflict]:
    try:
        model.model_validate(dict(params))
    except ValidationError as error:
        for where, text, _ in documents.misfits(error, dict(params), model, path):
            if where:  # what is missing here may be given elsewhere
                yield Conflict((*path, *where), text)


def _check_arithmetic(point: Point, workload: Workload) -> Iterator[Conflict]:
    case, written = point.case, point.data_parallel
    split = f"tensor {case.tensor_parallel} x pipeline {case.pipeline_parallel}"
    if case.world_size % case.ranks_per_replica:
        yield point.conflict(f"{case.world_size} ranks cannot be split into {split}")
    elif written not in (None, case.data_parallel):
        yield Conflict(
            (*point.path, "data_parallel"),
            f"data {written} x {split} is not {case.world_size} ranks;"
            f" needed data_parallel {case.data_parallel}",
        )
    if case.precision not in workload.precisions:
        needed = f"workload {workload.name} needs {' or '.join(sorted(workload.precisions))}"
        yield point.conflict(f"precision {case.precision}; {needed}")
    for name, value in case.axes.items():
        if value != 1 and name not in workload.axes:
            yield point.conflict(f"{name} {value}; workload {workload.name} can only do 1")


def _check_canary(
    watch: Canary | None, points: Sequence[Point], workload: Workload
) -> Iterator[Conflict]:
    if watch is None or watch.case is None or not points:
        return
    for case in (point.case for point in points):
        names = [case.placement]
        if workload.case_name:
            with contextlib.suppress(KeyError, ValueError):  # a missing parameter is another error
                names.append(workload.case_name(case))
        if any(nodeset.fits(name, watch.case) for name in names):
            return
    text = f"{watch.case!r} is no case; needed a placement or name of one, maybe with `*`"
    yield Conflict(("method", "canary", "case"), text)


def _check_method(
    experiment: Experiment, workload: Workload, cluster: Cluster | None
) -> Iterator[Conflict]:
    """Yield a rule, a window or a device that the workload's program does not serve."""
    method = experiment.method
    if method.rule is not None and method.rule not in workload.rules:
        yield Conflict(
            ("method", "rule"),
            f"{method.rule}; logs of {workload.name} can be measured by"
            f" {' or '.join(sorted(workload.rules))}",
        )
    shown = workload.last_iteration(method.iterations)
    if method.window is not None and method.window[1] > shown:
        first, last = method.window
        yield Conflict(
            ("method", "window"),
            f"[{first}, {last}] with iterations: {method.iterations}, of which {workload.name}"
            f" logs up to {shown}; needed a window that ends by then",
        )
    path, device = (("device",), experiment.device) if experiment.device else ((), "cuda")
    if device not in workload.devices:
        can = " or ".join(sorted(workload.devices))
        text = f"workload {workload.name} cannot compute on {device}; needed `device: {can}`"
        yield Conflict(path, text)
    local = [node.name for node in cluster.members if node.is_here] if cluster else []
    if local and experiment.device is None:
        seen = f"node {local[0]} is local and no device is named"
        yield Conflict((), f"{seen}; needed `device: cpu` or `device: cuda`")


def _check_nodes(
    points: Sequence[Point], workload: Workload, cluster: Cluster
) -> Iterator[Conflict]:
    """Yield an error for each case that too few nodes fit, and for what those lack."""
    members = cluster.members
    far = [node for node in members if ":" in node.address]
    # `mpirun -H` cuts fd00::1 at its colons, and refuses brackets: seen with Open MPI 4.1.4.
    takes_ipv6 = workload.ipv6 and workload.launcher is not mpirun.launch
    for point in points:
        if point.case.nodes > len(members):
            yield Conflict(
                point.path,
                f"{point.case.placement} asks for {point.case.nodes} nodes;"
                f" inventory {cluster.name} has {len(members)}; `--case` runs the others",
            )
        if far and not takes_ipv6 and point.case.nodes > 1:
            yield point.conflict(
                f"workload {workload.name} takes no IPv6 addresses, as {far[0].address} of node"
                f" {far[0].name}; needed IPv4 in inventory {cluster.name}"
            )
    without: dict[str, list[str]] = {}
    for point in points:
        data = workload.data(point.case)
        gpus = point.case.gpus_per_node if point.case.device == "cuda" else 0
        weak = {node.name for node in members if len(node.usable_gpus) < gpus}
        unfit = [node for node in members if node.name in weak or {*data} - {*node.data}]
        unfit = unfit[: max(point.case.nodes - (len(members) - len(unfit)), 0)]
        for name in data:
            lacking = [node.name for node in unfit if name not in node.data]
            without[name] = [*without.get(name, ()), *lacking]
        if few := [node for node in unfit if node.name in weak]:
            most = max(len(node.usable_gpus) for node in few)
            yield Conflict(
                point.path,
                f"{point.case.placement} asks for {gpus} GPUs; inventory {cluster.name} lets"
                f" {nodeset.fold(node.name for node in few)} use at most {most}",
            )
    for name, names in ((name, names) for name, names in without.items() if names):
        yield Conflict(
            ("workload",),
            f"workload {workload.name} reads the data set {name!r}; needed data.{name} for"
            f" {nodeset.fold(names)} in inventory {cluster.name}",
        )
