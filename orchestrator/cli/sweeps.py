"""Commands of a sweep: run it, look at it, end it, report on it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, Left, Shared, command, shared_command, stopped_code
from orchestrator.cli.options import (
    CASES,
    INVENTORIES,
    PLAYBOOKS,
    SWEEPS,
    WHICH,
    WORKLOADS,
    Nodes,
    Which,
    Window,
    window,
)
from orchestrator.model.log import Rule
from orchestrator.signals import SIGNALS, Stopped

if TYPE_CHECKING:
    from orchestrator.console import Voice
    from orchestrator.state.store import Sweep

app = typer.Typer()


@shared_command(app)
def sweep(
    shared: Shared,
    playbook: Annotated[
        str, typer.Argument(help="A playbook: path or name.", autocompletion=PLAYBOOKS)
    ],
    inventory: Annotated[
        str | None,
        typer.Option(help="Else the playbook's, or the last fit one.", autocompletion=INVENTORIES),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would start.")] = False,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Globs over cases, such as 2x*; repeat it, or commas.", autocompletion=CASES
        ),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, max=1000, help="Trials per case.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new sweep instead of resuming.")
    ] = False,
    max_fail: Annotated[
        int | None,
        typer.Option(min=1, help="Start no more after this many trials without a valid outcome."),
    ] = None,
    nodes: Nodes = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run on without this terminal, once under way.")
    ] = False,
) -> None:
    """Run every trial of a playbook that has no valid outcome yet, then collect."""
    left = _left(shared)
    begun = _detached(shared, left) if detach and not dry_run else _nothing

    def work(voice: "Voice") -> int:
        from orchestrator.sweeping.campaign import Caller
        from orchestrator.sweeping.requested import Options
        from orchestrator.verbs import sweep as verb

        cases = tuple(case or ())
        options = Options(playbook, inventory, cases, repeats, new, max_fail, nodes)
        if dry_run:
            return verb.dry_run(shared.store, options, voice)
        return verb.sweep(shared.store, options, Caller(voice, SIGNALS, begun))

    shared.run(work, left)


@command(app, nodes=True)
def status(face: Face, sweep_id: Which = None) -> int:
    """What a sweep has done and what of it runs where; the newest unless one is named."""
    from orchestrator.verbs import status as verb

    return verb.status(face.store, sweep_id, face.voice)


@command(app, nodes=True)
def logs(
    face: Face,
    trial: Annotated[str | None, typer.Argument(metavar="TRIAL")] = None,
    sweep_id: Annotated[
        str | None, typer.Option("--sweep", help=WHICH, autocompletion=SWEEPS)
    ] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Default: the newest.")] = None,
    rank: Annotated[int, typer.Option(min=0, help="Whose log, by node_rank.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until it ends.")
    ] = False,
) -> int:
    """A trial's raw log: of the one that runs, else of the last, unless one is named."""
    from orchestrator.verbs import logs as verb

    wanted = verb.LogOptions(sweep_id, trial, attempt, rank)
    return verb.logs(face.store, wanted, face.voice, follow=follow)


@command(app, nodes=True)
def stop(face: Face, sweep_id: Which = None) -> int:
    """End a sweep's controller and exactly what that sweep started; the newest unless named."""
    from orchestrator.verbs import stop as verb

    return verb.stop(face.store, sweep_id, face.voice)


@command(app)
def collect(
    face: Face,
    sweep_id: Which = None,
    logs: Annotated[Path | None, typer.Option(help="A folder of logs, without a sweep.")] = None,
    workload: Annotated[
        str | None, typer.Option(help="What wrote those logs.", autocompletion=WORKLOADS)
    ] = None,
    between: Window = None,
    rule: Annotated[Rule | None, typer.Option(help="How throughput is taken from logs.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the reports on --logs here.")] = None,
    language: Annotated[
        Literal["en", "zh"] | None, typer.Option("--lang", help="Of report.md; English else.")
    ] = None,
) -> int:
    """Logs to medians, speedups, tables and reports; the newest sweep unless one is named."""
    from orchestrator.collecting.logs import Reading
    from orchestrator.verbs import collect as verb

    span = window(between)
    if (logs is None) != (workload is None) or (logs is None and (between or rule or out)):
        raise typer.BadParameter("--logs DIR and --workload NAME belong together")
    if logs is not None and sweep_id is not None:
        raise typer.BadParameter("either a sweep or --logs DIR")
    if logs is not None and language and out is None:
        raise typer.BadParameter("--lang is of report.md; with --logs that needs --out DIR")
    if logs is not None and workload is not None:
        where = verb.Out(out, language or "en") if out else None
        return verb.collect_logs(logs, Reading(workload, span, rule), face.voice, where)
    return verb.collect_sweep(face.store, sweep_id, face.voice, language or "en")


def _left(shared: Shared) -> Left:
    """What looks for leftovers; imported now, since a signal may cut an import short later on."""
    from orchestrator.sweeping import leftovers

    return lambda: leftovers.refuse_left(shared.store)


def _nothing(_: "Sweep") -> None:
    """Nobody waits to hear that a sweep is under way."""


def _detached(shared: Shared, left: Left) -> "Callable[[Sweep], None]":
    """Go on without a terminal; the command that was typed ends here once that is under way."""
    from orchestrator.console import Voice
    from orchestrator.sweeping import detached

    try:
        SIGNALS.begin()
        process = detached.fork(shared.state)
    except Stopped as stopped:
        raise typer.Exit(stopped_code(stopped, shared.as_json, left)) from None
    except errors.DlperfError as error:
        Voice(as_json=shared.as_json).error(error)
        raise typer.Exit(error.exit_code) from error
    if isinstance(process, detached.Begun):
        return process
    child = process
    Shared(shared.as_json, shared.state, verbose=False, logged=False).run(
        lambda voice: detached.follow(child, voice)
    )
