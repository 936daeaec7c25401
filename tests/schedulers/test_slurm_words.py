"""What Slurm's commands print, read; and what a step is told and answers."""

import subprocess
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.schedulers import slurm_queue
from orchestrator.schedulers.slurm_tasks import least_cpus, short_of_memory
from orchestrator.transports import steps


@pytest.mark.parametrize(
    ("state", "down"),
    [
        *(("DOWN*", True), ("DOWN", True), ("ALLOCATED*", True), ("FAIL", True)),
        *(("ALLOCATED", False), ("MIXED", False), ("DRAINING", False), ("", False)),
    ],
)
def test_states_of_nodes_that_cannot_be_relied_on(state: str, down: bool) -> None:
    """A node that drains ends what it has."""
    assert slurm_queue.is_down(state) == down


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid feature specification",
            "sbatch: Batch job submission failed: Invalid feature specification",
        ),
        ("sbatch: unrecognized option '--foo=high'", "sbatch: unrecognized option"),
    ],
)
def test_a_refusal_says_what_to_do(
    said: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words of 22.05's sbatch, said once."""
    (tmp_path / "sbatch").write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(errors.UnfitError, match="SLURM-REFUSED") as raised:
        slurm_queue.call("sbatch", "job.sh")
    assert raised.value.cause.startswith(cause)
    assert "`slurm:` of the inventory; --dry-run shows" in raised.value.fix


# As 22.05's srun printed the first; Slurm folds the nodes of several tasks.
OUT_OF_MEMORY = b"""\
slurmstepd-vs002: error: Detected 1 oom-kill event(s) in StepId=1.3. Some of your processes \
may have been killed by the cgroup out-of-memory handler.
srun: error: vs002: task 1: Out Of Memory
"""


@pytest.mark.parametrize(
    ("said", "nodes"),
    [
        (OUT_OF_MEMORY, "vs002"),
        (
            b"srun: error: gpu[01-02,05],login1: tasks 0-2,7: Out Of Memory\n",
            "gpu01 gpu02 gpu05 login1",
        ),
        (b"srun: error: vs002: task 1: Exited with exit code 1\n", ""),
    ],
)
def test_nodes_without_memory_are_read_from_what_srun_says(said: bytes, nodes: str) -> None:
    """One line for all tasks that ended alike."""
    assert short_of_memory(said) == set(nodes.split())


def test_every_node_has_the_fewest_cpus() -> None:
    """In Slurm's notation."""
    assert least_cpus({"SLURM_JOB_CPUS_PER_NODE": "32(x3),16,64(x2)"}) == 16
    assert least_cpus({}) == 1


def test_a_step_runs_each_nodes_own_command_and_its_answers_are_whole() -> None:
    """Bytes of any kind, long lines, exit codes; lines of two nodes may alternate."""
    argv = {
        "n1": ("sh", "-c", "head -c 5000 /dev/zero; echo 'it''s' >&2; exit 3"),
        "n2": ("printf", "a b\\n%s", "'$HOME'"),
        "n3": ("sh", "-c", "kill -KILL $$"),
    }
    text = steps.build_script(argv, 20)
    lines: list[list[bytes]] = []
    for node in argv:
        done = subprocess.run(
            ["sh", "-s"],
            input=text.encode(),
            env={"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": node},
            capture_output=True,
            check=True,
        )
        lines.append(done.stdout.splitlines(keepends=True))
    mixed = b"".join(
        line for at in range(max(map(len, lines))) for part in lines for line in part[at : at + 1]
    )
    heard = steps.parse_answers(argv, mixed)
    assert (heard["n1"].stdout, heard["n1"].stderr) == (bytes(5000), b"its\n")
    assert [heard[node].exit_code for node in argv] == [3, 0, 137]
    assert heard["n2"].stdout == b"a b\n'$HOME'"
    assert set(steps.parse_answers(argv, b"".join(lines[0]))) == {"n1"}
