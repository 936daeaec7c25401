"""Binding a trial to an allocation: the one place where nodes and ports meet command lines."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace

from orchestrator.model.attempt import Allocation, Attempt, Request
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.image import Program
from orchestrator.model.plan import Placement, Plan, Seat, Task, Trial
from orchestrator.model.text import shape
from orchestrator.planning import environment, plan
from orchestrator.planning.plan import Recipe

FIRST_PORT, PORTS = 20_000, 10_000  # below the ports that Linux gives to outgoing connections
CANDIDATES = 100
"""Ports that an attempt may try; the next attempt has others."""
_NOWHERE = Program("PROGRAM", "PYTHON", "")


def request(recipe: Recipe, trial: Trial, number: int) -> Request:
    """Return the resources of an attempt, counted from 1; each attempt tries different ports."""
    case, workload = trial.case, recipe.workload
    first = workload.port(case)
    ports: Iterable[int] = (first,)
    if not workload.fixed_port(case):
        start = trial.ordinal + (number - 1) * CANDIDATES
        ports = (port_after(first, start + step) for step in range(CANDIDATES))
    return Request(
        trial=trial.name,
        nodes=case.nodes,
        gpus_per_node=case.gpus_per_node if case.device == "cuda" else 0,
        data=tuple(workload.data(case)),
        ports=tuple(ports),
        time_s=recipe.experiment.method.time_limit_s,
    )


def bind(recipe: Recipe, trial: Trial, allocation: Allocation, number: int, sweep: str) -> Attempt:
    """Return the attempt with its command lines; UsageError if its launcher cannot start there."""
    folders = {
        seat.node: f"{seat.root}/{sweep}/attempts/{trial.name}/a{number}"
        for seat in allocation.seats
    }
    return Attempt(
        sweep=sweep,
        trial=trial.name,
        number=number,
        folders=folders,
        port=allocation.port,
        tasks=_tasks(recipe, trial, allocation),
        log_rank=trial.log_rank,
        log_bytes=recipe.cluster.log_bytes,
        seats=allocation.seats,
        handle=allocation.handle,
        image=recipe.program.image or recipe.program.digest,
        images={node: image for node, image in recipe.program.ids.items() if node in folders},
    )


def first(recipe: Recipe, trial: Trial, seats: Iterable[Seat]) -> Attempt:
    """Return the first attempt as it would be if all these seats were free, for --dry-run.

    Its folders belong to no sweep, and an image that was not provisioned is called by its name.
    """
    needed = request(recipe, trial, 1)
    given = Allocation(needed.seated(seats), needed.ports[0])
    attempt = bind(recipe, trial, given, 1, "dry-run")
    return replace(
        attempt,
        folders={seat.node: f"{seat.root}/dry-run/{trial.name}" for seat in given.seats},
        image=attempt.image or recipe.experiment.image,
    )


def anonymize(recipe: Recipe, trial: Trial, allocation: Allocation) -> tuple[Task, ...]:
    """Return the tasks, without what may differ between runs that measure the same.

    Names, addresses and folders of nodes, the port, and where program and interpreter lie are
    replaced; interface, HCAs, GPUs and paths of data sets stay.
    """
    seats = tuple(_anonymous(seat, rank) for rank, seat in enumerate(allocation.seats))
    return _tasks(replace(recipe, program=_NOWHERE), trial, Allocation(seats, 0))


def fingerprint(tasks: Iterable[Task]) -> str:
    """Return the sha256 of the tasks' command lines and environments."""
    commands = [[list(task.argv), dict(task.env)] for task in tasks]
    return hashlib.sha256(json.dumps(commands).encode()).hexdigest()


def identity(recipe: Recipe) -> dict[str, JSON]:
    """Return, as plain data, everything that must stay the same for two runs to be one sweep.

    ``--repeats`` is not part of it: more repeats extend a sweep. The playbook's own repeats are,
    since an edited playbook starts a new sweep. Nodes may have other names, addresses and another
    order, and there may be more of the same kind, or fewer than the widest case needs, as in a job
    that Slurm gave for the narrow ones.
    """
    seats = [node.seat("") for node in recipe.cluster.members]
    seats.sort(key=lambda seat: json.dumps(asdict(_anonymous(seat, 0))))
    tasks: dict[str, JSON] = {}
    trials = plan.build(plan.repeated(recipe, 1)).trials
    widest = max(trial.case.nodes for trial in trials)
    seats += [replace(seats[-1], node=str(rank)) for rank in range(len(seats), widest)]
    for trial in trials:
        given = Allocation(request(recipe, trial, 1).seated(seats), 0)
        bound = anonymize(recipe, trial, given)
        tasks[trial.name] = [{"argv": list(task.argv), "env": dict(task.env)} for task in bound]
    return {
        "workload": recipe.workload.name,
        "experiment": recipe.experiment.model_dump(mode="json"),
        "cluster": recipe.cluster.name,
        "hardware": _hardware(recipe.cluster),
        "image_digest": recipe.program.digest,
        "tasks": tasks,
    }


def describe(built: Plan, attempts: Iterable[Attempt]) -> dict[str, JSON]:
    """Return the plan for --dry-run: each trial with port and tasks of its first attempt."""
    trials = [
        {
            **shape(Trial).dump_python(
                trial, mode="json", exclude={"ordinal"} if trial.canary else {"ordinal", "canary"}
            ),
            "port": attempt.port,
            "tasks": shape(tuple[Task, ...]).dump_python(attempt.tasks, mode="json"),
        }
        for trial, attempt in zip(built.trials, attempts, strict=True)
    ]
    return {**shape(Plan).dump_python(built, mode="json"), "trials": trials}


def port_after(first: int, steps: int) -> int:
    """Return the port ``steps`` after ``first``, wrapping around within 20000 to 29999."""
    return first if steps == 0 else FIRST_PORT + (first - FIRST_PORT + steps) % PORTS


def _tasks(recipe: Recipe, trial: Trial, allocation: Allocation) -> tuple[Task, ...]:
    case, workload = trial.case, recipe.workload
    placement = Placement(
        seats=allocation.seats,
        gpus_per_node=case.gpus_per_node,
        port=allocation.port,
        code=recipe.program.code,
        python=recipe.program.python,
    )
    command = workload.command(case, recipe.experiment.method, placement)
    added = environment.added(recipe.cluster, recipe.experiment)
    return tuple(
        replace(
            task,
            env={**environment.CLOCK, **added, **workload.env(case, placement, seat)},
            mounts=workload.mount(case, seat),
        )
        for seat, task in zip(placement.seats, workload.launcher(command, placement), strict=True)
    )


def _anonymous(seat: Seat, rank: int) -> Seat:
    return replace(seat, node=f"NODE{rank}", address=f"ADDRESS{rank}", root="")


def _hardware(cluster: Cluster) -> JSON:
    kinds = {
        json.dumps(
            {
                "runtime": node.runtime,
                "gpus": node.gpus.model_dump(mode="json", exclude_none=True) if node.gpus else None,
                "hcas": [hca.model_dump(mode="json") for hca in node.hcas],
                "data": node.data,
                "interface": node.interface,
            },
            sort_keys=True,
        )
        for node in cluster.members
    }
    return {
        "nodes": [json.loads(kind) for kind in sorted(kinds)],
        "container": cluster.container.model_dump(mode="json", exclude_none=True),
    }
