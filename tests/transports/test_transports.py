"""The contract of a transport, run against every implementation."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.runtimes.supervisor import OPEN_GATE
from orchestrator.transports import Stream, Transport, _shell
from orchestrator.transports.local import LocalTransport
from orchestrator.transports.ssh import SshTransport
from tests.sshd import Sshd
from tests.waiting import wait_for

SWAPS = 400  # reads while a name is exchanged


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server for all tests of the contract."""
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


@pytest.fixture(
    params=["local", pytest.param("ssh", marks=[pytest.mark.cluster, pytest.mark.daemons])]
)
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Each implementation, connected to a node that is this machine."""
    made: Transport = LocalTransport("here")
    if request.param == "ssh":
        server: Sshd = request.getfixturevalue("sshd")
        made = SshTransport(server.target())
    yield made
    made.close()


def everything(stream: Stream) -> bytes:
    """What comes until the stream ends."""
    pieces = []
    while piece := stream.recv(100_000):
        pieces.append(piece)
    return b"".join(pieces)


def opens(transport: Transport, path: str) -> bool:
    """Whether the line that opens a gate can be written there."""
    return transport.run(("sh", "-c", OPEN_GATE, "sh", path), timeout_s=30).exit_code == 0


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


def test_a_process_that_ends_while_its_file_is_read_is_none(transport: Transport) -> None:
    """As the supervisor's, between two looks at it: no error, which would end the sweep."""
    child = subprocess.Popen(("sleep", "60"))
    with open(f"/proc/{child.pid}/stat", "rb", buffering=0) as held:
        child.kill()
        child.wait()
        assert transport.get(f"/proc/{os.getpid()}/fd/{held.fileno()}") is None


def test_a_command_that_is_not_there_is_status_127(transport: Transport) -> None:
    """As a shell says it, with the name."""
    done = transport.run(("no-such-command-here",), timeout_s=10)
    assert done.exit_code == 127
    assert b"no-such-command-here" in done.stderr


def test_a_program_that_a_signal_ends_has_a_status_too(transport: Transport) -> None:
    """128 and the signal's number, as a shell says it: never a negative number."""
    assert transport.run(("sh", "-c", "kill -KILL $$"), timeout_s=10).exit_code == 137


def test_a_command_is_out_of_reach_of_the_terminal(transport: Transport) -> None:
    """Ctrl-C and a hang-up go to the foreground's processes: what ends a gang is not among them."""
    done = transport.run(("cut", "-d", " ", "-f", "6", "/proc/self/stat"), timeout_s=10)
    assert int(done.stdout) != os.getsid(0)


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
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_put_where_nothing_can_be_written_names_the_path(transport: Transport) -> None:
    """An error of ours, with the path and the reason, however much is to be written."""
    for content in (b"x", bytes(8 << 20)):
        with pytest.raises(errors.DlperfError, match=r"/proc/nothing/here.*No such file"):
            transport.put(content, "/proc/nothing/here")


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


def test_get_own_takes_plain_files_of_ours_alone(transport: Transport, tmp_path: Path) -> None:
    """What a container puts into a folder that it can write leads nowhere else."""
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    folder.mkdir(mode=0o700)
    secret.write_text("secret")
    transport.put(b"whole\n", str(folder / "mine"))
    (folder / "link").symlink_to(secret)
    (folder / "away").symlink_to(folder / "nothing")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo")
    transport.put(b"theirs", str(folder / "theirs"))
    os.chown(folder / "theirs", 4321, 4321)
    assert transport.get(str(folder / "mine"), own=True) == b"whole\n"
    assert transport.get(str(folder / "mine"), 2, own=True) == b"ole\n"
    for name in ("link", "away", "folder", "fifo", "theirs", "nothing"):
        assert transport.get(str(folder / name), own=True) is None, name
    assert transport.get(str(tmp_path / "nowhere" / "mine"), own=True) is None
    assert transport.get(str(folder / "mine" / "below"), own=True) is None


def test_get_takes_no_other_failure_for_an_absent_file(
    transport: Transport, tmp_path: Path
) -> None:
    """Where a path cannot be followed, nothing is known of the file: an error says so."""
    (tmp_path / "loop").symlink_to("loop")
    long = tmp_path / ("x" * 300)
    for path, own in ((tmp_path / "loop" / "file", False), (long, False), (long, True)):
        with pytest.raises(errors.DlperfError, match="cannot read"):
            transport.get(str(path), own=own)
    assert transport.get(str(tmp_path / "loop"), own=True) is None  # a link, wherever it leads


