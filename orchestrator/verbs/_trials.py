"""Running the trials of a sweep: attempts, and what an earlier run left behind."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace

from orchestrator import errors, lanes, nodeset, plan
from orchestrator.console import Row, View
from orchestrator.deadlines import COMMAND_S, GATES_S, GRACE_S
from orchestrator.fleet import ask_all, settled
from orchestrator.model.attempt import Attempt, Limits
from orchestrator.model.event import Adopted, Ended, Intent
from orchestrator.model.history import History
from orchestrator.model.plan import Plan, TrialPlan
from orchestrator.model.problem import Problem
from orchestrator.retries import ATTEMPTS, PORTS, REPEATABLE
from orchestrator.runtimes.process import inherited_environment
from orchestrator.store import Sweep, dumps, now, write
from orchestrator.verbs import _gather, _outcomes, _services
from orchestrator.verbs._bench import Bench, attempt_of
from orchestrator.verbs._outcomes import Verdict

LONGEST_LINE = 64 << 10

# Exit 0 if somebody listens at the port. The kernel writes ports in hexadecimal; 0A is LISTEN.
PORT_TAKEN = """
grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf '%04X' "$1") [0-9A-F:]+ 0A " /proc/net/tcp /proc/net/tcp6
"""


def settle(bench: Bench, whole: Plan, view: View) -> None:
    """Deal with attempts that an earlier run left open: adopt what runs, end what does not.

    Raises:
        LeftoverError: something of them would not go.
    """
    known = bench.history
    left = [trial for trial in whole.trials if known.get(trial.name, History()).open_attempt]

    def deal(trial: TrialPlan) -> None:
        _settle(bench, trial, view)

    # Whether to stop is asked of each gang: all that is left is ended then.
    lanes.run(left, deal, lanes=bench.lanes, may_begin=lambda: True, say=bench.voice.line)


def _settle(bench: Bench, trial: TrialPlan, view: View) -> None:
    history = bench.history[trial.name]
    bound = plan.at_port(bench.recipe, trial, history.open_port)
    attempt = bench.attempt(bound, history.open_attempt)
    name = f"{trial.name} a{attempt.number}"
    if history.unlogged:
        bench.voice.line(f"{name}: its folder is here, and events.jsonl does not tell of it")
    if bench.fanout.adoptable(attempt):
        bench.voice.line(f"{name}: adopted from an earlier run")
        bench.sweep.append(Adopted(at=now(), trial=trial.name, attempt=attempt.number))
        with view.trial(trial.name, trial_iterations(bench)) as row:
            row.attempt(attempt.number)
            state, code = _watch(bench, trial, attempt, row)
            row.ended(state, code, final=state == "valid")
    else:
        bench.fanout.clear(attempt)
        missing = _gather.bring(bench.sweep, bench.transports, attempt, ())
        lost = Problem("LOST", "the run that started it ended before all gates were open")
        _close(bench, trial, attempt, Verdict("infra-lost", (lost, *missing)))


def clear_other(bench: Bench, sweep: Sweep, known: Mapping[str, History]) -> None:
    """End the gangs that a dead controller of another sweep left on this cluster.

    Raises:
        LeftoverError: something of them would not go; measuring beside it would be wrong.
    """
    for trial in sweep.record().plan.trials:
        number = known.get(trial.name, History()).open_attempt
        if not number:
            continue
        left = attempt_of(sweep, bench.recipe.cluster, trial, number)
        bench.fanout.clear(left)
        if len(left.tasks) == len(trial.tasks):  # else a node is left out this time
            lost = Ended(
                at=now(), trial=trial.name, attempt=number, state="infra-lost", code="LOST"
            )
            sweep.append(lost)
        _gather.bring(sweep, bench.transports, left, ())
        _gather.forget(sweep, bench.transports, left)
        bench.voice.line(f"ended what was left of {trial.name} a{number} of sweep {sweep.id}")


def run(bench: Bench, trial: TrialPlan, view: View) -> str:
    """Run a trial until it has an outcome that counts or no retry is left; its state.

    Raises:
        LeftoverError: something of an attempt would not go.
    """
    retries: dict[str, int] = {}
    with view.trial(trial.name, trial_iterations(bench)) as row:
        while not bench.signals.stopping():
            state, code = _attempt(bench, trial, row)
            again = state == "infra-lost" and retries.get(code, 0) < ATTEMPTS.get(code, 0)
            row.ended(state, code, final=not again and state != "interrupted")
            if not again:
                return state
            retries[code] = retries.get(code, 0) + 1
    return "interrupted"


def _attempt(bench: Bench, trial: TrialPlan, row: Row) -> tuple[str, str]:
    """One more attempt; its state, and why or its throughput."""
    bench.locks.check()
    history = bench.history.setdefault(trial.name, History())
    number = history.attempts + 1
    bound = plan.at_port(bench.recipe, trial, _free_port(bench, trial, number))
    attempt = bench.attempt(bound, number)
    intent = Intent(at=now(), trial=trial.name, attempt=number, port=bound.port, log=trial.log)
    bench.sweep.append(intent)
    history.add(intent)
    row.attempt(number)
    return _launch(bench, trial, attempt, row)


def trial_iterations(bench: Bench) -> int:
    """Iterations that a trial's log will show."""
    return bench.recipe.workload.last_iteration(bench.recipe.experiment.method.iterations)


