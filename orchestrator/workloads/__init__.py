"""Workloads: how each training program is started and how its log is read.

A module of this package that holds ``WORKLOAD`` is one; other distributions add theirs by the
entry-point group ``dlperf_orch.workloads``.
"""

import importlib
import pkgutil
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from pydantic import BaseModel

from orchestrator import errors
from orchestrator.launchers import Launcher
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric, Rule, TrainingLog
from orchestrator.model.plan import Command, Mount, Placement, Seat
from orchestrator.model.report import PLAIN, Layout
from orchestrator.model.text import Scalar

GROUP = "dlperf_orch.workloads"
_PLUG_IN_FIX = "correct that distribution, or uninstall it; other workloads are not concerned"

Reader = Callable[[Iterable[bytes], tuple[int, int] | None], TrainingLog]


@dataclass(frozen=True, slots=True)
class Published:
    """The names that published results use for a case.

    Args:
        frameworks: patterns of names with versions, such as ``oneflow-*``.
        precision: all words that mean the case's, such as amp and amp-dynamic.
        batch: as they write it; None for the case's micro batch size.
    """

    frameworks: tuple[str, ...]
    model: str
    precision: tuple[str, ...]
    batch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training program: how it is started and read.

    Args:
        params: model of the parameters that a playbook may give.
        last_iteration: the last one that a log shows when so many iterations are asked for.
        port: the first candidate for the port at which a case's ranks meet.
        fixed_port: whether that port is the only one that the program can use for a case.
        env: what the task's environment adds, for one seat of a gang.
        data: names of the data sets that a case reads, each with the path where its program looks
            for it; none unless it reads any.
        mounts: folders of a seat that its task sees; None for those of ``data``, read-only.
        unsupported: what of a case and a method this program cannot do, each as ``seen; needed``.
        ipv6: whether its program takes IPv6 addresses of several nodes.
        devices: where it can compute: cuda, cpu.
        precisions: in which it can compute.
        axes: fields of a case beyond placement, precision and micro batch that it can do.
        rules: by which its logs can be measured.
        log_prefix: what DLPerf's log names begin with.
        stem: the name of a case's logs, without repeat and extension; None for DLPerf's common
            ``PREFIX_bBATCH_PRECISION``.
        told_by_name: what the name of a log, without extension, tells of its case beyond DLPerf's
            common form: fields of a case and parameters; empty where it tells nothing.
        case_name: what the benchmark calls a case; None where it has no names of its own.
        log_node: which task prints what is measured: the leader's, or that of the last node.
        layout: of its report.
        step_flops: floating-point operations of one optimizer step; None where nobody has counted.
        published: how published results call a case; None where there are none, also for a case.
        read: chunks of a log's raw bytes and a window to what it says; where none is asked for, the
            reader takes what is usual for the program.
        progress: a block of log bytes to the last iteration and its printed rate.
        fabric: chunks of any task's log to what its communication libraries say; None where
            nothing of that is ever printed, and no trial can prove its transport.
    """

    name: str
    title: str
    params: type[BaseModel]
    unit: str
    last_iteration: Callable[[int], int]
    launcher: Launcher
    port: Callable[[Case], int]
    fixed_port: Callable[[Case], bool] = lambda _case: False
    command: Callable[[Case, Method, Placement], Command]
    env: Callable[[Case, Placement, Seat], Mapping[str, str]]
    data: Callable[[Case], Mapping[str, str]] = lambda _case: {}
    mounts: Callable[[Case, Seat], tuple[Mount, ...]] | None = None
    unsupported: Callable[[Case, Method], Iterable[str]] = lambda _case, _method: ()
    ipv6: bool = True
    devices: frozenset[str] = frozenset({"cuda"})
    precisions: frozenset[str] = frozenset({"fp32", "amp"})
    axes: frozenset[str] = frozenset()
    rules: frozenset[Rule] = frozenset({"clock"})
    log_prefix: str
    told_by_name: Callable[[str], Mapping[str, Scalar]] = lambda _stem: {}
    stem: Callable[[Case], str] | None = None
    case_name: Callable[[Case], str] | None = None
    log_node: Literal["leader", "last"] = "leader"
    layout: Layout = PLAIN
    step_flops: Callable[[Case], float] | None = None
    published: Callable[[Case], Published | None] | None = None
    read: Reader
    progress: Callable[[bytes], tuple[int, float] | None]
    fabric: Callable[[Iterable[bytes]], Fabric] | None = None

    def mount(self, case: Case, seat: Seat) -> tuple[Mount, ...]:
        """Return the folders of a seat that the task of a case sees."""
        if self.mounts:
            return self.mounts(case, seat)
        paths = self.data(case)
        return tuple(Mount(seat.data[name], path, read_only=True) for name, path in paths.items())


def names() -> tuple[str, ...]:
    installed = {entry.name for entry in entry_points(group=GROUP)}
    return tuple(sorted(_list_shipped() | installed))


def _list_shipped() -> set[str]:
    return {module.name for module in pkgutil.iter_modules(__path__)}


def find(name: str) -> Workload | None:
    """Return the workload of that name, or None if there is none.

    Raises:
        LocalError: PLUG-IN; another distribution brings it, and it cannot be loaded.
    """
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return _load(entry)
    if name not in _list_shipped():
        return None
    found = importlib.import_module(f"{__name__}.{name}").WORKLOAD
    return found if isinstance(found, Workload) else None


def _load(entry: EntryPoint) -> Workload:
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever the module of somebody else raises
        # The innermost module whose code ran: the plug-in's own, or one that it imports.
        frames = [it for it in traceback.extract_tb(error.__traceback__) if it.name == "<module>"]
        file, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
        if isinstance(error, SyntaxError) and error.filename:
            file, line = error.filename, error.lineno
        where = f"{file}:{line}: " if file else ""
        raise _unloadable(entry, f"{where}{type(error).__name__}: {error}") from error
    if not isinstance(found, Workload):
        raise _unloadable(entry, f"{entry.value} is a {type(found).__name__}; needed a Workload")
    if found.name != entry.name:
        raise _unloadable(entry, f"{entry.value} is named {found.name}; needed {entry.name}")
    return found


def _unloadable(entry: EntryPoint, why: str) -> errors.LocalError:
    by = f"{entry.dist.name}, {entry.value}" if entry.dist else entry.value
    cause = f"workload {entry.name} ({by}) cannot be loaded: {why}"
    return errors.LocalError(cause, code="PLUG-IN", fix=_PLUG_IN_FIX)


def blame(error: BaseException) -> errors.LocalError | None:
    """Return the error as one of the plug-in whose code raised it; None if no plug-in did."""
    for entry in entry_points(group=GROUP):
        for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
            if frame.f_globals.get("__name__") == entry.module:
                where = f"{frame.f_code.co_filename}:{line}: {type(error).__name__}: {error}"
                cause = f"workload {entry.name} failed: {where}"
                return errors.LocalError(cause, code="PLUG-IN", fix=_PLUG_IN_FIX)
    return None


def module(name: str) -> str:
    plug_ins = (entry.module for entry in entry_points(group=GROUP) if entry.name == name)
    return next(plug_ins, f"{__name__}.{name}")


def require(name: str) -> Workload:
    """Return the workload of that name.

    Raises:
        UsageError: NO-WORKLOAD; the message lists those there are.
    """
    chosen = find(name)
    if chosen is None:
        raise errors.UsageError(
            f"there is no workload {name!r}",
            code="NO-WORKLOAD",
            fix=f"needed one of {', '.join(names())}",
        )
    return chosen
