"""Judge how an attempt ended, and keep its outcome: state, problems and measurement."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.collecting import causes, evidence, logs, nodes_seen, package
from orchestrator.collecting.evidence import KeptOutcome
from orchestrator.inputs import user_files
from orchestrator.measuring import endings, validity
from orchestrator.model.attempt import Attempt, GangEnd, Outcome
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement
from orchestrator.model.site import NodeFacts
from orchestrator.model.sweep import Ended
from orchestrator.planning import bind, environment
from orchestrator.state import contents
from orchestrator.state.files import now
from orchestrator.sweeping.campaign import Campaign


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement over an attempt.

    Args:
        state: valid, invalid, failed, infra-lost or interrupted.
        problems: why it is not valid.
        gang: how its tasks ended; None where it did not start, or nobody watched it.
        measurement: None where its log was not measured.
    """

    state: str
    problems: tuple[Problem, ...]
    gang: GangEnd | None = None
    measurement: Measurement | None = None


def is_done(campaign: Campaign, trial: Trial) -> bool:
    """Return True if a trial has a valid outcome whose evidence is complete and unchanged."""
    return value(campaign, trial) is not None


def value(campaign: Campaign, trial: Trial) -> float | None:
    """Return the throughput of a trial that need not be run again, else None."""
    kept = _load_outcome(campaign, trial)
    done = kept.valid and not _list_marks(campaign, kept)
    return kept.outcome.throughput if done and kept.outcome else None


def nodes(campaign: Campaign, trial: Trial) -> tuple[str, ...]:
    """Return the nodes of a trial's valid outcome; empty without one."""
    kept = _load_outcome(campaign, trial)
    return tuple(end.node for end in kept.outcome.tasks) if kept.outcome and kept.valid else ()


def say_uncounted(campaign: Campaign, trials: Iterable[Trial]) -> None:
    """Say which trials have an outcome that does not count, and are measured again."""
    for trial in trials:
        kept = _load_outcome(campaign, trial)
        for problem in (*kept.problems, *_list_marks(campaign, kept)):
            campaign.voice.line(f"{trial.name}: measured again: {problem.code}: {problem.message}")


def _load_outcome(campaign: Campaign, trial: Trial) -> KeptOutcome:
    return evidence.check_outcome(campaign.sweep, trial, campaign.history(trial))


def _list_marks(campaign: Campaign, kept: KeptOutcome) -> tuple[Problem, ...]:
    """Return the marks for which a strict sweep refuses an outcome that is valid otherwise."""
    return kept.outcome.marks if campaign.strict and kept.outcome else ()


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
    fabrics = nodes_seen.read_transports(folder, attempt.tasks, campaign.recipe.workload)
    return endings.of_program(failed, last_lines, attempt.port, fabrics)


def measure(campaign: Campaign, trial: Trial, attempt: Attempt, gang: GangEnd) -> Judgement:
    """Measure the log of an attempt whose gang ended well, judge it, and keep the log.

    Raises:
        StoreError, LocalError: the log cannot be read or kept.
    """
    source = _file(campaign, attempt, trial.log_rank, "log")
    method = campaign.recipe.experiment.method
    log = logs.read(source, campaign.recipe.workload, method.window)
    measurement = validity.measure_log(
        log, trial.case, method, trial=trial.name, repeat=trial.repeat, path=f"logs/{trial.log}"
    )
    folder = campaign.sweep.attempt_folder(attempt.trial, attempt.number)
    ends = evidence.add_checksums(folder, gang.ends)
    measurement = measurement.with_problems(evidence.changed_logs(folder, ends))
    measurement = measurement.with_problems(_check_code(campaign))
    if len(attempt.tasks) > 1:
        workload = campaign.recipe.workload
        measurement = nodes_seen.add_transport(measurement, attempt, folder, workload)
    measurement = nodes_seen.add_state(measurement, log, folder, ends)
    if campaign.strict:
        measurement = nodes_seen.strict(measurement)
    campaign.sweep.keep_log(trial.log, source)
    return Judgement(measurement.state, measurement.problems, gang, measurement)


def keep(
    campaign: Campaign, trial: Trial, attempt: Attempt, judgement: Judgement
) -> tuple[str, str]:
    """Write an attempt's outcome beside its log, then the event that makes it count.

    Returns:
        The state, and its throughput with its unit or the code of its first problem.
    """
    outcome = _outcome(campaign, trial, attempt, judgement)
    sha256 = campaign.sweep.keep_outcome(trial.log, outcome)
    first = judgement.problems[0] if judgement.problems else Problem("", "")
    ended = Ended(
        at=now(),
        trial=trial.name,
        attempt=attempt.number,
        state=judgement.state,
        code=first.code,
        message=first.message,
        sha256=outcome.sha256,
        outcome=sha256,
    )
    campaign.sweep.append(ended)
    campaign.history(trial).add(ended)
    if outcome.throughput is not None and not first.code:
        return judgement.state, f"{outcome.throughput:.2f} {campaign.recipe.workload.unit}"
    return judgement.state, first.code


def _outcome(campaign: Campaign, trial: Trial, attempt: Attempt, judgement: Judgement) -> Outcome:
    measurement, gang = judgement.measurement, judgement.gang
    folder = campaign.sweep.attempt_folder(attempt.trial, attempt.number)
    read = measurement.evidence if measurement else None
    return Outcome(
        trial=trial.name,
        attempt=attempt.number,
        state=judgement.state,
        problems=judgement.problems,
        throughput=measurement.throughput if measurement else None,
        sha256=read.sha256 if read else None,
        lines=read.lines if read else None,
        transport=measurement.transport if measurement else None,
        provenance=_provenance(campaign, trial, attempt),
        port=attempt.port,
        start_skew_s=gang.start_skew_s if gang else None,
        tasks=evidence.add_checksums(folder, gang.ends) if gang else (),
        observed=nodes_seen.digests(folder, gang.ends) if gang else {},
        marks=nodes_seen.list_marks(measurement) if measurement else (),
        beside=_beside(campaign, attempt),
        attempt_sha256=contents.sha256(folder / "attempt.json"),
        code=package.digest(campaign.recipe.workload.name),
    )


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
    recipe = campaign.recipe
    added = environment.added(recipe.cluster, recipe.experiment)
    return {
        "image": recipe.program.digest,
        "tasks": bind.fingerprint(started),
        "cpus": _alike(str(facts.host.cpus) for facts in observed),
        "gpu": _alike(_gpus(facts) for facts in observed),
        "library_path": campaign.inherited_env.get("LD_LIBRARY_PATH", ""),
        "kernel": _alike(facts.host.kernel for facts in observed),
        "torch": _alike(facts.host.torch for facts in observed),
        "driver": _alike(_driver(facts) for facts in observed),
        # Only where there are some: outcomes of versions before had no such key.
        **({"env": " ".join(f"{name}={added[name]}" for name in sorted(added))} if added else {}),
    }


def _alike(values: Iterable[str]) -> str:
    return ",".join(sorted(set(values) - {""}))


def _gpus(facts: NodeFacts) -> str:
    return " + ".join(dict.fromkeys(facts.gpu.models)) if facts.gpu else ""


def _driver(facts: NodeFacts) -> str:
    return str(facts.gpu.driver) if facts.gpu else ""
