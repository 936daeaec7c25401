"""Run the attempts at a trial, or adopt them from an earlier run; judge how each ended."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.collecting import evidence, nodes_seen, package
from orchestrator.collecting.sweep import measure_trial
from orchestrator.console.view import Row, View
from orchestrator.deadlines import COMMAND_S
from orchestrator.inputs import user_files
from orchestrator.launchers import mpirun
from orchestrator.launchers.mpirun import Keys
from orchestrator.measuring import endings
from orchestrator.model.attempt import Allocation, Attempt, GangEnd, Outcome
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.sweep import Adopted, Ended, Intent
from orchestrator.model.text import Endpoint
from orchestrator.planning import bind, environment
from orchestrator.probes import room
from orchestrator.retries import ATTEMPTS
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.signals import SIGNALS
from orchestrator.state import contents
from orchestrator.state.files import now
from orchestrator.sweeping import closing
from orchestrator.sweeping.campaign import Campaign
from orchestrator.transports import keys

LONGEST_LINE = 64 << 10
AGAIN_S = 0.2  # between two requests for nodes that are taken


def settle(campaign: Campaign, view: View, trial: Trial) -> None:
    """Settle attempts that an earlier run left open: adopt what runs, close the others."""
    sweep, scheduler = campaign.sweep, campaign.scheduler
    for number in campaign.history(trial).open:
        attempt = sweep.attempt(trial.name, number)
        reached = scheduler.reclaim(attempt)
        is_latest = campaign.history(trial).attempts == number
        if is_latest and len(reached.tasks) == len(attempt.tasks):
            _settle_latest(campaign, trial, attempt, view)
            scheduler.release(attempt.allocation)  # after an error it may still run
            continue
        closing.close_left(sweep, scheduler, attempt)
        if not is_latest:  # the outcome that counts is a later attempt's
            campaign.histories[trial.name] = sweep.histories()[trial.name]
        if out := nodeset.fold(node for node in attempt.nodes if node not in reached.nodes):
            campaign.voice.line(
                f"{trial.name} a{number} was ended, except on {out}, left out this time"
            )


def _settle_latest(campaign: Campaign, trial: Trial, attempt: Attempt, view: View) -> None:
    name = f"{trial.name} a{attempt.number}"
    if attempt.number in campaign.history(trial).found:
        campaign.voice.line(f"{name}: its folder exists, but events.jsonl has no entry for it")
    if campaign.scheduler.adoptable(attempt):
        campaign.voice.line(f"{name}: adopted from an earlier run")
        campaign.sweep.append(Adopted(at=now(), trial=trial.name, attempt=attempt.number))
        with view.trial(trial.name, campaign.iterations, campaign.sweep.id) as row:
            row.attempt(attempt.number)
            state, code = _watch(campaign, trial, attempt, row)
            row.ended(state, code, final=state == "valid")
    else:
        words = "the run that started it ended before all its tasks had started"
        _close(campaign, trial, attempt, ("infra-lost", Problem(closing.LOST, words)))


def run(campaign: Campaign, trial: Trial, view: View) -> str:
    """Run a trial until it has an outcome or no retry is left; return the last attempt's state."""
    retries: Counter[str] = Counter()
    try:
        with view.trial(trial.name, campaign.iterations, campaign.sweep.id) as row:
            while (given := _allocate(campaign, trial)) is not None:
                try:
                    state, code = _begin(campaign, trial, given, row)
                except errors.LeftoverError:
                    raise  # it may still run on its nodes
                except BaseException:
                    campaign.scheduler.release(given)
                    raise
                campaign.scheduler.release(given)
                again = state == "infra-lost" and retries[code] < ATTEMPTS.get(code, 0)
                row.ended(state, code, final=not again and state != "interrupted")
                if not again:
                    return state
                retries[code] += 1
        return "interrupted"
    except BaseException:
        campaign.failed.set()
        raise


def _allocate(campaign: Campaign, trial: Trial) -> Allocation | None:
    """Take nodes for the next attempt at a trial; return None if the sweep is ending."""
    number = campaign.history(trial).attempts + 1
    with campaign.next:
        prefer = campaign.rotation.order(trial)
        request = replace(bind.request(campaign.recipe, trial, number), prefer=prefer)
        while not (SIGNALS.stopping() or campaign.failed.is_set()):
            campaign.scheduler.check()
            if (given := campaign.scheduler.allocate(request)) is not None:
                campaign.rotation.add(trial, (seat.node for seat in given.seats))
                return given
            time.sleep(AGAIN_S)
    return None


