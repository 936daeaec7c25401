"""Running the trials of a sweep: attempts, their outcomes, and what an earlier run left behind."""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import errors, plan
from orchestrator.console import View, Voice
from orchestrator.model.attempt import Attempt, GangEnd, Limits, TaskEnd
from orchestrator.model.facts import JSON
from orchestrator.model.plan import Plan, TrialPlan
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement
from orchestrator.model.site import Site
from orchestrator.plan import Recipe
from orchestrator.runtimes.process import inherited_environment
from orchestrator.schedulers.fanout import Fanout
from orchestrator.store import Sweep, dumps, write
from orchestrator.transports import Transport
from orchestrator.verbs import _files, _logs
from orchestrator.verbs._signals import Abandoned, Signals

GRACE_S = 10.0
CREATE_S = 60.0
LAST_LINES = 20
LAST_SIGNAL = 64
LONGEST_LINE = 64 << 10
PORT_TRIES = 100
MOST_RETRIES = {"LOST": 2, "KILLED": 2, "STALLED": 1, "DEADLINE": 1, "PORT-BUSY": 3, "START": 2}
BUSY_WORDS = (b"EADDRINUSE", b"ddress already in use")

# Exit 0 if nobody holds the port: a bind as the program itself will do it.
PORT_FREE = """
import socket, sys
with socket.socket() as meeting:
    meeting.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        meeting.bind((sys.argv[1], int(sys.argv[2])))
    except OSError:
        sys.exit(1)
"""


@dataclass(slots=True)
class History:
    """What events.jsonl says of one trial so far."""

    attempts: int = 0
    state: str = "planned"
    open_attempt: int = 0
    open_port: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt came to; ``found`` where its log was measured."""

    state: str
    problems: tuple[Problem, ...]
    gang: GangEnd | None = None
    found: Measurement | None = None


@dataclass(slots=True)
class Bench:
    """Everything that trials are run with."""

    sweep: Sweep
    recipe: Recipe
    site: Site
    fanout: Fanout
    transports: Mapping[str, Transport]
    signals: Signals
    voice: Voice
    history: dict[str, History] = field(default_factory=dict)


def histories(sweep: Sweep) -> dict[str, History]:
    """By trial name, what the sweep's events say of it."""
    found: dict[str, History] = {}
    for event in sweep.events():
        trial, number = event.get("trial"), event.get("attempt")
        if not isinstance(trial, str) or not isinstance(number, int):
            continue
        history = found.setdefault(trial, History())
        if event["event"] == "intent":
            history.attempts = max(history.attempts, number)
            port = event.get("port")
            history.open_attempt, history.open_port = number, port if isinstance(port, int) else 0
        elif event["event"] == "outcome":
            history.state = str(event.get("state"))
            history.sha256 = str(event.get("sha256"))
            history.open_attempt = 0
    return found


def settle(bench: Bench, whole: Plan, view: View) -> None:
    """Deal with attempts that an earlier run left open: adopt what runs, end what does not.

    Raises:
        LeftoverError: something of them would not go.
    """
    for trial in whole.trials:
        history = bench.history.get(trial.name)
        if history is None or not history.open_attempt:
            continue
        attempt = _attempt(
            bench, plan.at_port(bench.recipe, trial, history.open_port), history.open_attempt
        )
        if bench.fanout.adoptable(attempt):
            bench.voice.line(f"{trial.name} a{attempt.number}: adopted from the run before")
            bench.sweep.append("adopted", trial=trial.name, attempt=attempt.number)
            view.trial(trial.name, attempt.number, trial_iterations(bench))
            state, code = _watch(bench, trial, attempt, view)
            view.ended(state, code, final=state == "valid")
        else:
            bench.fanout.clear(attempt)
            lost = Problem("LOST", "the run that started it ended before all gates were open")
            _keep(bench, trial, attempt, Verdict("infra-lost", (lost,)))


