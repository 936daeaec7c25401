"""sweep: the whole matrix of a playbook on a cluster, every repeat, resumable at any moment."""

from orchestrator.collecting import report_files
from orchestrator.console import Voice
from orchestrator.model.report import Report
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import run
from orchestrator.sweeping.requested import Caller, Requested, SweepOptions, resolve


def dry_run(store: Store, options: SweepOptions, voice: Voice) -> int:
    """Show what a sweep would start on every node; nothing is started or written; exit code."""
    from orchestrator.planning import bind
    from orchestrator.schedulers import choice
    from orchestrator.sweeping import in_jobs

    request = resolve(store, options, voice)
    seats = choice.seats(request.cluster, store.root)
    facts, images = (request.known.nodes, request.known.images) if request.known else ({}, {})
    bound = [bind.first(request.recipe, trial, seats) for trial in request.plan.trials]
    request.say_too_big(voice)
    voice.line("each trial is shown on the nodes and the port that it would be tried on first")
    if request.cluster.in_containers and request.playbook.image.name not in images:
        voice.line(f"not provisioned: {request.plan.image} stands for the image that will be made")
    scripts, asking = in_jobs.show(store, request, voice)
    lines = [choice.quote_lines(request.cluster, attempt, facts, asking) for attempt in bound]
    voice.plan(request.plan, bound, lines)
    pasted = {
        attempt.trial: {node: " ".join(words) for node, words in by_node.items()}
        for attempt, by_node in zip(bound, lines, strict=True)
    }
    return voice.finish({"plan": bind.describe(request.plan, bound), "lines": pasted, **scripts})


def sweep(store: Store, options: SweepOptions, caller: Caller) -> int:
    """Run every chosen trial that has no valid outcome yet, then collect; exit code.

    Raises:
        Stopped, Interrupted: a signal came; nothing that was started still runs.
        LeftoverError: tasks may still run on nodes.
    """

    def elsewhere(request: Requested) -> int | None:
        from orchestrator.sweeping import in_jobs

        return in_jobs.submit_sweep(store, request, caller.voice)

    def show(opened: Sweep, found: Report, names: frozenset[str]) -> int:
        report_files.write(opened, found)
        page = opened.folder / report_files.html("en")
        return report_files.present(found, caller.voice, page, names)

    return run.run(store, options, caller, show, elsewhere=elsewhere)
