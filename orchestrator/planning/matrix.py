"""From an experiment to its cases, and the errors in a playbook that make cases impossible."""

import contextlib
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from orchestrator import documents, nodeset, words
from orchestrator.launchers import mpirun
from orchestrator.model.case import AXES, Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Axes, Canary, CaseEntry, Exclusion, Experiment, Method
from orchestrator.model.text import Conflict, Scalar
from orchestrator.planning import environment
from orchestrator.workloads import Workload

MOST_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class Point:
    """A case and the place in the playbook that asks for it."""

    path: tuple[str | int, ...]
    entry: CaseEntry
    case: Case


def conflicts(
    experiment: Experiment,
    workload: Workload,
    cluster: Cluster | None,
    chosen: Collection[Case] | None = None,
) -> tuple[Conflict, ...]:
    """List all errors of an experiment, each once.

    Args:
        cluster: where it is to run; None leaves out what depends on a cluster.
        chosen: the cases that are to run there; None for all.
    """
    conflicts = [*environment.refused(experiment.env)]
    conflicts += _method(experiment.method, workload)
    conflicts += _params(experiment, workload.params)
    trials = _count(experiment) * experiment.method.most
    if trials > MOST_TRIALS:
        path = ("grid",) if experiment.grid else ("cases",)
        text = f"{trials} trials; needed at most {MOST_TRIALS}"
        return (*conflicts, Conflict(path, text))
    points = tuple(places(experiment))
    conflicts += [*_exclusions(experiment), *_find_doubled_values(experiment.grid)]
    written: set[Case] = set()
    for point in points:
        if point.path[0] == "cases" and point.case in written:
            text = f"the case {point.case.placement} is there twice; needed each case once"
            conflicts.append(Conflict(point.path, text))
        written.add(point.case)
        conflicts += _arithmetic(point, workload)
        unfit = [*_missing(point, workload.params)]
        conflicts += unfit
        unfit += _check_params((), dict(point.case.given), workload.params)
        if not unfit:  # the workload reads its parameters
            texts = workload.unsupported(point.case, experiment.method)
            conflicts += [Conflict(point.path, f"{point.case.placement}: {it}") for it in texts]
            conflicts += environment.find_conflicts(point.case, workload, experiment, cluster)
    conflicts += _device(experiment, workload, cluster)
    conflicts += _canary(experiment.method.watch, points, workload)
    if cluster is not None:
        running = [point for point in points if chosen is None or point.case in chosen]
        conflicts += [*_room(running, workload, cluster), *_families(running, workload, cluster)]
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
    for index, entry in enumerate(experiment.cases or ()):
        yield Point(("cases", index), entry, _case(entry, experiment))
    if (axes := experiment.grid) is None:
        return
    fields = ("precision", "micro_batch_size", *AXES)
    for values in itertools.product(
        itertools.product(*(getattr(axes, field) for field in fields)),
        itertools.product(*axes.params.values()),
        enumerate(axes.placement),
    ):
        value, param, (index, placement) = values
        given = dict(zip(fields, value, strict=True))
        given |= {"placement": placement, "params": dict(zip(axes.params, param, strict=True))}
        entry = CaseEntry.model_validate(given)
        yield Point(("grid", "placement", index), entry, _case(entry, experiment))


def _matches(exclusion: Exclusion, case: Case) -> bool:
    excluded = exclusion.model_dump(exclude_none=True, exclude={"params"})
    return all(getattr(case, field) == value for field, value in excluded.items()) and all(
        case.given.get(name) == value for name, value in exclusion.params.items()
    )


def _case(entry: CaseEntry, experiment: Experiment) -> Case:
    nodes, gpus = map(int, entry.placement.split("x"))
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=entry.micro_batch_size,
        precision=entry.precision,
        device=experiment.device or "cuda",
        params=tuple(sorted({**experiment.params, **entry.params}.items())),
        **{name: getattr(entry, name) for name in AXES},
    )


def _params(experiment: Experiment, model: type[BaseModel]) -> Iterator[Conflict]:
    yield from _check_params(("params",), experiment.params, model)
    for index, entry in enumerate(experiment.cases or ()):
        yield from _check_params(("cases", index, "params"), entry.params, model)
    for name, values in (experiment.grid.params if experiment.grid else {}).items():
        if not values:
            yield Conflict(("grid", "params", name), "an empty list; needed a value")
        for index, value in enumerate(values):
            for conflict in _check_params(("grid", "params"), {name: value}, model):
                yield Conflict((*conflict.path, index), conflict.text)


def _check_params(
    path: tuple[str | int, ...], params: Mapping[str, Scalar], model: type[BaseModel]
) -> Iterator[Conflict]:
    for name in params:
        if name not in model.model_fields:
            names = ", ".join(sorted(model.model_fields)) or "none"
            question = words.did_you_mean(name, model.model_fields)
            hint = f"this workload has: {names}{f'; {question}' if question else ''}"
            hint = words.NO_SECRETS if words.is_secret([name]) else hint
            yield Conflict((*path, name), f"unknown parameter {name!r}; {hint}")
    try:
        model.model_validate({k: v for k, v in params.items() if k in model.model_fields})
    except ValidationError as error:
        for where, text, _ in documents.misfits(error, dict(params), model, path):
            if where:  # what is missing here may be given elsewhere; see _missing
                yield Conflict((*path, *where), text)