def is_done(bench: Bench, trial: TrialPlan) -> bool:
    """Whether a trial has a valid outcome whose log still is what it was then."""
    history = bench.history.get(trial.name)
    if history is None or history.state != "valid":
        return False
    try:
        outcome = bench.sweep.outcome(trial.log)
        with open(bench.sweep.log(trial.log), "rb") as log:
            sha256 = hashlib.file_digest(log, "sha256").hexdigest()
    except (OSError, errors.StoreError):
        return False
    return outcome is not None and sha256 == history.sha256


def clear_others(bench: Bench, others: Iterable[Sweep], plans: TypeAdapter[Plan]) -> None:
    """End the gangs that dead controllers of other sweeps left on this cluster.

    Raises:
        LeftoverError: something of them would not go; measuring beside it would be wrong.
    """
    for sweep in others:
        history = histories(sweep)
        whole = plans.validate_python(sweep.record()["plan"], strict=False)
        for trial in whole.trials:
            number = history.get(trial.name, History()).open_attempt
            if not number:
                continue
            folder = str(sweep.attempt_folder(trial.name, number).resolve())
            left = Attempt(sweep.id, trial.name, number, folder, trial.port, trial.tasks)
            bench.fanout.clear(left)
            sweep.append(
                "outcome", trial=trial.name, attempt=number, state="infra-lost", code="LOST"
            )
            bench.voice.line(f"ended what was left of {trial.name} a{number} of sweep {sweep.id}")


def run(bench: Bench, trial: TrialPlan, view: View) -> str:
    """Run a trial until it has an outcome that counts or no retry is left; its state.

    Raises:
        LeftoverError: something of an attempt would not go.
    """
    retries: dict[str, int] = {}
    while not bench.signals.stopping():
        history = bench.history.setdefault(trial.name, History())
        number = history.attempts + 1
        bound = plan.at_port(bench.recipe, trial, _free_port(bench, trial, number))
        attempt = _attempt(bench, bound, number)
        bench.sweep.append(
            "intent", trial=trial.name, attempt=number, port=bound.port, log=trial.log
        )
        history.attempts = number
        view.trial(trial.name, number, trial_iterations(bench))
        state, code = _launch(bench, trial, attempt, view)
        again = state == "infra-lost" and retries.get(code, 0) < MOST_RETRIES.get(code, 0)
        view.ended(state, code, final=not again and state != "interrupted")
        if not again:
            return state
        retries[code] = retries.get(code, 0) + 1
    return "interrupted"


def trial_iterations(bench: Bench) -> int:
    """Iterations that a trial's log will show."""
    return bench.recipe.experiment.method.iterations - 1


def _launch(bench: Bench, trial: TrialPlan, attempt: Attempt, view: View) -> tuple[str, str]:
    _describe(attempt)
    try:
        opened = bench.fanout.launch(attempt, _limits(bench))
    except errors.DlperfError as error:
        bench.fanout.clear(attempt)
        if not isinstance(error, errors.NodeError):
            raise
        return _keep(bench, trial, attempt, Verdict("infra-lost", (Problem("START", error.cause),)))
    if not opened:
        if bench.signals.stopping():
            stopped = Problem("INTERRUPTED", "stopped before its gates were open")
            return _keep(bench, trial, attempt, Verdict("interrupted", (stopped,)))
        words = "not every task came to its gate" + _supervisors_words(attempt)
        return _keep(bench, trial, attempt, Verdict("infra-lost", (Problem("START", words),)))
    return _watch(bench, trial, attempt, view)


def _watch(bench: Bench, trial: TrialPlan, attempt: Attempt, view: View) -> tuple[str, str]:
    read = _Progress(bench, view)
    try:
        gang = bench.fanout.wait(attempt, _limits(bench), read)
    finally:
        if not isinstance(sys.exception(), Abandoned):
            bench.fanout.clear(attempt)
    if gang.reason == "done":
        return _keep_measured(bench, trial, attempt, gang)
    state, problem = _failure(attempt, gang)
    return _keep(bench, trial, attempt, Verdict(state, (problem,), gang))


