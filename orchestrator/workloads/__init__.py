"""Workloads: how each training program is started and how its log is read.

A module of this package that holds ``WORKLOAD`` is one; other distributions add theirs by the
entry-point group ``dlperf_orch.workloads``.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from pydantic import BaseModel

from orchestrator.launchers import Launcher
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric, TrainingLog
from orchestrator.model.plan import Command, Mount, Placement, Seat

GROUP = "dlperf_orch.workloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training program: how it is started and read.

    Args:
        params: model of the parameters that a playbook may give.
        window: iterations between which it is measured unless a playbook says otherwise.
        port: by number of nodes, the first candidate for the rendezvous port.
        env: what the task's environment adds, for one seat of a gang.
        data: names of the data sets that it reads.
        devices: where it can compute: cuda, cpu.
        axes: fields of a case beyond placement, precision and micro batch that it can do.
        log_prefix: what DLPerf's log names begin with.
        read: chunks of a log's raw bytes and a window to what the log says.
        progress: a block of log bytes to the last iteration and its printed rate.
        fabric: chunks of any task's log to what its communication libraries say; None where
            nothing of that is ever printed, and no trial can prove its transport.
    """

    name: str
    title: str
    params: type[BaseModel]
    unit: str
    window: tuple[int, int]
    launcher: Launcher
    port: Callable[[int], int]
    command: Callable[[Case, Method, Placement], Command]
    env: Callable[[Case, Placement, Seat], Mapping[str, str]]
    mounts: Callable[[Seat], tuple[Mount, ...]]
    data: tuple[str, ...]
    devices: frozenset[str]
    axes: frozenset[str]
    log_prefix: str
    read: Callable[[Iterable[bytes], tuple[int, int]], TrainingLog]
    progress: Callable[[bytes], tuple[int, float] | None]
    fabric: Callable[[Iterable[bytes]], Fabric] | None = None


def names() -> tuple[str, ...]:
    """Names of all workloads, sorted."""
    own = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(
        sorted(
            {name for name in own if not name.startswith("_")}
            | {entry.name for entry in entry_points(group=GROUP)}
        )
    )


def find(name: str) -> Workload | None:
    """The workload of that name, or None if there is none."""
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            found = entry.load()
            return found if isinstance(found, Workload) else None
    if name.startswith("_") or name not in names():
        return None
    found = importlib.import_module(f"{__name__}.{name}").WORKLOAD
    return found if isinstance(found, Workload) else None
