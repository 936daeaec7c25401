"""The contract of a transport, run against every implementation."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.transports import Transport
from orchestrator.transports.local import LocalTransport


@pytest.fixture(params=[LocalTransport])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Each implementation, connected to a node that is this machine."""
    made: Transport = request.param("here")
    yield made
    made.close()


def test_words_arrive_as_they_are(transport: Transport) -> None:
    """No word of a command is taken for syntax by any shell on the way."""
    words = ("a b", "$HOME", "`id`", "; exit 3", "*", "'", '"', "\\", "\n", "-n", "", "ä")
    done = transport.run(("printf", "%s\\0", *words), timeout_s=10)
    assert done.stdout.decode().split("\0")[:-1] == list(words)


def test_a_status_is_an_answer_and_both_streams_come_whole(transport: Transport) -> None:
    """A megabyte on each stream and exit status 7, with no input to wait for."""
    script = "cat; head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 7"
    done = transport.run(("sh", "-c", script), timeout_s=30)
    assert (done.exit_code, len(done.stdout), len(done.stderr)) == (7, 1_000_000, 1_000_000)


def test_a_command_that_is_not_there_is_status_127(transport: Transport) -> None:
    """As a shell says it, with the name."""
    done = transport.run(("no-such-command-here",), timeout_s=10)
    assert done.exit_code == 127
    assert b"no-such-command-here" in done.stderr


def test_the_deadline_is_kept(transport: Transport) -> None:
    """A command without an answer is given up in time, and the node is named."""
    began = time.monotonic()
    with pytest.raises(errors.CommandTimedOut, match=r"sleep gave no answer in 0\.3 s") as raised:
        transport.run(("sleep", "60"), timeout_s=0.3)
    assert time.monotonic() - began < 10
    assert raised.value.where["node"] == "here"


def test_put_is_whole_and_the_users_alone(transport: Transport, tmp_path: Path) -> None:
    """A file comes with its folders, mode 0600, and replaces what was there in one step."""
    path = tmp_path / "new" / "folder" / "file"
    content = os.urandom(100_000)
    transport.put(content, str(path))
    transport.put(content[::-1], str(path))
    assert path.read_bytes() == content[::-1]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_put_where_nothing_can_be_written_names_the_path(transport: Transport) -> None:
    """An error of ours, with the path and the reason."""
    with pytest.raises(errors.DlperfError, match="/proc/nothing/here"):
        transport.put(b"x", "/proc/nothing/here")


def test_get_reads_from_an_offset_and_knows_what_is_not_there(
    transport: Transport, tmp_path: Path
) -> None:
    """Bytes from the offset on; empty at the end; None where there is no file."""
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    assert transport.get(str(path)) == b"0123456789"
    assert transport.get(str(path), 4) == b"456789"
    assert transport.get(str(path), 10) == b""
    assert transport.get(str(tmp_path / "gone")) is None
    assert transport.get("/proc/sys/kernel/random/boot_id") is not None
    with pytest.raises(errors.DlperfError, match="cannot read"):
        transport.get(str(tmp_path))


def test_a_big_file_comes_in_pieces(transport: Transport, tmp_path: Path) -> None:
    """One call gives a few MiB at most; offsets bring the rest, and memory stays small."""
    path = tmp_path / "big"
    path.write_bytes(os.urandom(9 << 20))
    offset, pieces = 0, []
    while piece := transport.get(str(path), offset):
        assert len(piece) <= 8 << 20
        offset += len(piece)
        pieces.append(piece)
    assert b"".join(pieces) == path.read_bytes()


def test_feed_reaches_a_waiting_reader_and_nobody_else(
    transport: Transport, tmp_path: Path
) -> None:
    """A line for the reader of a FIFO; False, and no waiting, where nobody reads."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    assert not transport.feed(str(gate), b"go\n")
    assert not transport.feed(str(tmp_path / "gone"), b"go\n")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(gate.read_bytes()))
    reader.start()
    deadline = time.monotonic() + 10
    while not transport.feed(str(gate), b"go\n") and time.monotonic() < deadline:
        time.sleep(0.01)
    reader.join(10)
    assert heard == [b"go\n"]
