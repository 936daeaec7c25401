"""stop: end a sweep's controller and exactly what that sweep started."""

import time
from itertools import chain
from typing import Annotated

import typer

from orchestrator import errors, nodeset, processes
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import INVENTORIES, Which
from orchestrator.console import Voice
from orchestrator.fleet import Fleet
from orchestrator.inputs import user_files
from orchestrator.model.attempt import Attempt
from orchestrator.schedulers import addresses, locks, strays
from orchestrator.state.store import SWEEP_ID, Store
from orchestrator.state.sweep import Sweep
from orchestrator.submitting import jobs
from orchestrator.sweeping import closing
from orchestrator.sweeping.observed_sweep import Running

PATIENCE_S = 60.0
BEGUN_S = 20.0  # until a controller that starts has locked its sweep
AGAIN_S = 0.1


@command("stop", "stop", "stop smoke-20261123-144326-6b17db")
def stop(
    face: Face,
    sweep_id: Which = None,
    on: Annotated[
        str | None,
        typer.Option(help="Where, if its state folder is lost.", autocompletion=INVENTORIES),
    ] = None,
) -> int:
    # With no sweep named, jobs that Slurm has not begun are cancelled first, and a controller that
    # has begun is waited for until it holds its sweep.
    store, voice = face.store, face.voice
    if on is not None:
        return _stop_lost(store, sweep_id, on, voice)
    cancelled = [] if sweep_id else jobs.cancel_waiting(store, voice)
    jobs.cancel_headless(store, voice)
    if cancelled and not store.sweeps():
        return voice.finish({"cancelled": cancelled})
    deadline = time.monotonic() + BEGUN_S
    while begun := [] if sweep_id else _list_begun(store):
        if time.monotonic() > deadline:
            voice.line(f"left alone, since it runs no sweep: {', '.join(begun)}")
            break
        time.sleep(jobs.AGAIN_S)
    running = Running.of(store, sweep_id)
    sweep, left = running.sweep, list[Attempt]()
    pid = _end_controller(sweep)
    job = jobs.end(store, running.cluster, sweep.lock().holder(), voice)
    # Lock only to end attempts, or to find out whether another machine's controller is alive.
    if sweep.open_attempts() or sweep.lock().holder():
        with sweep.lock():
            sweep.remove_unfinished()
            if left := sweep.open_attempts():
                _end_attempts(running, left, voice)
    if job:
        voice.result(f"job {job} has ended, and with it the controller of sweep {sweep.id}")
    if pid:
        voice.result(f"controller {pid} of sweep {sweep.id} has ended")
    ended = [f"{attempt.trial} a{attempt.number}" for attempt in left]
    voice.result(f"ended: {', '.join(ended)}" if ended else "nothing of it was left running")
    more = {key: value for key, value in (("job", job), ("cancelled", cancelled)) if value}
    return voice.finish({"sweep": sweep.id, "controller": pid, "ended": ended, **more})


def _stop_lost(store: Store, sweep_id: str | None, inventory: str, voice: Voice) -> int:
    """End a sweep whose state folder is lost; find its tasks by marks. Return the exit code."""
    cluster, _ = user_files.cluster(inventory)
    whole = sweep_id is not None and SWEEP_ID.fullmatch(sweep_id)
    if sweep_id is None or not whole or sweep_id in store.sweep_ids() or cluster.slurm:
        raise errors.UsageError(
            "--on ends a sweep whose state folder is lost, named by its whole id, on nodes without"
            " Slurm",
            code="USAGE",
            fix="leave out --on for a sweep of this state folder; cancel a Slurm job by scancel",
        )
    with Fleet.of(cluster) as fleet, locks.held(fleet, store.root):
        ended = strays.end(fleet, addresses.seats(cluster, store.root), (sweep_id,))
    for node, names in ended.items():
        voice.result(f"ended on {node}: {', '.join(names)}")
    if not ended:
        voice.result(f"nothing of sweep {sweep_id} runs on {nodeset.fold(fleet.transports)}")
    for root in sorted({node.folder for node in cluster.members if not node.is_here}):
        voice.line(f"its logs stay on the nodes, in {root}/{sweep_id}")
    return voice.finish({"sweep": sweep_id, "ended": [*chain(*ended.values())]})


def _list_begun(store: Store) -> list[str]:
    """List controllers that have begun and hold no sweep yet."""
    sweeping = [holder.process for sweep in store.sweeps() if (holder := sweep.lock().holder())]
    here = [
        str(holder)
        for holder in store.cluster_holders()
        if processes.is_here(holder.process) and holder.process not in sweeping
    ]
    begun = jobs.list_begun(store, {process.host for process in sweeping})
    return [*here, *(job.summary for job in begun)]


def _end_controller(sweep: Sweep) -> int | None:
    """End the sweep's process on this machine by SIGTERM; return its pid, or None."""
    holder = sweep.lock().holder()
    if holder is None or not processes.is_here(holder.process):
        return None
    process = holder.process
    processes.terminate(process)
    deadline = time.monotonic() + PATIENCE_S
    while processes.runs(process) and sweep.lock().holder() == holder:
        if time.monotonic() > deadline:
            raise errors.LocalError(
                f"the controller {process.pid} did not end within {PATIENCE_S:g} s of SIGTERM",
                code="LOCKED",
                fix=f"kill -KILL {process.pid}, then run `dlperf-orch stop` again",
            )
        time.sleep(AGAIN_S)
    return process.pid


def _end_attempts(running: Running, left: list[Attempt], voice: Voice) -> None:
    """End every open attempt; the gravest failure is raised after all were tried."""
    failures: list[errors.DlperfError] = []
    with running.scheduler() as scheduler:
        for attempt in left:
            try:
                reached = closing.close_left(
                    running.sweep, scheduler, attempt, "interrupted", "STOPPED"
                )
                out = [task for task in attempt.tasks if task.node not in reached.nodes]
                if out:
                    names = ", ".join(attempt.token(task) for task in out)
                    raise errors.LeftoverError(
                        f"{names} may run on nodes that the sweep's inventory does not have",
                        code="LEFTOVER",
                        node=nodeset.fold(task.node for task in out),
                        fix="run the sweep again with an inventory that has them; or end it there",
                    )
            except errors.DlperfError as error:
                failures.append(error)
            else:
                voice.line(f"ended {attempt.trial} a{attempt.number}")
    if failures:
        raise voice.gravest(failures)