def _missing(point: Point, model: type[BaseModel]) -> Iterator[Conflict]:
    for name, field in model.model_fields.items():
        if field.is_required() and name not in point.case.given:
            yield Conflict(point.path, f"{point.case.placement}: the workload needs params.{name}")


def _exclusions(experiment: Experiment) -> Iterator[Conflict]:
    written = [point.case for point in _list_points(experiment)]
    for index, exclusion in enumerate(experiment.exclude):
        if not any(_matches(exclusion, case) for case in written):
            yield Conflict(("exclude", index), "no case matches it; needed one that does")
    if written and next(places(experiment), None) is None:
        yield Conflict(("exclude",), "every case is left out; needed at least one")


def _find_doubled_values(axes: Axes | None) -> Iterator[Conflict]:
    """Yield an error for each value that an axis repeats, which would double cases."""
    if axes is None:
        return
    plain = [((name,), values) for name, values in axes if isinstance(values, tuple)]
    params = [(("params", name), values) for name, values in axes.params.items()]
    for path, values in (*plain, *params):
        for index, value in enumerate(values):
            if values.index(value) < index:
                text = f"{value!r} is there twice; needed each value once"
                yield Conflict(("grid", *path, index), text)


def _arithmetic(point: Point, workload: Workload) -> Iterator[Conflict]:
    case, entry = point.case, point.entry
    split = f"tensor {case.tensor_parallel} x pipeline {case.pipeline_parallel}"
    if case.world_size % case.ranks_per_replica:
        yield Conflict(
            point.path,
            f"{case.placement}: {case.world_size} ranks cannot be split into {split}",
        )
    elif entry.data_parallel not in (None, case.data_parallel):
        yield Conflict(
            (*point.path, "data_parallel"),
            f"data {entry.data_parallel} x {split} is not {case.world_size} ranks;"
            f" needed data_parallel {case.data_parallel}",
        )
    if case.precision not in workload.precisions:
        yield Conflict(
            point.path,
            f"{case.placement}: precision {case.precision}; workload {workload.name} needs"
            f" {' or '.join(sorted(workload.precisions))}",
        )
    for name, value in case.axes.items():
        if value != 1 and name not in workload.axes:
            yield Conflict(
                point.path,
                f"{case.placement}: {name} {value}; workload {workload.name} can only do 1",
            )


def _canary(
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


def _method(method: Method, workload: Workload) -> Iterator[Conflict]:
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


def _device(
    experiment: Experiment, workload: Workload, cluster: Cluster | None
) -> Iterator[Conflict]:
    path, device = (("device",), experiment.device) if experiment.device else ((), "cuda")
    if device not in workload.devices:
        can = " or ".join(sorted(workload.devices))
        text = f"workload {workload.name} cannot compute on {device}; needed `device: {can}`"
        yield Conflict(path, text)
    local = [node.name for node in cluster.members if node.is_here] if cluster else []
    if local and experiment.device is None:
        seen = f"node {local[0]} is local and no device is named"
        yield Conflict((), f"{seen}; needed `device: cpu` or `device: cuda`")


def _families(points: Sequence[Point], workload: Workload, cluster: Cluster) -> Iterator[Conflict]:
    """Yield an error for each case whose ranks cannot meet at the cluster's IPv6 addresses."""
    far = [node for node in cluster.members if ":" in node.address]
    # `mpirun -H` cuts fd00::1 at its colons, and refuses brackets: seen with Open MPI 4.1.4.
    takes = workload.ipv6 and workload.launcher is not mpirun.launch
    for point in points if far and not takes else ():
        if point.case.nodes > 1:
            yield Conflict(
                point.path,
                f"{point.case.placement}: workload {workload.name} takes no IPv6 addresses, as"
                f" {far[0].address} of node {far[0].name}; needed IPv4 in inventory {cluster.name}",
            )


def _room(points: Sequence[Point], workload: Workload, cluster: Cluster) -> Iterator[Conflict]:
    """Yield an error for each case with too few fitting nodes, and for what those lack."""
    members = cluster.members
    for point in points:
        if point.case.nodes > len(members):
            yield Conflict(
                point.path,
                f"{point.case.placement} asks for {point.case.nodes} nodes;"
                f" inventory {cluster.name} has {len(members)}; `--case` runs the others",
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
            needs = f"{point.case.placement} asks for {gpus} GPUs"
            use = f"it use {most}" if len(few) == 1 else f"each use at most {most}"
            on = _nodes(node.name for node in few)
            text = f"{needs} on {on}; inventory {cluster.name} lets {use}"
            yield Conflict(point.path, text)
    for name, names in ((name, names) for name, names in without.items() if names):
        yield Conflict(
            ("workload",),
            f"workload {workload.name} reads the data set {name!r}; needed data.{name} for"
            f" {_nodes(names)} in inventory {cluster.name}",
        )


def _nodes(names: Iterable[str]) -> str:
    folded = nodeset.fold(names)
    return f"nodes {folded}" if {"[", ","} & {*folded} else f"node {folded}"
