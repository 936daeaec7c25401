"""What a failed task's log says of the cause, wherever in it that stands."""

from pathlib import Path

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


def said(tmp_path: Path, log: bytes) -> str:
    path = tmp_path / "r0.log"
    path.write_bytes(log)
    return nodes_seen.describe_failure(path).decode()


def test_ranks_that_speak_at_once_are_told_apart_by_their_prefix(tmp_path: Path) -> None:
    """Newer PyTorch writes one before each line: the first to fail is shown, and it alone."""
    first, _, last = said(tmp_path, b"step\n" * 9 + RANKS + AGENT).partition("\nits last lines:\n")
    assert first.splitlines()[1:] == [
        '  File "/p.py", line 3, in <module>',
        "    train()",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1",
    ]
    assert last == AGENT.decode().rstrip().split("line 9\n")[1]


def test_an_error_among_the_last_lines_is_shown_once(tmp_path: Path) -> None:
    """Nothing is said twice where the log ends with it."""
    assert said(tmp_path, RANKS).startswith("its last lines:\n[rank1]: Traceback")


def test_a_traceback_far_up_in_a_long_log_is_found(tmp_path: Path) -> None:
    """Beyond the first MiB, and with a line that never ends after it."""
    at = 1 << 20
    error = b'Traceback (most recent call last):\n  File "/p.py", line 1\nKeyError: ' + b"x" * 9000
    found = said(tmp_path, b"s\n" * (at // 2) + error + b"\n" + b"step\n" * 100_000)
    assert found.startswith('its first Traceback ends with:\n  File "/p.py", line 1\nKeyError: xxx')
    assert len(found) < 1000


def test_a_traceback_without_an_end_or_a_log_that_is_not_there_say_nothing_more(
    tmp_path: Path,
) -> None:
    """A rank that is killed while it prints one."""
    cut = b'Traceback (most recent call last):\n  File "/p.py", line 1\n' + AGENT
    assert said(tmp_path, cut).startswith("its last lines:\nthe agent's line 10\n")
    assert nodes_seen.describe_failure(tmp_path / "none") == b"it left no log"


def test_an_empty_log_has_no_lines(tmp_path: Path) -> None:
    """A program that fails before it prints anything."""
    assert said(tmp_path, b"") == "its last lines:\n"