class _Progress:
    """Gives the view the last iteration of each piece of log; lines may be cut between pieces."""

    def __init__(self, bench: Bench, view: View) -> None:
        self._parse, self._view, self._rest = bench.recipe.workload.progress, view, b""

    def __call__(self, piece: bytes) -> None:
        whole, newline, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest[-LONGEST_LINE:]
        found = self._parse(whole + newline)
        if found is not None:
            self._view.progress(*found)


def _limits(bench: Bench) -> Limits:
    method = bench.recipe.experiment.method
    return Limits(method.time_limit_s, method.stall_limit_s, GRACE_S, CREATE_S)


def _attempt(bench: Bench, trial: TrialPlan, number: int) -> Attempt:
    folder = bench.sweep.attempt_folder(trial.name, number).resolve()
    return Attempt(bench.sweep.id, trial.name, number, str(folder), trial.port, trial.tasks)


def _free_port(bench: Bench, trial: TrialPlan, number: int) -> int:
    """A port that nobody holds on the leader, from the plan's on; another for each attempt."""
    leader = trial.tasks[0].node
    address = next(n.address for n in bench.recipe.cluster.members if n.name == leader)
    first = plan.port_after(trial.port, (number - 1) * PORT_TRIES)
    for step in range(PORT_TRIES):
        port = plan.port_after(first, step)
        python = bench.recipe.program.python
        probe = (python, "-S", "-c", PORT_FREE, address, str(port))
        if bench.transports[leader].run(probe, timeout_s=10.0).exit_code == 0:
            return port
    raise errors.UnfitError(
        f"ports {first} to {plan.port_after(first, PORT_TRIES - 1)} are all taken",
        code="PORT-BUSY",
        node=leader,
        trial=trial.name,
    )


def _describe(attempt: Attempt) -> None:
    """Leave in the attempt's folder exactly what is started."""
    document = {
        "attempt": attempt.number,
        "port": attempt.port,
        "inherited_env": dict(inherited_environment()),
        "tasks": [asdict(replace(task, env=dict(task.env))) for task in attempt.tasks],
    }
    write(Path(attempt.folder) / "attempt.json", dumps(json.loads(json.dumps(document))).encode())


def _supervisors_words(attempt: Attempt) -> str:
    words = []
    for task in attempt.tasks:
        path = Path(attempt.folder) / f"r{task.node_rank}.err"
        if path.exists() and path.stat().st_size:
            words.append(f"{task.node}: {path.read_text(errors='replace').strip()[-500:]}")
    return f" ({'; '.join(words)})" if words else ""


def _failure(attempt: Attempt, gang: GangEnd) -> tuple[str, Problem]:
    """State and reason of a gang that did not end well."""
    if gang.reason == "stopped":
        return "interrupted", Problem("INTERRUPTED", "stopped by a signal")
    if gang.reason == "stalled":
        return "infra-lost", Problem("STALLED", "no task printed anything for too long")
    if gang.reason == "deadline":
        return "infra-lost", Problem("DEADLINE", "it ran longer than method.time_limit_s")
    lost = [end for end in gang.ends if end.status is None]
    if lost or gang.reason == "lost":
        where = _where(next(iter(lost), gang.ends[0]))
        return "infra-lost", Problem("LOST", f"{where}: its supervisor was ended from outside")
    # Ranks that lost a peer fail within milliseconds of it: all are shown, none is blamed alone.
    failed = [end for end in gang.ends if end.why == "exited" and end.status]
    last = {end.node_rank: _last_lines(attempt, end) for end in failed}
    if any(word in lines for word in BUSY_WORDS for lines in last.values()):
        return "infra-lost", Problem("PORT-BUSY", f"port {attempt.port} was taken meanwhile")
    words = "\n".join(
        f"{_where(end)}: exit status {end.status}; its last lines:\n"
        + last[end.node_rank].decode(errors="replace")
        for end in failed
    )
    if any(end.status is not None and 128 < end.status <= 128 + LAST_SIGNAL for end in failed):
        return "infra-lost", Problem("KILLED", words)
    return "failed", Problem("PROGRAM-FAILED", words)


