"""The state and the problem of a trial whose gang did not end well."""

import re
from collections.abc import Mapping, Sequence

from orchestrator.deadlines import ENGINE_LOST_S, NODE_LOST_S
from orchestrator.measuring import transport_proof
from orchestrator.model.attempt import ABORT, CRASHES, GangEnd, TaskEnd
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric
from orchestrator.model.problem import Problem
from orchestrator.words import limit

LAST_SIGNAL = 64
# Launchers print of a rank that crashed: `exitcode  : -11 (pid: 7)` and `Signal 11 (SIGSEGV)
# received` (torchrun), `exited on signal 11 (Segmentation fault)` (mpirun), `died with
# <Signals.SIGSEGV: 11>` (Python's subprocess).
_RANK_CRASHED = re.compile(
    rb"(?:exitcode *: -|\bSignal |exited on signal |<Signals\.SIG[A-Z]+: )([0-9]{1,3})\b"
)
BUSY_WORDS = (b"EADDRINUSE", b"ddress already in use")
# Exit reasons of a supervisor or runtime for which the program is not to blame: the trial is
# repeated.
LOST = {
    "lost": ("LOST", "its supervisor was killed by something else"),
    "stopped": ("LOST", "its supervisor was stopped by something else"),
    "unreachable": ("UNREACHABLE", f"the node gave no answer for {NODE_LOST_S:g} s"),
    "killed": ("KILLED", "its container was killed from outside"),
    "docker-restarted": ("DOCKER-RESTARTED", "Docker on the node was restarted during the trial"),
    "docker-down": ("DOCKER-DOWN", f"Docker on the node was down for {ENGINE_LOST_S:g} s"),
    "docker-hung": (
        "DOCKER-HUNG",
        f"Docker on the node gave no answer for {ENGINE_LOST_S:g} s, while the node did",
    ),
    "node-down": ("NODE-DOWN", "Slurm gave the node up during the trial"),
    "preempted": ("PREEMPTED", "Slurm ended it to make room for a job of higher priority"),
    "rebooted": ("REBOOTED", "the node was rebooted during the trial"),
}
# Exit reasons that another attempt would only repeat.
FAILED = {
    "oom": ("OOM", "out of memory: the kernel ended it"),
    "log-too-large": (
        "LOG-TOO-LARGE",
        "its log reached max_log_size, and only the beginning is kept; needed a program that"
        " prints less, or a larger max_log_size in the inventory",
    ),
    "log-replaced": (
        "LOG-REPLACED",
        "its program removed or replaced its log; what lies in its place is not read",
    ),
}


def by_others(gang: GangEnd, method: Method) -> tuple[str, Problem] | None:
    """Return state and problem of a gang that something else than its program ended, else None."""
    if gang.reason == "stopped":
        # Slurm signals tasks and controller at once, and either may notice first.
        if any(end.why == "preempted" for end in gang.ends):
            return "interrupted", Problem(*LOST["preempted"])
        return "interrupted", Problem("INTERRUPTED", "stopped by a signal")
    if gang.reason == "stalled":
        silence = f"no task printed anything for {limit(method.stall_limit_s)}"
        return "infra-lost", Problem("STALLED", f"{silence}, which is method.stall_limit_s")
    if gang.reason == "deadline":
        ran = f"it ran longer than {limit(method.time_limit_s)}"
        return "infra-lost", Problem("DEADLINE", f"{ran}, which is method.time_limit_s")
    if gang.reason in FAILED and gang.first is not None:
        code, words = FAILED[gang.reason]
        return "failed", Problem(code, f"{_where(gang.first)}: {words}")
    if gang.first is not None and gang.reason != "failed":
        code, words = LOST.get(gang.first.why, LOST["lost"])
        return "infra-lost", Problem(code, f"{_where(gang.first)}: {words}")
    return None


def of_program(
    failed: Sequence[TaskEnd],
    last_lines: Mapping[int, bytes],
    port: int,
    fabric: Mapping[str, Fabric],
) -> tuple[str, Problem]:
    """Return state and problem of a gang whose program failed.

    Ranks that lost a peer fail within milliseconds of it, so all are shown.

    Args:
        failed: ends of tasks with another exit status than 0.
        last_lines: by node_rank, the parts of tasks' logs that show the cause.
        fabric: by node, the transport in its log.
    """
    if any(word in lines for word in BUSY_WORDS for lines in last_lines.values()):
        return "infra-lost", Problem("PORT-BUSY", f"port {port} was taken by another program")
    lines = []
    for end in failed:
        name = CRASHES.get(_signal(end.status) or 0)
        status = f"{end.status} ({name})" if name else end.status
        last = last_lines[end.node_rank].decode(errors="replace")
        lines.append(f"{_where(end)}: exit status {status}; {last}")
    words = "\n".join(lines)
    library_problems = transport_proof.library_problems(fabric)
    if library_problems:
        state = "infra-lost" if library_problems[0].code in transport_proof.INFRA else "failed"
        reasons = "; ".join(library_problem.message for library_problem in library_problems)
        return state, Problem(library_problems[0].code, f"{reasons}\n{words}")
    signals = {signal for end in failed if (signal := _signal(end.status))}
    of_ranks = {int(it) for lines in last_lines.values() for it in _RANK_CRASHED.findall(lines)}
    if signals - {ABORT} and not (signals | of_ranks) & (CRASHES.keys() - {ABORT}):
        return "infra-lost", Problem("KILLED", words)
    return "failed", Problem("PROGRAM-FAILED", words)


def _signal(status: int | None) -> int | None:
    """Return the signal that ended a program: 11 for 139 (a shell) and for -11 (Python)."""
    number = abs(status or 0) - (128 if (status or 0) > 0 else 0)
    return number if 0 < number <= LAST_SIGNAL else None


def _where(end: TaskEnd) -> str:
    return f"node {end.node}, node_rank {end.node_rank}"
