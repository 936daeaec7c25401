"""The cause of a failure is found in the log of a failed task, wherever it is in there."""

from pathlib import Path

import pytest

from orchestrator.collecting import nodes_seen

AGENT = b"".join(b"the agent's line %d\n" % number for number in range(30))
RANKS = b"""\
[rank1]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank1]:   File "/p.py", line 3, in <module>
[rank0]:   File "/p.py", line 9, in <module>
[rank1]:     train()
[rank0]:     other()
[rank0]: ValueError: another rank's
[rank1]:     ^^^^^^^
a line of nobody
[rank1]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1
"""
CUT = b'Traceback (most recent call last):\n  File "/p.py", line 1\n'
FAR = b"s\n" * (1 << 19) + CUT + b"KeyError: " + b"x" * 9000 + b"\n" + b"step\n" * 100_000
FIRST = "its first Traceback ends with:\n"
LAST = "\nits last lines:\n"


@pytest.mark.parametrize(
    ("log", "begin"),
    [
        (
            b"step\n" * 9 + RANKS + AGENT,
            f'{FIRST}  File "/p.py", line 3, in <module>\n    train()\n'
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1"
            f"{LAST}the agent's line 10\n",
        ),
        (RANKS, f"{LAST[1:]}[rank1]: Traceback"),
        (FAR, f'{FIRST}  File "/p.py", line 1\nKeyError: xxx'),
        (CUT + AGENT, f"{LAST[1:]}the agent's line 10\n"),
        (b"", LAST[1:]),
        (None, "it left no log"),
    ],
    ids=["ranks by their prefixes", "once", "far up", "without an end", "empty", "no log"],
)
def test_a_failure_is_described_by_its_first_error(
    tmp_path: Path, log: bytes | None, begin: str
) -> None:
    path = tmp_path / "r0.log"
    if log is not None:
        path.write_bytes(log)
    said = nodes_seen.describe_failure(path).decode()
    assert said.startswith(begin)
    assert len(said) < 2000
