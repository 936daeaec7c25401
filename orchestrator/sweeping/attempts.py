"""Run the trials of a sweep, attempt by attempt; settle what an earlier run left behind."""

import time
from collections.abc import Mapping
from dataclasses import replace

from orchestrator import errors, nodeset
from orchestrator.console.view import Row, View
from orchestrator.deadlines import COMMAND_S
from orchestrator.launchers import mpirun
from orchestrator.launchers.mpirun import Keys
from orchestrator.measuring.endings import LOST
from orchestrator.model.attempt import Attempt, Outcome
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.sweep import Adopted, Intent
from orchestrator.model.text import Endpoint
from orchestrator.planning import bind
from orchestrator.probes import room
from orchestrator.retries import ATTEMPTS
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.state.files import now
from orchestrator.sweeping import closing, lanes, outcomes
from orchestrator.sweeping.campaign import Campaign
from orchestrator.transports import keys

LONGEST_LINE = 64 << 10
AGAIN_S = 0.2  # between two requests for nodes that are taken


def settle(campaign: Campaign, view: View) -> None:
    """Settle attempts that an earlier run left open: adopt what runs, close the others.

    Raises:
        LeftoverError: a process or container of theirs could not be ended.
        UnfitError: NODE-MOVED; the inventory gives a node's name to another machine now.
    """
    trials = campaign.sweep.record().plan.trials  # not only those that this command requests
    left = [trial for trial in trials if campaign.history(trial).open]

    def deal(trial: Trial) -> None:
        for number in campaign.history(trial).open:
            attempt = campaign.sweep.attempt(trial.name, number)
            reached = campaign.scheduler.reclaim(attempt)
            is_latest = campaign.history(trial).attempts == number
            if is_latest and len(reached.tasks) == len(attempt.tasks):
                _settle(campaign, trial, attempt, view)
                campaign.scheduler.release(attempt.allocation)  # after an error it may still run
                continue
            closing.close_left(campaign.sweep, campaign.scheduler, attempt)
            if not is_latest:  # the outcome that counts is a later attempt's
                campaign.histories[trial.name] = campaign.sweep.histories()[trial.name]
            if out := nodeset.fold(node for node in attempt.nodes if node not in reached.nodes):
                name = f"{attempt.trial} a{attempt.number}"
                campaign.voice.line(f"{name} was ended, except on {out}, left out this time")

    # A signal does not stop this: each gang that is adopted ends by itself then.
    say = campaign.voice.line
    lanes.run(left, deal, lanes=campaign.scheduler.lanes, may_begin=lambda: True, say=say)
    if not any(history.open for history in campaign.histories.values()):
        record = campaign.sweep.record()
        campaign.sweep.keep_record(replace(record, inventory=campaign.recipe.cluster))


def _settle(campaign: Campaign, trial: Trial, attempt: Attempt, view: View) -> None:
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
        missing = closing.end_and_copy(campaign.sweep, campaign.scheduler, attempt)
        problems = (Problem(closing.LOST, words), *missing)
        lost = outcomes.describe(campaign, trial, attempt, "infra-lost", problems)
        _close(campaign, trial, attempt, lost)


def run(campaign: Campaign, trial: Trial, view: View) -> str:
    """Run a trial until it has an outcome or no retry is left; return the last attempt's state.

    Returns:
        valid, invalid, failed, infra-lost or interrupted.

    Raises:
        LeftoverError: a process or container of an attempt could not be ended.
    """
    retries: dict[str, int] = {}
    try:
        with view.trial(trial.name, campaign.iterations, campaign.sweep.id) as row:
            while (attempt := _bind_next(campaign, trial)) is not None:
                try:
                    state, code = _begin(campaign, trial, attempt, row)
                except errors.LeftoverError:
                    raise  # it may still run on its nodes
                except BaseException:
                    campaign.scheduler.release(attempt.allocation)
                    raise
                campaign.scheduler.release(attempt.allocation)
                again = state == "infra-lost" and retries.get(code, 0) < ATTEMPTS.get(code, 0)
                row.ended(state, code, final=not again and state != "interrupted")
                if not again:
                    return state
                retries[code] = retries.get(code, 0) + 1
        return "interrupted"
    except BaseException:
        campaign.failed.set()
        raise


def _bind_next(campaign: Campaign, trial: Trial) -> Attempt | None:
    """Return the next attempt at a trial, on nodes of its own; None if the sweep is ending."""
    number = campaign.history(trial).attempts + 1
    with campaign.next:
        prefer = campaign.rotation.order(trial)
        request = replace(bind.request(campaign.recipe, trial, number), prefer=prefer)
        given = None
        while given is None and not (campaign.stopping or campaign.failed.is_set()):
            campaign.scheduler.check()
            given = campaign.scheduler.allocate(request)
            if given is None:
                time.sleep(AGAIN_S)
    if given is None:
        return None
    campaign.rotation.add(trial, (seat.node for seat in given.seats))
    try:
        return bind.bind(campaign.recipe, trial, given, number, campaign.sweep.id)
    except BaseException:
        campaign.scheduler.release(given)
        raise


