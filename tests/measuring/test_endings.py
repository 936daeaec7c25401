"""What a gang that ended badly came to: the state of its trial, and who or what is named."""

import pytest

from orchestrator.measuring import endings
from orchestrator.model.attempt import GangEnd, TaskEnd
from orchestrator.model.experiment import Method
from orchestrator.model.log import Fabric
from orchestrator.model.problem import Problem

METHOD = Method(repeats=1, iterations=11, rule="reported", stall_limit_s=30, time_limit_s=600)


def end(why: str = "exited", status: int | None = 1, node: str = "vs001", rank: int = 0) -> TaskEnd:
    return TaskEnd(node, rank, status, why, 0, "", None)


def gang(reason: str, *ends: TaskEnd) -> GangEnd:
    """Return the end of a gang that its first task ended."""
    return GangEnd(reason, ends, ends[0] if ends else None)


@pytest.mark.parametrize(
    ("reason", "why", "state", "code", "words"),
    [
        ("stopped", "", "interrupted", "INTERRUPTED", "by a signal"),
        ("stalled", "", "infra-lost", "STALLED", "for 30 s, which is method.stall_limit_s"),
        ("deadline", "", "infra-lost", "DEADLINE", "longer than 600 s, which is method.time_limit"),
        ("oom", "oom", "failed", "OOM", "node vs001, node_rank 0: out of memory"),
        ("log-too-large", "log-too-large", "failed", "LOG-TOO-LARGE", "max_log_size"),
        ("lost", "rebooted", "infra-lost", "REBOOTED", "node vs001, node_rank 0: the node was"),
        ("preempted", "preempted", "infra-lost", "PREEMPTED", "job of higher priority"),
        ("stopped", "preempted", "interrupted", "PREEMPTED", "job of higher priority"),
        ("lost", "a word of tomorrow", "infra-lost", "LOST", "killed by something else"),
        ("lost", "stopped", "infra-lost", "LOST", "node_rank 0: its supervisor was stopped"),
        ("lost", "unreachable", "infra-lost", "UNREACHABLE", "the node gave no answer for 12 s"),
        ("lost", "killed", "infra-lost", "KILLED", "its container was killed from outside"),
        ("lost", "docker-restarted", "infra-lost", "DOCKER-RESTARTED", "Docker on the node was"),
        ("lost", "docker-down", "infra-lost", "DOCKER-DOWN", "Docker on the node was down for"),
        ("lost", "docker-hung", "infra-lost", "DOCKER-HUNG", "no answer for"),
        ("lost", "node-down", "infra-lost", "NODE-DOWN", "Slurm gave the node up"),
        ("log-replaced", "log-replaced", "failed", "LOG-REPLACED", "removed or replaced its log"),
    ],
)
def test_what_others_ended_is_no_fault_of_the_program(
    reason: str, why: str, state: str, code: str, words: str
) -> None:
    """Each reason has its own code, and the limit or the node that it was about."""
    found = endings.by_others(gang(reason, *([end(why, None)] if why else [])), METHOD)
    assert found is not None
    assert (found[0], found[1].code) == (state, code)
    assert words in found[1].message


def test_a_long_limit_is_told_in_hours() -> None:
    """Beside the key under which the playbook has it in seconds."""
    long = METHOD.model_copy(update={"time_limit_s": 14400.0, "stall_limit_s": 7200.0})
    found = [endings.by_others(gang(reason), long) for reason in ("deadline", "stalled")]
    assert [it[1].message for it in found if it] == [
        "it ran longer than 4:00:00, which is method.time_limit_s",
        "no task printed anything for 2:00:00, which is method.stall_limit_s",
    ]


def test_an_exit_status_is_the_programs_own() -> None:
    assert endings.by_others(gang("failed", end()), METHOD) is None


@pytest.mark.parametrize(
    ("status", "last", "fabric", "state", "code"),
    [
        (1, b"ValueError: x", {}, "failed", "PROGRAM-FAILED"),
        (1, b"EADDRINUSE", {}, "infra-lost", "PORT-BUSY"),
        (137, b"", {}, "infra-lost", "KILLED"),
        (143, b"", {}, "infra-lost", "KILLED"),
        (-9, b"", {}, "infra-lost", "KILLED"),
        *(
            (status, b"", {}, "failed", "PROGRAM-FAILED")
            for signal in (4, 5, 6, 7, 8, 11, 31)
            for status in (128 + signal, -signal)
        ),
        (193, b"", {}, "failed", "PROGRAM-FAILED"),
        (1, b"", {"vs001": Problem("GPU-DETACHED", "gone")}, "infra-lost", "GPU-DETACHED"),
        (1, b"", {"vs001": Problem("NCCL-SHM", "small")}, "failed", "NCCL-SHM"),
    ],
)
def test_a_program_that_failed_is_judged_by_its_last_words(
    status: int, last: bytes, fabric: dict[str, Problem], state: str, code: str
) -> None:
    """A taken port and a signal from outside are tried again; what the program did is not."""
    said = {node: Fabric(problems=(problem,)) for node, problem in fabric.items()}
    found = endings.of_program([end(status=status)], {0: last}, 29500, said)
    assert (found[0], found[1].code) == (state, code)


def test_every_rank_that_failed_is_shown_with_its_signal() -> None:
    """They fail within milliseconds of each other, and none is blamed alone."""
    ends = [end(status=139), end(node="vs002", rank=1, status=7)]
    _, problem = endings.of_program(ends, {0: b"one", 1: b"two"}, 29500, {})
    assert problem.message == (
        "node vs001, node_rank 0: exit status 139 (SIGSEGV); one\n"
        "node vs002, node_rank 1: exit status 7; two"
    )


# Recorded: torchrun of PyTorch 2.13, Python 3.11's subprocess. Open MPI's is printed in its FAQ.
TORCHRUN = b"  exitcode  : -11 (pid: 12677)  (SIGSEGV)\n  error_file: <N/A>\n"
MPIRUN = (
    b"mpirun noticed that process rank 1 with PID 7 on node vs002 exited on signal 8 (Floating po"
)
MULTIPROC = b"subprocess.CalledProcessError: Command '[...]' died with <Signals.SIGBUS: 7>."


@pytest.mark.parametrize("said", [TORCHRUN, MPIRUN, MULTIPROC])
def test_a_rank_that_crashed_is_the_cause_of_peers_that_were_killed(said: bytes) -> None:
    """A launcher names the rank's signal; that it was killed itself then follows."""
    found = endings.of_program([end(status=143)], {0: said}, 29500, {})
    assert (found[0], found[1].code) == ("failed", "PROGRAM-FAILED")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((139, 137), "PROGRAM-FAILED"),
        ((137, 139), "PROGRAM-FAILED"),
        ((134, 1), "PROGRAM-FAILED"),
        ((137, 134), "KILLED"),
        ((134, 137), "KILLED"),
    ],
)
def test_of_a_gang_the_cause_counts(statuses: tuple[int, int], code: str) -> None:
    """Nothing but the program raises SIGSEGV; a rank that lost a killed peer may abort."""
    ends = [end(status=statuses[0]), end(status=statuses[1], node="vs002", rank=1)]
    assert endings.of_program(ends, {0: b"", 1: b""}, 29500, {})[1].code == code
