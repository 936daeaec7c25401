"""Run two playbooks, or one with two images, on the same nodes in turns: A B, then B A."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors
from orchestrator.collecting import report_files
from orchestrator.comparing.sides import Side, SideCase, pair_cases
from orchestrator.disk import make_folder
from orchestrator.model.report import Report
from orchestrator.state.files import dumps, write
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.submitting import submit
from orchestrator.sweeping import run
from orchestrator.sweeping.requested import Caller, Requested, SweepOptions, resolve
from orchestrator.sweeping.under_way import HeldNodes


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Name the two sides that take turns, and their nodes.

    Args:
        first, second: a playbook, or PLAYBOOK=IMAGE for another image than its own.
        repeats: of each case on each side; None for the fewer of what the playbooks say.
    """

    first: str
    second: str
    inventory: str | None
    nodes: str | None
    repeats: int | None


def take(store: Store, options: TurnOptions, caller: Caller) -> tuple[Sweep, Sweep]:
    """Run the remaining turns of a pair and write both reports; return the two sweeps.

    Each turn is a sweep's own next trial, so an interrupted pair goes on by the same command. The
    nodes are held for all turns, and observed once for each image.

    Raises:
        UsageError: NO-TURNS; the two cannot take turns.
        DlperfError: as of any sweep.
    """
    sides = (options.first, options.second)
    asked = tuple(_sweep_options(side, options) for side in sides)
    requests = tuple(resolve(store, of, caller.voice) for of in asked)
    turns = tuple(_turns(requests, options))
    pair = _Pair(store, options)
    with HeldNodes(store, caller) as nodes:
        for number, (side, case, repeat) in enumerate(turns, 1):
            trial = f"{case}_{repeat}"
            caller.voice.line(f"turn {number} of {len(turns)}: {sides[side]}, {trial}")
            new = not pair.has_begun(side)
            one = replace(asked[side], cases=(trial,), repeats=repeat, new=new)
            ran = run.run(
                store, one, caller, _write_report, elsewhere=_refuse_elsewhere, nodes=nodes
            )
            pair.keep(side, ran)
    return pair.end()


def _sweep_options(side: str, options: TurnOptions) -> SweepOptions:
    playbook, _, image = side.partition("=")
    return SweepOptions(
        playbook=playbook,
        inventory=options.inventory,
        cases=(),
        repeats=None,
        new=False,
        max_fail=None,
        nodes=options.nodes,
        image=image or None,
    )


def _turns(requests: tuple[Requested, ...], options: TurnOptions) -> Iterator[tuple[int, str, int]]:
    """Yield a side, the common name of a case's trials, and a repeat, for each turn.

    The side that begins, 0 or 1, changes with each repeat.
    """
    first, second = requests
    if options.first == options.second:
        raise _no_turns(f"both sides are {options.first}", "name two playbooks or images")
    watched = [of.playbook.name for of in requests if of.plan.method.watch is not None]
    if watched:
        raise _no_turns(f"{watched[0]} has a canary", "take it out: turns show a drift themselves")
    pairs = pair_cases(_side(first), _side(second))
    alone = (*pairs.only_first, *pairs.only_second)
    if alone or not pairs.both:
        names = ", ".join(case.name or "" for case in alone)
        raise _no_turns(f"one side alone has {names}", "give both playbooks the same cases")
    repeats = options.repeats or min(of.plan.method.most for of in requests)
    for repeat in range(1, repeats + 1):
        for pair in pairs.both:
            sides = tuple(enumerate(pair))
            for side, case in sides if repeat % 2 else reversed(sides):
                yield side, case.name or "", repeat


def _side(request: Requested) -> Side:
    """Return the cases of a plan, named by the prefix of their trials' names."""
    cases = {trial.case: trial.name.rpartition("_")[0] for trial in request.plan.trials}
    return Side(
        label=request.playbook.name,
        origin="",
        unit=request.recipe.workload.unit,
        cases=tuple(SideCase(case=case.document(), name=name) for case, name in cases.items()),
    )


def _write_report(opened: Sweep, found: Report, _names: frozenset[str]) -> Sweep:
    report_files.write(opened, found)
    return opened


def _refuse_elsewhere(request: Requested) -> Sweep | None:
    """Refuse to submit: under Slurm, turns run inside a job."""
    if submit.is_needed(request.cluster):
        raise _no_turns("this is no job of Slurm's", "run it inside one, as of `salloc`")
    return None


def _no_turns(cause: str, fix: str) -> errors.UsageError:
    return errors.UsageError(f"they cannot take turns: {cause}", code="NO-TURNS", fix=fix)


class _Pair:
    """Keep the sweeps of a pair in a file until all turns are taken."""

    def __init__(self, store: Store, options: TurnOptions) -> None:
        of = json.dumps([options.first, options.second, options.inventory, options.nodes])
        name = hashlib.sha256(of.encode()).hexdigest()[:12]
        self._store, self._path = store, store.root / "turns" / f"{name}.json"
        self._ids = _read_ids(self._path)

    def has_begun(self, side: int) -> bool:
        return bool(self._ids[side])

    def keep(self, side: int, sweep: Sweep) -> None:
        """Record the sweep of a turn.

        Raises:
            UsageError: NO-TURNS; another sweep of the same playbook was begun meanwhile.
        """
        if self._ids[side] not in ("", sweep.id):
            self._path.unlink(missing_ok=True)
            raise _no_turns(
                f"{sweep.id} was begun after {self._ids[side]}, of the same playbook",
                "take all turns anew: the same command, with nothing else beside it",
            )
        self._ids[side] = sweep.id
        make_folder(self._path.parent)
        write(self._path, dumps(self._ids).encode())

    def end(self) -> tuple[Sweep, Sweep]:
        """Forget the pair: the same command begins a new one."""
        self._path.unlink(missing_ok=True)
        first, second = (self._store.sweep(sweep_id) for sweep_id in self._ids)
        return first, second


def _read_ids(path: Path) -> list[str]:
    try:
        ids = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return ["", ""]
    return ids if isinstance(ids, list) and len(ids) == 2 else ["", ""]
