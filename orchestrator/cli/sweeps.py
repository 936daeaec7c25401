"""Commands of a sweep: run it, look at it, end it, report on it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestrator import errors
from orchestrator.cli.command import (
    Face,
    LeftoverCheck,
    command,
    quote_command,
    run_look,
    stopped_code,
)
from orchestrator.cli.options import (
    CASES,
    INVENTORIES,
    PLAYBOOKS,
    SWEEPS,
    TRIALS,
    WHICH,
    DryRun,
    LogRule,
    Logs,
    LogWorkload,
    Nodes,
    Repeats,
    Strict,
    Which,
    WhichFile,
    Window,
    reading,
    seconds,
    whole,
)
from orchestrator.signals import SIGNALS, Stopped

if TYPE_CHECKING:
    from orchestrator.state.sweep import Sweep

app = typer.Typer()


@command(app, nodes=True, runs_itself=True)
def sweep(
    face: Face,
    playbook: Annotated[
        str, typer.Argument(help="A playbook: path or name.", autocompletion=PLAYBOOKS)
    ],
    inventory: Annotated[
        str | None,
        typer.Option(
            help="Default: the playbook's, else the last one found fit.",
            autocompletion=INVENTORIES,
        ),
    ] = None,
    dry_run: DryRun = False,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these cases: globs such as 2x*; repeatable, or with commas.",
            autocompletion=CASES,
        ),
    ] = None,
    repeats: Repeats = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new sweep instead of resuming.")
    ] = False,
    max_fail: Annotated[
        int | None,
        typer.Option(
            parser=whole(1),
            metavar="N",
            help="Start no trial after this many without a valid outcome.",
        ),
    ] = None,
    nodes: Nodes = None,
    strict: Strict = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Continue in the background once a trial runs.")
    ] = False,
    requeue: Annotated[
        bool,
        typer.Option("--requeue", help="With Slurm: queue the job again when its time is over."),
    ] = False,
) -> None:
    """Run every trial that has no valid outcome yet, then collect."""
    from orchestrator.sweeping import observed_sweep  # a signal may interrupt a later import

    left = partial(observed_sweep.refuse_left, face.store)
    forks = detach and not dry_run and not _is_queued(face, playbook, inventory)
    begun = _detach(face, left) if forks else lambda _sweep: None

    def work() -> int:
        from orchestrator.sweeping.requested import Caller, SweepOptions
        from orchestrator.verbs import sweep as verb

        cases = tuple(case or ())
        fresh = new
        if new:
            from orchestrator.submitting import submit

            fresh = not submit.is_again()  # of a requeued job the new sweep is there
        chosen = (inventory, cases, repeats, fresh, max_fail, nodes, strict, detach, requeue)
        options = SweepOptions(playbook, *chosen, command=quote_command())
        if dry_run:
            return verb.dry_run(face.store, options, face.voice)
        return verb.sweep(face.store, options, Caller(face.voice, SIGNALS, begun))

    face.run(work, left)


@command(app, nodes=True)
def status(
    face: Face,
    sweep_id: Which = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again until nothing of it runs.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(parser=seconds, metavar="S", help="Seconds between looks, with --watch."),
    ] = 5.0,
) -> int:
    """Show what a sweep has done and what of it runs where."""
    from orchestrator.verbs import status as verb

    if watch:
        return run_look(face, lambda: verb.watch(face.store, sweep_id, face.voice, every_s=every))
    return verb.status(face.store, sweep_id, face.voice)


@command(app, nodes=True)
def logs(
    face: Face,
    trial: Annotated[
        str | None,
        typer.Argument(
            metavar="TRIAL", help="Its name, or the beginning of it.", autocompletion=TRIALS
        ),
    ] = None,
    sweep_id: Annotated[
        str | None, typer.Option("--sweep", help=WHICH, autocompletion=SWEEPS)
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(parser=whole(1), metavar="N", help="Default: the newest.")
    ] = None,
    rank: Annotated[
        int, typer.Option(parser=whole(0), metavar="N", help="Whose log, by node_rank.")
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until it ends.")
    ] = False,
    grep: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only lines that this pattern fits.")
    ] = None,
) -> int:
    """Print a trial's raw log. Default: the trial that runs, else the last one."""
    from orchestrator.sweeping.observed_sweep import Running
    from orchestrator.verbs import logs as verb

    def show() -> int:
        running = Running.of(face.store, sweep_id)
        return verb.logs(running, trial, attempt, rank, face.voice, grep=grep, follow=follow)

    return run_look(face, show)


@command(app, nodes=True)
def stop(
    face: Face,
    sweep_id: Which = None,
    on: Annotated[
        str | None,
        typer.Option(
            help="End a sweep whose state folder is lost, on these nodes.",
            autocompletion=INVENTORIES,
        ),
    ] = None,
) -> int:
    """End a sweep and everything that it started. Nothing else is ended."""
    from orchestrator.verbs import stop as verb

    if on is not None:
        return verb.stop_lost(face.store, sweep_id, on, face.voice)
    return verb.stop(face.store, sweep_id, face.voice)


@command(app)
def collect(
    face: Face,
    sweep_id: WhichFile = None,
    logs: Logs = None,
    workload: LogWorkload = None,
    between: Window = None,
    rule: LogRule = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the reports here; of a sweep, instead of into it.")
    ] = None,
    language: Annotated[
        Literal["en", "zh"] | None,
        typer.Option("--lang", help="zh writes report.zh.html beside report.html; default: en."),
    ] = None,
    strict: Strict = False,
) -> int:
    """Turn logs into medians, speedups, tables and reports."""
    how = reading(sweep_id, logs, workload, between, rule)
    if logs is not None and language and out is None:
        raise typer.BadParameter("--lang is of report.md; with --logs that needs --out DIR")
    if logs is not None and strict:
        raise typer.BadParameter("--strict is of sweeps; a folder of logs tells no machine's state")
    from orchestrator.verbs import collect as verb

    written = language or "en"
    if logs is not None and how is not None:
        return verb.collect_logs(logs, how, face.voice, out, written)
    return verb.collect_sweep(face.store, sweep_id, face.voice, out, written, strict=strict)


def _is_queued(face: Face, playbook: str, inventory: str | None) -> bool:
    """Return True if the sweep submits itself to Slurm; invalid files are reported later."""
    from orchestrator.console import Voice
    from orchestrator.inputs import sites, user_files
    from orchestrator.submitting import submit

    try:
        own = user_files.playbook(playbook).experiment.inventory
        quiet = Voice(as_json=True)
        return submit.is_needed(sites.inventory(face.store, inventory, own, quiet)[0])
    except errors.DlperfError:
        return False


def _detach(face: Face, left: LeftoverCheck) -> "Callable[[Sweep], None]":
    """Continue in a background process; the foreground one exits here once a gang runs."""
    from orchestrator.sweeping import detached

    try:
        SIGNALS.begin()
        process = detached.fork(face.state)
    except Stopped as stopped:
        raise typer.Exit(stopped_code(stopped, face.as_json, left)) from None
    except errors.DlperfError as error:
        face.voice.error(error)
        raise typer.Exit(error.exit_code) from error
    if isinstance(process, detached.Begun):
        return process
    child = process
    quiet = Face(face.as_json, face.state, verbose=False, logged=False)
    quiet.run(lambda: detached.follow(child, quiet.voice))