def _begin(campaign: Campaign, trial: Trial, attempt: Attempt, row: Row) -> tuple[str, str]:
    """Record an attempt, then run it; return its state, and its problem or throughput."""
    campaign.sweep.keep_attempt(attempt, campaign.inherited_env)
    intent = Intent(
        at=now(), trial=trial.name, attempt=attempt.number, port=attempt.port, log=trial.log
    )
    campaign.sweep.append(intent)
    campaign.history(trial).add(intent)
    row.attempt(attempt.number)
    refused: errors.DlperfError | None = None
    opened = False
    try:
        write_service_files(campaign.scheduler, attempt)
        opened = campaign.scheduler.launch(attempt, campaign.limits)
    except errors.DlperfError as error:
        refused = error
    if opened:
        return _watch(campaign, trial, attempt, row)
    closing.end_and_copy(campaign.sweep, campaign.scheduler, attempt)
    state, may_pass = "infra-lost", isinstance(refused, errors.NodeError)
    if refused is not None:
        words = f"node {refused.where.get('node', '?')}: {refused.cause}"
        problem = Problem(refused.code, words)
        if may_pass and refused.code not in ATTEMPTS:
            problem = Problem("START", words)
    elif campaign.stopping:
        state = "interrupted"
        problem = Problem("INTERRUPTED", "stopped before its tasks had started")
    else:
        words = f"not every task was ready to start{outcomes.supervisor_errors(campaign, attempt)}"
        problem = Problem("START", words)
    outcome = outcomes.describe(campaign, trial, attempt, state, (problem,))
    closed = _close(campaign, trial, attempt, outcome)
    if refused is not None and not may_pass:
        raise refused
    return closed


def _watch(campaign: Campaign, trial: Trial, attempt: Attempt, row: Row) -> tuple[str, str]:
    read = _RowProgress(campaign, row)
    campaign.caller.begun(campaign.sweep)
    try:
        gang = campaign.scheduler.wait(attempt, campaign.limits, read)
    except BaseException:
        closing.end_attempt(campaign.scheduler, attempt)
        raise
    for why in ("unreachable", "docker-down", "docker-hung"):
        # Before it is closed, which asks these nodes once more and takes a while.
        if silent := nodeset.fold(end.node for end in gang.ends if end.why == why):
            code, words = LOST[why]
            campaign.voice.line(f"{code} {silent}: {words}; other tasks were ended")
    problems = closing.end_and_copy(campaign.sweep, campaign.scheduler, attempt, gang)
    campaign.scheduler.check()
    if gang.reason == "done" and not problems:
        outcome = outcomes.measure(campaign, trial, attempt, gang)
    else:
        state = "infra-lost"
        if gang.reason != "done":
            state, problem = outcomes.failure(campaign, attempt, gang)
            problems = (problem, *problems)
        outcome = outcomes.describe(campaign, trial, attempt, state, problems, gang)
    return _close(campaign, trial, attempt, outcome)


def _close(campaign: Campaign, trial: Trial, attempt: Attempt, outcome: Outcome) -> tuple[str, str]:
    """Keep the outcome of an attempt that has ended, clean its nodes; return its state and code.

    Raises:
        UnfitError: DISK-FULL or WRITE; a node has no room for the next attempt either.
    """
    full = None
    if outcome.state not in ("valid", "interrupted"):
        full = _find_full_node(campaign, attempt, outcome)
    if full:
        problem = Problem(full.code, f"node {full.where['node']}: {full.cause}")
        outcome = replace(outcome, state="infra-lost", problems=(problem, *outcome.problems))
    kept = outcomes.keep(campaign, trial, outcome)
    closing.forget_folders(campaign.sweep, campaign.scheduler, attempt)
    if full:
        raise full
    return kept


def _find_full_node(
    campaign: Campaign, attempt: Attempt, outcome: Outcome
) -> errors.UnfitError | None:
    """Return the error for the first node of an attempt that has no room, if one has none."""
    silent = {end.node for end in outcome.tasks if end.why == "unreachable"}
    cluster = campaign.recipe.cluster
    there = {node.name for node in cluster.members} - silent  # not a node of an earlier job
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


class _RowProgress:
    """Show the last iteration of each piece of log in the row; pieces may cut lines."""

    def __init__(self, campaign: Campaign, row: Row) -> None:
        self._parse, self._row, self._rest = campaign.recipe.workload.progress, row, b""

    def __call__(self, piece: bytes) -> None:
        whole, newline, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest[-LONGEST_LINE:]
        progress = self._parse(whole + newline)
        if progress is not None:
            self._row.progress(*progress)


def write_service_files(scheduler: Scheduler, attempt: Attempt) -> None:
    """Write fresh keys and settings into the folders of the attempt's tasks, where any needs them.

    Raises:
        UnfitError: FOLDERS; the nodes keep attempts in different folders.
        NodeError, LocalError: some files may be written; they are removed with the folders.
    """
    if not any(task.files for task in attempt.tasks):
        return
    folders = {attempt.folder(task) for task in attempt.tasks}
    if len(folders) > 1:
        raise errors.UnfitError(
            f"the nodes keep this attempt in {', '.join(sorted(folders))};"
            " mpirun's ranks have one working folder everywhere",
            code="FOLDERS",
            trial=attempt.trial,
            fix="give the nodes of the inventory the same `folder`",
        )
    leader, *others = attempt.tasks
    user = Keys(*keys.generate())
    hosts = {task.node_rank: Keys(*keys.generate()) for task in others}
    addresses = dict(enumerate(seat.address for seat in attempt.seats))
    keys_at = {addresses[rank]: pair for rank, pair in hosts.items()}
    files: dict[int, Mapping[str, str]] = {
        0: mpirun.leader_files(attempt.folder(leader), user, keys_at, attempt.port)
    }
    for task in others:
        rank, at = task.node_rank, Endpoint(addresses[task.node_rank], port=attempt.port)
        files[rank] = mpirun.service_files(attempt.folder(task), rank, user, hosts[rank], at)
    by_rank = {
        task.node_rank: {name: files[task.node_rank][name].encode() for name in task.files}
        for task in attempt.tasks
    }
    scheduler.write(attempt, by_rank)
