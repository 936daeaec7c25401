"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

import os
from collections.abc import Callable
from typing import Annotated

import typer

from orchestrator import errors, nodeset, words
from orchestrator.cli.command import Face, command, quote_command
from orchestrator.cli.options import INVENTORIES, PLAYBOOKS, DryRun, Nodes, Repeats, Strict
from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.inputs import sites, user_files
from orchestrator.planning import bind
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import detached, observed_sweep, resume
from orchestrator.sweeping.requested import Requested, SweepOptions, resolve


@command(
    "sweep",
    "sweep smoke --inventory local --dry-run",
    "sweep today --inventory mine --case '1x1,2x*' --repeats 1",
    left=observed_sweep.refuse_left,
)
def sweep(
    face: Face,
    playbook: Annotated[
        str, typer.Argument(help="A playbook: path or name.", autocompletion=PLAYBOOKS)
    ],
    inventory: Annotated[
        str | None,
        typer.Option(
            help="Default: the playbook's, else the last fit.", autocompletion=INVENTORIES
        ),
    ] = None,
    dry_run: DryRun = False,
    case: Annotated[
        list[str] | None, typer.Option(help="Only these: globs such as 2x*, with commas.")
    ] = None,
    repeats: Repeats = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new sweep; do not resume.")] = False,
    max_fail: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after N trials that are not valid.")
    ] = None,
    nodes: Nodes = None,
    strict: Strict = False,
    detach: Annotated[bool, typer.Option("--detach", help="Go on in the background.")] = False,
    requeue: Annotated[bool, typer.Option("--requeue", help="Requeue a timed-out job.")] = False,
) -> int:
    store, voice = face.store, face.voice
    begun: Callable[[Sweep], None] = lambda _sweep: None  # noqa: E731
    if detach and not dry_run and not _is_queued(store, playbook, inventory):
        process = detached.fork(face.state)
        if not isinstance(process, detached.Begun):
            face.left = None
            return process(voice)
        begun = process
    # A requeued job continues the sweep that it began.
    fresh = new and os.environ.get("SLURM_RESTART_COUNT", "0") == "0"
    options = SweepOptions(
        playbook,
        inventory,
        cases=tuple(case or ()),
        repeats=repeats,
        new=fresh,
        max_fail=max_fail,
        nodes=nodes,
        strict=strict,
        command=quote_command(),
    )
    request = resolve(store, options, voice)
    if requeue and request.cluster.slurm is None:
        raise errors.UsageError(
            f"--requeue is of jobs of Slurm's; {request.cluster.name} is reached without Slurm",
            code="USAGE",
            fix="leave it out: after any end the same command goes on",
        )
    if dry_run:
        return _show_plan(store, request, voice, requeue=requeue)
    trials = frozenset(trial.name for trial in request.plan.trials)
    if finished := resume.find_finished(store, request):
        request.refuse_unprepared()
        opened, valid = finished
        work = request.describe_work(opened.record().plan, valid, len(trials) - valid)
        voice.line(f"sweep {opened.id} goes on")
        voice.line(f"{work}; no node was asked")
        found = measured(opened)
        report_files.write(opened, found)
    else:
        from orchestrator.submitting import submit  # half of what a finished sweep would load
        from orchestrator.sweeping import loop
        from orchestrator.sweeping.campaign import HeldNodes

        if submit.is_needed(request.cluster):
            _refuse_job(store, request)
            return submit.run(store, request.cluster, voice, detach=detach, requeue=requeue)
        with HeldNodes(store, voice, begun) as held:
            opened, found = loop.run(held, request)
    return report_files.present(found, voice, opened.folder / report_files.html("en"), trials)


def _is_queued(store: Store, playbook: str, inventory: str | None) -> bool:
    """Return True if the sweep submits itself to Slurm; invalid files are reported later."""
    from orchestrator.submitting import submit

    try:
        own = user_files.playbook(playbook).experiment.inventory
        return submit.is_needed(sites.inventory(store, inventory, own, Voice(as_json=True))[0])
    except errors.DlperfError:
        return False


def _refuse_job(store: Store, request: Requested) -> None:
    """Refuse a job too short for a trial, or whose image no living job may be preparing."""
    from orchestrator.submitting import jobs

    request.refuse_short()
    try:
        request.refuse_unprepared()
    except errors.UnfitError:
        if not jobs.list_alive(store, request.cluster):
            raise


def _show_plan(store: Store, request: Requested, voice: Voice, *, requeue: bool) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    from orchestrator.schedulers import addresses, choice
    from orchestrator.submitting import submit

    plan, cluster = request.plan, request.cluster
    seats = addresses.seats(cluster, store.root)
    facts, images = (request.known.nodes, request.known.images) if request.known else ({}, {})
    bound = [bind.first(request.recipe, trial, seats) for trial in plan.trials]
    voice.line("each trial is shown on the nodes and the port that it would be tried on first")
    if cluster.in_containers and request.playbook.image.name not in images:
        voice.line(f"not provisioned: {plan.image} stands for the image that will be made")
    scripts, asking = dict[str, list[str]](), tuple[str, ...]()
    if submit.is_needed(cluster):
        request.refuse_short()
        text, asking = submit.show(store, cluster, voice, requeue=requeue)
        scripts = {"scripts": [text]}
    lines = [choice.quote_lines(cluster, attempt, facts, asking) for attempt in bound]
    voice.result(f"playbook {plan.experiment} on cluster {plan.cluster}")
    locked = plan.image_digest or "UNLOCKED: the digest is not known yet"
    voice.result(f"workload {plan.workload}, image {plan.image} ({locked})")
    method = plan.method.model_dump(exclude_none=True)
    shown = {key: list(v) if isinstance(v, tuple) else v for key, v in method.items()}
    settings = ", ".join(f"{key}: {value}" for key, value in shown.items())
    voice.result(f"{words.count(len(plan.trials), 'trial')}; {settings}")
    for trial, attempt, by_node in zip(plan.trials, bound, lines, strict=True):
        voice.result(f"\ntrial {trial.name} -> logs/{trial.log}")
        for names, text in nodeset.fold_lines(by_node):
            voice.result(f"  on {names}{text}")
        if files := nodeset.fold(file for task in attempt.tasks for file in task.files):
            voice.result(f"  a sweep writes these files first: {files}")
    pasted = {
        attempt.trial: {node: " ".join(argv) for node, argv in by_node.items()}
        for attempt, by_node in zip(bound, lines, strict=True)
    }
    return voice.finish({"plan": bind.describe(plan, bound), "lines": pasted, **scripts})
