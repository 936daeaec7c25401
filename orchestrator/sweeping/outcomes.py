"""Judge how an attempt ended, and keep its outcome: state, problems and measurement."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.collecting import causes, evidence, logs, nodes_seen, package
from orchestrator.collecting.evidence import KeptOutcome
from orchestrator.inputs import user_files
from orchestrator.measuring import endings, validity
from orchestrator.model.attempt import Attempt, GangEnd, Outcome
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.sweep import Ended
from orchestrator.planning import bind, environment
from orchestrator.state import contents
from orchestrator.state.files import now
from orchestrator.sweeping.campaign import Campaign


def load(campaign: Campaign, trial: Trial) -> KeptOutcome:
    """Return a trial's recorded outcome; marks of its nodes are problems of a strict sweep."""
    kept = evidence.check_outcome(campaign.sweep, trial, campaign.history(trial))
    marks = kept.outcome.marks if campaign.strict and kept.outcome else ()
    return replace(kept, problems=(*kept.problems, *marks))


def value(campaign: Campaign, trial: Trial) -> float | None:
    """Return the throughput of a trial that need not be run again, else None."""
    kept = load(campaign, trial)
    return kept.outcome.throughput if kept.valid and kept.outcome else None


def supervisor_errors(campaign: Campaign, attempt: Attempt) -> str:
    """Return the last 500 characters of each supervisor's standard error, for a message."""
    words = []
    for task in attempt.tasks:
        path = _file(campaign, attempt, task.node_rank, "err")
        if path.exists() and path.stat().st_size:
            words.append(f"{task.node}: {path.read_text(errors='replace').strip()[-500:]}")
    return f" ({'; '.join(words)})" if words else ""


def failure(campaign: Campaign, attempt: Attempt, gang: GangEnd) -> tuple[str, Problem]:
    """Return state and problem of a gang that did not end well."""
    by_others = endings.by_others(gang, campaign.recipe.experiment.method)
    if by_others is not None:
        return by_others
    failed = [end for end in gang.ends if end.why == "exited" and end.status]
    last_lines = {
        end.node_rank: causes.words(_file(campaign, attempt, end.node_rank, "log"))
        for end in failed
    }
    folder = campaign.sweep.attempt_folder(attempt.trial, attempt.number)
    transports = nodes_seen.read_transports(folder, attempt.tasks, campaign.recipe.workload)
    return endings.of_program(failed, last_lines, attempt.port, transports)


def measure(campaign: Campaign, trial: Trial, attempt: Attempt, gang: GangEnd) -> Outcome:
    """Keep and measure the log of an attempt whose gang ended well, and judge it.

    Raises:
        StoreError, LocalError: the log cannot be read or kept.
    """
    source = _file(campaign, attempt, trial.log_rank, "log")
    campaign.sweep.keep_log(trial.log, source)
    unmeasured = describe(campaign, trial, attempt, "valid", (), gang)
    workload, method = campaign.recipe.workload, campaign.recipe.experiment.method
    log = logs.read(source, workload, method.window)
    measurement = validity.measure_log(
        log, trial.case, method, trial=trial.name, repeat=trial.repeat, path=f"logs/{trial.log}"
    )
    folder = campaign.sweep.attempt_folder(attempt.trial, attempt.number)
    changed = evidence.changed_logs(folder, unmeasured.tasks)
    measurement = measurement.with_problems((*changed, *_check_code(campaign)))
    if len(attempt.tasks) > 1:
        measurement = nodes_seen.add_transport(measurement, attempt, folder, workload)
    measurement = nodes_seen.add_state(measurement, log, folder, unmeasured.tasks)
    if campaign.strict:
        measurement = nodes_seen.strict(measurement)
    return replace(
        unmeasured,
        state=measurement.state,
        problems=measurement.problems,
        throughput=measurement.throughput,
        sha256=measurement.evidence.sha256 if measurement.evidence else None,
        lines=measurement.evidence.lines if measurement.evidence else None,
        transport=measurement.transport,
        marks=nodes_seen.list_marks(measurement),
    )


def describe(
    campaign: Campaign,
    trial: Trial,
    attempt: Attempt,
    state: str,
    problems: tuple[Problem, ...],
    gang: GangEnd | None = None,
) -> Outcome:
    """Return the outcome of an attempt whose log was not measured.

    Args:
        gang: how its tasks ended; None where it did not start, or nobody watched it.
    """
    folder = campaign.sweep.attempt_folder(attempt.trial, attempt.number)
    return Outcome(
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


def keep(campaign: Campaign, trial: Trial, outcome: Outcome) -> tuple[str, str]:
    """Write an attempt's outcome beside its log, then the event that makes it count.

    Returns:
        The state, and its throughput with its unit or the code of its first problem.
    """
    sha256 = campaign.sweep.keep_outcome(trial.log, outcome)
    first = outcome.problems[0] if outcome.problems else Problem("", "")
    ended = Ended(
        at=now(),
        trial=trial.name,
        attempt=outcome.attempt,
        state=outcome.state,
        code=first.code,
        message=first.message,
        sha256=outcome.sha256,
        outcome=sha256,
    )
    campaign.sweep.append(ended)
    campaign.history(trial).add(ended)
    if outcome.throughput is not None and not first.code:
        return outcome.state, f"{outcome.throughput:.2f} {campaign.recipe.workload.unit}"
    return outcome.state, first.code


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


def _file(campaign: Campaign, attempt: Attempt, node_rank: int, name: str) -> Path:
    return campaign.sweep.attempt_folder(attempt.trial, attempt.number) / f"r{node_rank}.{name}"


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
    started = bind.anonymize(campaign.recipe, trial, attempt.allocation)
    observed = [facts for node in attempt.nodes if (facts := campaign.site.nodes.get(node))]
    gpus = [facts.gpu for facts in observed if facts.gpu]
    recipe = campaign.recipe
    added = environment.added(recipe.cluster, recipe.experiment)
    return {
        "image": recipe.program.digest,
        "tasks": bind.fingerprint(started),
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