def _begin(campaign: Campaign, trial: Trial, given: Allocation, row: Row) -> tuple[str, str]:
    """Bind and record an attempt, then run it; return its state, and its problem or throughput."""
    number = campaign.history(trial).attempts + 1
    attempt = bind.bind(campaign.recipe, trial, given, number, campaign.sweep.id)
    campaign.sweep.keep_attempt(attempt, campaign.inherited_env)
    intent = Intent(at=now(), trial=trial.name, attempt=number, port=attempt.port, log=trial.log)
    campaign.sweep.append(intent)
    campaign.history(trial).add(intent)
    row.attempt(number)
    refused: errors.DlperfError | None = None
    is_open = False
    try:
        write_service_files(campaign.scheduler, attempt)
        is_open = campaign.scheduler.launch(attempt, campaign.limits)
    except errors.DlperfError as error:
        refused = error
    if is_open:
        return _watch(campaign, trial, attempt, row)
    state, problem = "infra-lost", Problem("START", "not every task was ready to start")
    may_pass = isinstance(refused, errors.NodeError)
    if refused is not None:
        code = "START" if may_pass and refused.code not in ATTEMPTS else refused.code
        problem = Problem(code, f"node {refused.where.get('node', '?')}: {refused.cause}")
    elif SIGNALS.stopping():
        state = "interrupted"
        problem = Problem("INTERRUPTED", "stopped before its tasks had started")
    closed = _close(campaign, trial, attempt, (state, problem))
    if refused is not None and not may_pass:
        raise refused
    return closed


def _watch(campaign: Campaign, trial: Trial, attempt: Attempt, row: Row) -> tuple[str, str]:
    rest = b""

    def show(piece: bytes) -> None:
        """Show the last iteration of each piece of log in the row; pieces may cut lines."""
        nonlocal rest
        whole, newline, rest = (rest + piece).rpartition(b"\n")
        rest = rest[-LONGEST_LINE:]
        if progress := campaign.recipe.workload.progress(whole + newline):
            row.progress(*progress)

    campaign.begun(campaign.sweep)
    try:
        gang = campaign.scheduler.wait(attempt, campaign.limits, show)
    except BaseException:
        closing.end_attempt(campaign.scheduler, attempt)
        raise
    for why in ("unreachable", "docker-down", "docker-hung"):
        # Before it is closed, which asks these nodes once more and takes a while.
        if silent := nodeset.fold(end.node for end in gang.ends if end.why == why):
            code, words = endings.LOST[why]
            campaign.voice.line(f"{code} {silent}: {words}; other tasks were ended")
    return _close(campaign, trial, attempt, gang)


def _close(
    campaign: Campaign, trial: Trial, attempt: Attempt, ended: GangEnd | tuple[str, Problem]
) -> tuple[str, str]:
    """End what still runs of an attempt, keep its outcome and clean its nodes.

    Args:
        ended: state and problem of a gang that did not start, or that nobody watched.

    Returns:
        The state, and its throughput with its unit or the code of its first problem.

    Raises:
        UnfitError: DISK-FULL or WRITE; a node has no room for the next attempt either.
    """
    sweep, scheduler = campaign.sweep, campaign.scheduler
    gang = ended if isinstance(ended, GangEnd) else None
    missing = closing.end_and_copy(sweep, scheduler, attempt, gang)
    if gang is not None:
        scheduler.check()
    outcome = _judge(campaign, trial, attempt, ended, missing)
    full = None
    if outcome.state not in ("valid", "interrupted"):
        full = _find_full_node(campaign, attempt, outcome)
    if full:
        problem = Problem(full.code, f"node {full.where['node']}: {full.cause}")
        outcome = replace(outcome, state="infra-lost", problems=(problem, *outcome.problems))
    first = outcome.problems[0] if outcome.problems else Problem("", "")
    event = Ended(
        at=now(),
        trial=trial.name,
        attempt=attempt.number,
        state=outcome.state,
        code=first.code,
        message=first.message,
        sha256=outcome.sha256,
        outcome=sweep.keep_outcome(trial.log, outcome),
    )
    sweep.append(event)
    campaign.history(trial).add(event)
    closing.forget_folders(sweep, scheduler, attempt)
    if full:
        raise full
    if outcome.throughput is not None and not first.code:
        return outcome.state, f"{outcome.throughput:.2f} {campaign.recipe.workload.unit}"
    return outcome.state, first.code


