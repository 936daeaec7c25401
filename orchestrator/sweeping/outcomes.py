"""Judge how an attempt ended: state, problems and measurement."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.collecting import evidence, nodes_seen, package
from orchestrator.collecting.evidence import KeptOutcome
from orchestrator.collecting.sweep import measure_trial
from orchestrator.inputs import user_files
from orchestrator.measuring import endings
from orchestrator.model.attempt import Attempt, GangEnd, Outcome
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.planning import bind, environment
from orchestrator.state import contents
from orchestrator.sweeping.campaign import Campaign


def load(campaign: Campaign, trial: Trial) -> KeptOutcome:
    """Return a trial's recorded outcome; marks of its nodes are problems of a strict sweep."""
    kept = evidence.check_outcome(campaign.sweep, trial, campaign.history(trial))
    marks = kept.outcome.marks if campaign.request.options.strict and kept.outcome else ()
    return replace(kept, problems=(*kept.problems, *marks))


def value(campaign: Campaign, trial: Trial) -> float | None:
    """Return the throughput of a trial that need not be run again, else None."""
    kept = load(campaign, trial)
    return kept.outcome.throughput if kept.valid and kept.outcome else None


def judge(
    campaign: Campaign,
    trial: Trial,
    attempt: Attempt,
    ended: GangEnd | tuple[str, Problem],
    missing: tuple[Problem, ...],
) -> Outcome:
    """Return the outcome of an attempt whose files are here; keep its log if its gang ended well.

    Args:
        ended: state and problem of a gang that did not start, or that nobody watched.
        missing: why files are not here.

    Raises:
        StoreError, LocalError: the log cannot be read or kept.
    """
    folder = campaign.sweep.attempt_folder(trial.name, attempt.number)
    gang = ended if isinstance(ended, GangEnd) else None
    state, problems = "infra-lost" if missing else "valid", missing
    if not isinstance(ended, GangEnd):
        state, problem = ended
        if state == "infra-lost":
            problem = Problem(problem.code, problem.message + _supervisor_errors(folder, attempt))
        problems = (problem, *missing)
    elif ended.reason != "done":
        state, problem = _failure(campaign, folder, attempt, ended)
        problems = (problem, *missing)
    outcome = Outcome(
        trial=trial.name,
        attempt=attempt.number,
        state=state,
        problems=problems,
        throughput=None,
        sha256=None,
        lines=None,
        transport=None,
        provenance=_provenance(campaign, trial, attempt),
        port=attempt.port,
        start_skew_s=gang.start_skew_s if gang else None,
        tasks=evidence.add_checksums(folder, gang.ends) if gang else (),
        observed=nodes_seen.digests(folder, gang.ends) if gang else {},
        beside=_beside(campaign, attempt),
        attempt_sha256=contents.sha256(folder / "attempt.json"),
        code=package.digest(campaign.recipe.workload.name),
    )
    return _measure(campaign, trial, outcome, folder) if state == "valid" else outcome


def _measure(campaign: Campaign, trial: Trial, outcome: Outcome, folder: Path) -> Outcome:
    """Keep and measure the log of an attempt whose gang ended well."""
    campaign.sweep.keep_log(trial.log, folder / f"r{trial.log_rank}.log")
    workload, method = campaign.recipe.workload, campaign.recipe.experiment.method
    changed = (*evidence.changed_logs(folder, outcome.tasks), *_check_code(campaign))
    kept = KeptOutcome(outcome, changed)
    measurement = measure_trial(campaign.sweep, method, trial, workload, kept)
    if campaign.request.options.strict:
        measurement = nodes_seen.strict(measurement)
    return replace(
        outcome,
        state=measurement.state,
        problems=measurement.problems,
        throughput=measurement.throughput,
        sha256=measurement.log.sha256 if measurement.log else None,
        lines=measurement.log.evidence if measurement.log else None,
        transport=measurement.transport,
        marks=nodes_seen.list_marks(measurement),
    )


def _supervisor_errors(folder: Path, attempt: Attempt) -> str:
    """Return the last 500 characters of each supervisor's standard error, for a message."""
    words = []
    for task in attempt.tasks:
        path = folder / f"r{task.node_rank}.err"
        if path.exists() and path.stat().st_size:
            words.append(f"{task.node}: {path.read_text(errors='replace').strip()[-500:]}")
    return f" ({'; '.join(words)})" if words else ""


def _failure(
    campaign: Campaign, folder: Path, attempt: Attempt, gang: GangEnd
) -> tuple[str, Problem]:
    """Return state and problem of a gang that did not end well."""
    by_others = endings.by_others(gang, campaign.recipe.experiment.method)
    if by_others is not None:
        return by_others
    failed = [end for end in gang.ends if end.why == "exited" and end.status]
    logs = {end.node_rank: folder / f"r{end.node_rank}.log" for end in failed}
    last_lines = {rank: nodes_seen.describe_failure(path) for rank, path in logs.items()}
    transports = nodes_seen.read_transports(folder, attempt.tasks, campaign.recipe.workload)
    return endings.of_program(failed, last_lines, attempt.port, transports)


def _beside(campaign: Campaign, attempt: Attempt) -> tuple[str, ...]:
    """Return the trials with an attempt that was open at the same time, by their events."""
    if campaign.recipe.experiment.method.pack == "none":
        return ()
    began = campaign.histories[attempt.trial].begun.get(attempt.number, "")
    return tuple(
        name
        for name, history in [*campaign.histories.items()]
        if name != attempt.trial and any(end == "" or end > began for _, end in history.spans())
    )


def _check_code(campaign: Campaign) -> Iterable[Problem]:
    """Yield CODE-CHANGED if the program's folder on this machine was edited since the sweep began.

    An image cannot change, and code on other nodes is in a folder named by its digest.
    """
    program = campaign.recipe.program
    cluster = campaign.recipe.cluster
    if cluster.in_containers or not cluster.shares_files:
        return
    digest = user_files.folder_digest(Path(program.code))
    if digest != program.digest:
        words = f"the program's folder has digest {digest} now; the sweep uses {program.digest}"
        yield Problem("CODE-CHANGED", words)


def _provenance(campaign: Campaign, trial: Trial, attempt: Attempt) -> dict[str, str]:
    """Return what trials of one median must share: hardware and commands, not node names."""
    recipe = campaign.recipe
    observed = [facts for node in attempt.nodes if (facts := campaign.site.nodes.get(node))]
    gpus = [facts.gpu for facts in observed if facts.gpu]
    added = environment.added(recipe.cluster, recipe.experiment)
    return {
        "image": recipe.program.digest,
        "tasks": bind.fingerprint(bind.anonymize(recipe, trial, attempt.allocation)),
        "cpus": _alike(str(facts.host.cpus) for facts in observed),
        "gpu": _alike(" + ".join(dict.fromkeys(gpu.models)) for gpu in gpus),
        "library_path": campaign.inherited_env.get("LD_LIBRARY_PATH", ""),
        "kernel": _alike(facts.host.kernel for facts in observed),
        "torch": _alike(facts.host.torch for facts in observed),
        "driver": _alike(str(gpu.driver) for gpu in gpus),
        # Only where there are some: outcomes of versions before had no such key.
        **({"env": " ".join(f"{name}={added[name]}" for name in sorted(added))} if added else {}),
    }


def _alike(values: Iterable[str]) -> str:
    return ",".join(sorted(set(values) - {""}))