@pytest.mark.parametrize("own", [False, True])
def test_get_reads_a_file_that_appears_between_two_looks(tmp_path: Path, own: bool) -> None:
    """It comes to be just before the script opens it, as the files of a task do."""
    path, programs = tmp_path / "file", tmp_path / "bin"
    programs.mkdir()
    real = shutil.which("dd")
    (programs / "dd").write_text(f'#!/bin/sh\n[ -e {path} ] || echo it >{path}\n{real} "$@"\n')
    (programs / "dd").chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    words = _shell.format_read(str(path), 0, 100, own=own)
    done = subprocess.run(words, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"it\n"), done.stderr


def test_get_own_reads_no_link_that_is_put_in_the_place_of_a_file(
    transport: Transport, tmp_path: Path
) -> None:
    """A task that exchanges its log for a link while it is read gets nothing else read."""
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    folder.mkdir(mode=0o700)
    secret.write_text("a key of the login user's")
    swap = """
import itertools, os, sys
folder, secret = sys.argv[1:]
for turn in itertools.count():
    with open(f"{folder}/file", "w") as file:
        file.write("public")
    os.rename(f"{folder}/file", f"{folder}/log")
    os.symlink(secret, f"{folder}/link")
    os.rename(f"{folder}/link", f"{folder}/log")
"""
    swapping = subprocess.Popen([sys.executable, "-c", swap, str(folder), str(secret)])
    try:
        wait_for((folder / "log").exists, "the log is there")
        contents = {transport.get(str(folder / "log"), own=True) for _ in range(SWAPS)}
    finally:
        swapping.kill()
        swapping.wait()
    assert contents <= {None, b"", b"public"}


def test_get_own_reads_a_log_that_grows(transport: Transport, tmp_path: Path) -> None:
    """Whatever is written meanwhile, its bytes come, and none twice."""
    log = tmp_path / "log"
    writes = "for n in range(10**7): print(n, flush=True)"
    with log.open("wb") as file:
        writing = subprocess.Popen([sys.executable, "-c", writes], stdout=file)
    try:
        wait_for(lambda: log.stat().st_size > 0, "it writes")
        content = b""
        for _ in range(50):
            piece = transport.get(str(log), len(content), own=True)
            assert piece is not None
            content += piece
    finally:
        writing.kill()
        writing.wait()
    assert log.read_bytes().startswith(content)
    assert content