def _judge(
    campaign: Campaign,
    trial: Trial,
    attempt: Attempt,
    ended: GangEnd | tuple[str, Problem],
    missing: tuple[Problem, ...],
) -> Outcome:
    """Return the outcome of an attempt whose files are here, except those that ``missing`` names.

    Keep its log if its gang ended well.
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
    if state != "valid":
        return outcome
    campaign.sweep.keep_log(trial.log, folder / f"r{trial.log_rank}.log")
    workload, method = campaign.recipe.workload, campaign.recipe.experiment.method
    changed = (*evidence.changed_logs(folder, outcome.tasks), *_check_code(campaign))
    kept = evidence.KeptOutcome(outcome, changed)
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
    words = []
    for task in attempt.tasks:
        path = folder / f"r{task.node_rank}.err"
        if path.exists() and path.stat().st_size:
            words.append(f"{task.node}: {path.read_text(errors='replace').strip()[-500:]}")
    return f" ({'; '.join(words)})" if words else ""


def _failure(
    campaign: Campaign, folder: Path, attempt: Attempt, gang: GangEnd
) -> tuple[str, Problem]:
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
    program, cluster = campaign.recipe.program, campaign.recipe.cluster
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

    def alike(values: Iterable[str]) -> str:
        return ",".join(sorted({*values} - {""}))

    return {
        "image": recipe.program.digest,
        "tasks": bind.fingerprint(bind.anonymize(recipe, trial, attempt.allocation)),
        "cpus": alike(str(facts.host.cpus) for facts in observed),
        "gpu": alike(" + ".join(dict.fromkeys(gpu.models)) for gpu in gpus),
        "library_path": campaign.inherited_env.get("LD_LIBRARY_PATH", ""),
        "kernel": alike(facts.host.kernel for facts in observed),
        "torch": alike(facts.host.torch for facts in observed),
        "driver": alike(str(gpu.driver) for gpu in gpus),
        # Only where there are some: outcomes of versions before had no such key.
        **({"env": " ".join(f"{name}={added[name]}" for name in sorted(added))} if added else {}),
    }


def _find_full_node(
    campaign: Campaign, attempt: Attempt, outcome: Outcome
) -> errors.UnfitError | None:
    """Return the error for the first node of an attempt that has no room, if one has none."""
    silent = {end.node for end in outcome.tasks if end.why == "unreachable"}
    cluster = campaign.recipe.cluster
    there = {node.name for node in cluster.members} - silent  # no node of an earlier job
    asked = {
        seat.node: room.argv(seat.root, in_container=cluster.in_containers)
        for seat in attempt.seats
        if seat.node in there
    }
    for answer in campaign.scheduler.ask(asked, COMMAND_S) if asked else ():
        output = answer.value.stdout.decode(errors="replace") if answer.value else ""
        for error in room.parse(output, node=answer.node, trial=attempt.trial):
            return error
    return None


def write_service_files(scheduler: Scheduler, attempt: Attempt) -> None:
    """Write fresh keys and settings into the folders of the attempt's tasks, where any needs them.

    After an error some files may be written; they are removed with the folders.
    """
    if not any(task.files for task in attempt.tasks):
        return
    folder, *more = sorted({attempt.folder(task) for task in attempt.tasks})
    if more:
        raise errors.UnfitError(
            f"the nodes keep this attempt in {', '.join((folder, *more))};"
            " mpirun's ranks have one working folder everywhere",
            code="FOLDERS",
            trial=attempt.trial,
            fix="give the nodes of the inventory the same `folder`",
        )
    user, known, files = Keys(*keys.generate()), dict[str, Keys](), dict[int, dict[str, bytes]]()
    for task in reversed(attempt.tasks):  # the leader, which knows the others' keys, is the first
        rank, address = task.node_rank, attempt.seats[task.node_rank].address
        if rank == 0:
            contents = mpirun.leader_files(folder, user, known, attempt.port)
        else:
            known[address] = Keys(*keys.generate())
            at = Endpoint(address, port=attempt.port)
            contents = mpirun.service_files(folder, rank, user, known[address], at)
        files[rank] = {name: contents[name].encode() for name in task.files}
    scheduler.write(attempt, files)
