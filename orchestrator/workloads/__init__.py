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

from orchestrator import errors
from orchestrator.launchers import Launcher
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric, Rule, TrainingLog
from orchestrator.model.plan import Command, Mount, Placement, Seat
from orchestrator.model.report import PLAIN, Layout
from orchestrator.model.text import Noun, Scalar

GROUP = "dlperf_orch.workloads"
_PLUG_IN_FIX = "correct that distribution, or uninstall it; other workloads are not concerned"

Reader = Callable[[Iterable[bytes], tuple[int, int] | None], TrainingLog]


@dataclass(frozen=True, slots=True)
class Published:
    """The names that published results use for a case.

    Args:
        frameworks: patterns of names with versions, such as ``oneflow-*``.
        precision: all words for the case's, such as amp and amp-dynamic.
        batch: None for the case's micro batch size.
    """

    frameworks: tuple[str, ...]
    model: str
    precision: tuple[str, ...]
    batch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training program: how it is started and read.

    Args:
        last_iteration: of the iterations asked for, the last that a log shows.
        port: the first candidate for the port at which a case's ranks meet.
        fixed_port: True if the program can use no other port for a case.
        data: names of the data sets that a case reads, and the paths where its program looks.
        mounts: folders of a seat that its task sees; None for those of ``data``, read-only.
        unsupported: what of a case and a method this program cannot do, each as ``seen; needed``.
        ipv6: True if its program takes IPv6 addresses of several nodes.
        axes: fields of a case beyond placement, precision and micro batch that it can do.
        log_prefix: what DLPerf's log names begin with.
        told_by_name: fields of a case and parameters that the name of a log, without extension,
            tells beyond DLPerf's common form.
        stem: the name of a case's logs, without repeat and extension; None for DLPerf's common
            ``PREFIX_bBATCH_PRECISION``.
        log_node: the node whose task prints what is measured.
        step_flops: floating-point operations of one optimizer step.
        published: how published results call a case.
        read: reads chunks of a log over a window; None for the window usual for the program.
        progress: returns the last iteration in a block of log, and its printed rate.
        fabric: reads what communication libraries print in any task's log; None if they print
            nothing, and no trial can prove its transport.
    """

    name: str
    title: str
    params: type[Noun]
    unit: str
    last_iteration: Callable[[int], int] = lambda asked: asked
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
    """Return the workload of that name, None if there is none; PLUG-IN if it cannot be loaded."""
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return _load(entry)
    if name not in _list_shipped():
        return None
    found: Workload = importlib.import_module(f"{__name__}.{name}").WORKLOAD
    return found


def _load(entry: EntryPoint) -> Workload:
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever the module of somebody else raises
        why = f"{type(error).__name__}: {error}"  # a SyntaxError has its line in it
        raise _unloadable(entry, _locate(entry, error) or why) from error
    if not isinstance(found, Workload):
        raise _unloadable(entry, f"{entry.value} is a {type(found).__name__}; needed a Workload")
    # By another model a misspelt parameter would be ignored.
    if not (isinstance(found.params, type) and issubclass(found.params, Noun)):
        raise _unloadable(entry, "its params are no orchestrator.model.text.Noun")
    if found.name != entry.name:
        raise _unloadable(entry, f"{entry.value} is named {found.name}; needed {entry.name}")
    return found


def _unloadable(entry: EntryPoint, why: str) -> errors.LocalError:
    by = f"{entry.dist.name}, {entry.value}" if entry.dist else entry.value
    cause = f"workload {entry.name} ({by}) cannot be loaded: {why}"
    return errors.LocalError(cause, code="PLUG-IN", fix=_PLUG_IN_FIX)


def _locate(entry: EntryPoint, error: BaseException) -> str:
    """Return the error behind the line of the plug-in that raised it; empty if none did."""
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        if frame.f_globals.get("__name__") == entry.module:
            return f"{frame.f_code.co_filename}:{line}: {type(error).__name__}: {error}"
    return ""


def blame(error: BaseException) -> errors.LocalError | None:
    """Return the error as one of the plug-in whose code raised it; None if no plug-in did."""
    for entry in entry_points(group=GROUP):
        if where := _locate(entry, error):
            cause = f"workload {entry.name} failed: {where}"
            return errors.LocalError(cause, code="PLUG-IN", fix=_PLUG_IN_FIX)
    return None


def module(name: str) -> str:
    plug_ins = (entry.module for entry in entry_points(group=GROUP) if entry.name == name)
    return next(plug_ins, f"{__name__}.{name}")


def require(name: str) -> Workload:
    """Return the workload of that name, or raise NO-WORKLOAD with those there are."""
    chosen = find(name)
    if chosen is None:
        raise errors.UsageError(
            f"there is no workload {name!r}",
            code="NO-WORKLOAD",
            fix=f"needed one of {', '.join(names())}",
        )
    return chosen