def test_feed_writes_into_nothing_but_a_fifo(transport: Transport, tmp_path: Path) -> None:
    """Not into a file, nor into what a link leads to."""
    (tmp_path / "file").write_text("whole")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "to-fifo").symlink_to(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for name in ("file", "link", "to-fifo"):
            assert not opens(transport, str(tmp_path / name)), name
        assert (tmp_path / "file").read_text() == "whole"
        assert opens(transport, str(tmp_path / "fifo"))
        assert os.read(reader, 9) == b"go\n"
    finally:
        os.close(reader)


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


def test_what_the_calls_do_not_share_does_not_mix(transport: Transport, tmp_path: Path) -> None:
    """Sixteen threads that run, put, get and feed at once: each has its own answers."""
    wrong: list[object] = []

    def work(number: int) -> None:
        path = str(tmp_path / f"of-{number}")
        for turn in range(10):
            word = f"{number}-{turn}".encode()
            transport.put(word * 1000, path)
            said = transport.run(("printf", "%s", word.decode()), timeout_s=60)
            if (transport.get(path), said.stdout) != (word * 1000, word):
                wrong.append((number, turn))
            if opens(transport, str(tmp_path / "nobody")):
                wrong.append("fed nobody")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not wrong
    assert len(list(tmp_path.iterdir())) == 16


def test_feed_reaches_a_waiting_reader_and_nobody_else(
    transport: Transport, tmp_path: Path
) -> None:
    """A line for the reader of a FIFO; False, and no waiting, where nobody reads."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    assert not opens(transport, str(gate))
    assert not opens(transport, str(tmp_path / "gone"))
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(gate.read_bytes()))
    reader.start()
    deadline = time.monotonic() + 10
    while not opens(transport, str(gate)) and time.monotonic() < deadline:
        time.sleep(0.01)
    reader.join(10)
    assert heard == [b"go\n"]


def test_a_stream_carries_bytes_both_ways(transport: Transport) -> None:
    """A megabyte goes in while it comes out again, byte for byte."""
    content = os.urandom(1_000_000)
    stream = transport.open(("cat",))
    stream.settimeout(30)
    sender = threading.Thread(target=stream.sendall, args=(content,))
    sender.start()
    heard = b""
    while len(heard) < len(content):
        heard += stream.recv(65536)
    sender.join(30)
    stream.close()
    assert heard == content


def test_a_stream_ends_with_its_command(transport: Transport) -> None:
    """Everything that the command wrote, and then nothing; its standard error is not in it."""
    script = "head -c 300000 /dev/zero; head -c 4000000 /dev/zero >&2; printf end"
    stream = transport.open(("sh", "-c", script))
    stream.settimeout(30)
    heard = everything(stream)
    stream.close()
    assert (len(heard), heard[-3:]) == (300_003, b"end")


def test_a_stream_waits_no_longer_than_it_may(transport: Transport) -> None:
    """Silence is a TimeoutError, after which the stream goes on."""
    stream = transport.open(("sh", "-c", "read line; echo $line"))
    stream.settimeout(0.2)
    with pytest.raises(TimeoutError):
        stream.recv(10)
    stream.sendall(b"hello\n")
    stream.settimeout(30)
    assert everything(stream) == b"hello\n"
    stream.close()


def test_a_command_sees_the_end_of_a_closed_stream(transport: Transport, tmp_path: Path) -> None:
    """Its input ends, and it can finish its work."""
    stream = transport.open(("sh", "-c", 'cat >/dev/null; : >"$1"', "sh", str(tmp_path / "done")))
    stream.sendall(b"some")
    stream.close()
    deadline = time.monotonic() + 10
    while not (tmp_path / "done").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / "done").exists()


def test_a_closed_transport_leaves_commands_alone(transport: Transport, tmp_path: Path) -> None:
    """What was detached on the node goes on after the connection is given back."""
    script = '(sleep 0.3; : >"$1") </dev/null >/dev/null 2>&1 &'
    transport.run(("setsid", "sh", "-c", script, "sh", str(tmp_path / "done")), timeout_s=10)
    transport.close()
    deadline = time.monotonic() + 10
    while not (tmp_path / "done").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / "done").exists()


def test_folders_that_others_remove_meanwhile_are_made_again(tmp_path: Path) -> None:
    """As of attempts beside it that are forgotten: each removes empty folders above it once.

    At most 20 during one write; one who went on for ever, as fast as it can, would win.
    """
    transport, over, ends, removed = LocalTransport("here"), threading.Event(), 0, 0
    attempts = tmp_path / "sweep" / "attempts"

    def forget() -> None:
        nonlocal ends, removed
        while not over.wait(1e-4):
            for folder in (attempts, attempts.parent):
                with contextlib.suppress(OSError):
                    if ends > 0:
                        folder.rmdir()
                        ends, removed = ends - 1, removed + 1

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        for number in range(500):
            ends = 20
            path = attempts / "one" / f"a{number}" / "task"
            transport.put(b"it", str(path))
            path.unlink()
            path.parent.rmdir()
            path.parent.parent.rmdir()
    finally:
        over.set()
        thread.join()
    assert removed > 0


# The node's mkdir, with what `forget` of another attempt does right after it, three times.
REMOVED = """#!/bin/sh
/bin/mkdir "$@" || exit
for last; do :; done
echo >>{times}
[ "$(wc -l <{times})" -gt 3 ] || /bin/rmdir "$last"
"""


def test_a_folder_that_is_removed_before_its_file_is_there_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removed three times between folder and file, which the node's own /bin/sh writes at last."""
    shim, times = tmp_path / "bin" / "mkdir", tmp_path / "times"
    shim.parent.mkdir()
    shim.write_text(REMOVED.format(times=times))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    path = tmp_path / "attempts" / "a1" / "task"
    LocalTransport("here").put(b"it", str(path))
    assert path.read_bytes() == b"it"
    assert len(times.read_text().splitlines()) == 4


def test_a_file_is_written_through_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by one who knows the name beside it: what it leads to stays as it is."""
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    (tmp_path / "task.00000000.new").symlink_to(other)
    monkeypatch.setattr("secrets.token_hex", lambda count: "0" * 2 * count)
    with contextlib.suppress(errors.DlperfError):
        LocalTransport("here").put(b"it", str(tmp_path / "task"))
    assert other.read_bytes() == b"theirs"


def test_a_folder_that_cannot_be_made_is_told() -> None:
    """The kernel's own file systems say that nothing is there, again and again."""
    with pytest.raises(errors.LocalError, match=r"cannot write /proc/none/file: .*No such file"):
        LocalTransport("here").put(b"it", "/proc/none/file")
    with pytest.raises(errors.LocalError, match=r"cannot write /proc/version/file: .*File exists"):
        LocalTransport("here").put(b"it", "/proc/version/file")


def test_a_closed_stream_leaves_no_zombie() -> None:
    """Its process is waited for, also where hundreds of streams follow one another."""
    transport = LocalTransport("here")
    before = {*zombies()}
    for _ in range(5):
        stream = transport.open(("cat",))
        stream.close()
    wait_for(lambda: not {*zombies()} - before, "the end of what was opened", 10)
    transport.close()


def zombies() -> list[str]:
    """Processes of this one that have ended and are not waited for."""
    found = []
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            with contextlib.suppress(OSError):
                if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                    found.append(pid)
    return found