def _where(end: TaskEnd) -> str:
    return f"node {end.node}, node_rank {end.node_rank}"


def _last_lines(attempt: Attempt, end: TaskEnd) -> bytes:
    path = Path(attempt.folder) / f"r{end.node_rank}.log"
    if not path.exists():
        return b""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 16384))
        return b"\n".join(file.read().splitlines()[-LAST_LINES:])


def _keep_measured(
    bench: Bench, trial: TrialPlan, attempt: Attempt, gang: GangEnd
) -> tuple[str, str]:
    source = Path(attempt.folder) / "r0.log"
    method = bench.recipe.experiment.method
    log = _logs.read(source, bench.recipe.workload, method.window)
    found = _logs.judged(log, trial, method, f"logs/{trial.log}")
    if log.sha256 != gang.ends[0].sha256:
        broken = Problem("LOG-CHANGED", "its sha256 is not the one that its supervisor took")
        found = replace(found, state="invalid", problems=(*found.problems, broken))
    digest = _files.folder_digest(Path(bench.recipe.program.code))
    if digest != bench.recipe.program.digest:
        words = (
            f"the program's folder is {digest} now; the sweep is of {bench.recipe.program.digest}"
        )
        changed = Problem("CODE-CHANGED", words)
        found = replace(found, state="invalid", problems=(*found.problems, changed))
    bench.sweep.keep_log(trial.log, source)
    return _keep(bench, trial, attempt, Verdict(found.state, found.problems, gang, found))


def _keep(bench: Bench, trial: TrialPlan, attempt: Attempt, verdict: Verdict) -> tuple[str, str]:
    """Write an attempt's outcome beside its log, then the event that makes it count."""
    found, gang = verdict.found, verdict.gang
    evidence = found.evidence if found else None
    document: dict[str, JSON] = {
        "trial": trial.name,
        "attempt": attempt.number,
        "state": verdict.state,
        "problems": [{"code": each.code, "message": each.message} for each in verdict.problems],
        "throughput": found.throughput if found else None,
        "sha256": evidence.sha256 if evidence else None,
        "lines": list(evidence.lines) if evidence and evidence.lines else None,
        "provenance": _provenance(bench, trial),
        "port": attempt.port,
        "start_skew_s": gang.start_skew_s if gang else None,
        "tasks": [asdict(end) for end in gang.ends] if gang else [],
    }
    bench.sweep.keep_outcome(trial.log, document)
    code = verdict.problems[0].code if verdict.problems else ""
    bench.sweep.append(
        "outcome",
        trial=trial.name,
        attempt=attempt.number,
        state=verdict.state,
        code=code,
        sha256=evidence.sha256 if evidence else None,
    )
    history = bench.history.setdefault(trial.name, History())
    history.state, history.open_attempt = verdict.state, 0
    history.sha256 = evidence.sha256 if evidence else ""
    if found is not None and found.throughput is not None and not code:
        return verdict.state, f"{found.throughput:.2f} {bench.recipe.workload.unit}"
    return verdict.state, code


def _provenance(bench: Bench, trial: TrialPlan) -> dict[str, JSON]:
    """What must agree before trials share a median; the port, new each time, is not among it."""
    fixed = plan.at_port(bench.recipe, trial, 0)
    said = [[task.node, list(task.argv), dict(task.env)] for task in fixed.tasks]
    nodes = {task.node: bench.site.nodes.get(task.node) for task in trial.tasks}
    return {
        "image": bench.recipe.program.digest,
        "tasks": hashlib.sha256(json.dumps(said).encode()).hexdigest(),
        "nodes": ",".join(nodes),
        "cpus": ",".join(sorted({str(each.host.cpus) for each in nodes.values() if each})),
        "library_path": inherited_environment().get("LD_LIBRARY_PATH", ""),
        "kernel": ",".join(sorted({each.host.kernel for each in nodes.values() if each})),
        "torch": ",".join(sorted({each.host.torch for each in nodes.values() if each})),
        "driver": ",".join(
            sorted({str(each.gpu.driver) for each in nodes.values() if each and each.gpu})
        ),
    }