def _launch(bench: Bench, trial: TrialPlan, attempt: Attempt, row: Row) -> tuple[str, str]:
    _describe(bench, attempt)
    try:
        _services.bring(bench.recipe.cluster, bench.transports, attempt)
        opened = bench.fanout.launch(attempt, _limits(bench))
    except errors.DlperfError as error:
        bench.fanout.clear(attempt)
        may_pass = isinstance(error, errors.NodeError)
        _gather.bring(bench.sweep, bench.transports, attempt, ())
        words = f"node {error.where.get('node', '?')}: {error.cause}"
        lost = Problem("START" if may_pass else error.code, words)
        said = _close(bench, trial, attempt, Verdict("infra-lost", (lost,)))
        if may_pass:
            return said
        raise
    if not opened:
        if bench.signals.stopping():
            stopped = Problem("INTERRUPTED", "stopped before its gates were open")
            return _close(bench, trial, attempt, Verdict("interrupted", (stopped,)))
        _gather.bring(bench.sweep, bench.transports, attempt, ())
        words = "not every task came to its gate" + _outcomes.supervisors_words(bench, attempt)
        return _close(bench, trial, attempt, Verdict("infra-lost", (Problem("START", words),)))
    return _watch(bench, trial, attempt, row)


def _watch(bench: Bench, trial: TrialPlan, attempt: Attempt, row: Row) -> tuple[str, str]:
    read = _Progress(bench, row)
    bench.begun(bench.sweep)
    try:
        gang = bench.fanout.wait(attempt, _limits(bench), read)
        silent = [end.node for end in gang.ends if end.why == "unreachable"]
        if silent:  # said now: to look there once more, before it is given up, takes a while
            bench.voice.line(f"no answer of {nodeset.fold(silent)}; the others were ended")
    finally:
        bench.fanout.clear(attempt)
    bench.locks.check()
    missing = _gather.bring(bench.sweep, bench.transports, attempt, gang.ends)
    if gang.reason == "done" and missing:
        return _close(bench, trial, attempt, Verdict("infra-lost", missing, gang))
    if gang.reason == "done":
        verdict = _outcomes.measured(bench, trial, attempt, gang)
        return _close(bench, trial, attempt, verdict)
    state, problem = _outcomes.failure(bench, attempt, gang)
    return _close(bench, trial, attempt, Verdict(state, (problem, *missing), gang))


def _close(bench: Bench, trial: TrialPlan, attempt: Attempt, verdict: Verdict) -> tuple[str, str]:
    """Keep the outcome; only then may the nodes forget what came here of its attempt."""
    said = _outcomes.keep(bench, trial, attempt, verdict)
    _services.forget(bench.transports, attempt)
    _gather.forget(bench.sweep, bench.transports, attempt)
    return said


class _Progress:
    """Gives the row the last iteration of each piece of log; lines may be cut between pieces."""

    def __init__(self, bench: Bench, row: Row) -> None:
        self._parse, self._row, self._rest = bench.recipe.workload.progress, row, b""

    def __call__(self, piece: bytes) -> None:
        whole, newline, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest[-LONGEST_LINE:]
        found = self._parse(whole + newline)
        if found is not None:
            self._row.progress(*found)


def _limits(bench: Bench) -> Limits:
    method = bench.recipe.experiment.method
    most = bench.recipe.cluster.log_bytes
    return Limits(method.time_limit_s, method.stall_limit_s, GRACE_S, GATES_S, most)


def _free_port(bench: Bench, trial: TrialPlan, number: int) -> int:
    """A port that nobody listens at on any node, from the plan's on; another each attempt.

    Every node's, since OneFlow and the sshd of mpirun listen at it on all of them.
    """
    fixed = bench.recipe.workload.fixed_port(trial.case)
    first = trial.port if fixed else plan.port_after(trial.port, (number - 1) * PORTS)
    taken: list[str] = []
    for step in range(1 if fixed else PORTS):
        port = plan.port_after(first, step)
        taken = _taken_on(bench, trial, port)
        if not taken:
            return port
    last = first if fixed else plan.port_after(first, PORTS - 1)
    raise errors.UnfitError(
        f"port {first} is taken; {bench.recipe.workload.name} can use no other"
        if fixed
        else f"ports {first} to {last} are all taken",
        code="PORT-BUSY",
        node=nodeset.fold(taken),
        trial=trial.name,
    )


def _taken_on(bench: Bench, trial: TrialPlan, port: int) -> list[str]:
    """The nodes of a trial where somebody listens at a port."""
    words = ("sh", "-c", PORT_TAKEN, "sh", str(port))

    def ask(node: str) -> int:
        run = bench.transports[node].run
        return REPEATABLE.call(lambda: run(words, timeout_s=COMMAND_S)).exit_code

    answers = ask_all([task.node for task in trial.tasks], ask)
    settled(answers)
    return [each.node for each in answers if each.value == 0]


def _describe(bench: Bench, attempt: Attempt) -> None:
    """Leave in the attempt's folder exactly what is started."""
    local = {node.name for node in bench.recipe.cluster.members if not node.in_container}
    inherited = inherited_environment() if local else {}
    document = {
        "attempt": attempt.number,
        "port": attempt.port,
        "folders": dict(attempt.folders),
        "inherited_env": dict(inherited),
        "tasks": [asdict(replace(task, env=dict(task.env))) for task in attempt.tasks],
    }
    path = bench.sweep.attempt_folder(attempt.trial, attempt.number) / "attempt.json"
    write(path, dumps(json.loads(json.dumps(document))).encode())
