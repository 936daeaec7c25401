"""The contract of a transport, run against every implementation."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.runtimes.supervisor import OPEN_GATE
from orchestrator.transports import Stream, Transport, _shell
from orchestrator.transports.local import LocalTransport
from orchestrator.transports.ssh import SshTransport
from orchestrator.transports.steps import Steps, StepTransport
from tests.processes import wait_for
from tests.sshd import Sshd
from tests.transports.ssh_nodes import put_srun

WORDS = ("a b", "$HOME", "`id`", "; exit 3", "*", "'", '"', "\\", "\n", "-n", "", "ä", "!", "%s")
SWAP_S = 2.0  # how long a name is exchanged while it is read


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server for all tests of the contract."""
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


@pytest.fixture(
    params=["local", "step", pytest.param("ssh", marks=[pytest.mark.cluster, pytest.mark.daemons])]
)
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Each implementation, connected to a node that is this machine."""
    made: Transport = LocalTransport("here")
    if request.param == "ssh":
        server: Sshd = request.getfixturevalue("sshd")
        made = SshTransport(server.target())
    elif request.param == "step":
        folder = request.getfixturevalue("tmp_path_factory").mktemp("srun")
        put_srun(folder, request.getfixturevalue("monkeypatch"))
        made = StepTransport("here", Steps("7"))
    yield made
    made.close()


def read_all(stream: Stream) -> bytes:
    """Read until the stream ends, and close it."""
    pieces = []
    while piece := stream.recv(100_000):
        pieces.append(piece)
    stream.close()
    return b"".join(pieces)


def opens(transport: Transport, path: Path) -> bool:
    """Return whether the line that opens a gate can be written there."""
    words = ("sh", "-c", OPEN_GATE, "sh", str(path))
    return transport.run(words, timeout_s=30).exit_code == 0


@contextlib.contextmanager
def python(script: str, *words: str, log: Path | None = None) -> Iterator[None]:
    """Run a script during the block."""
    with open(log or os.devnull, "wb") as stdout:
        process = subprocess.Popen([sys.executable, "-c", script, *words], stdout=stdout)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_words_and_input_arrive_as_they_are(transport: Transport) -> None:
    """No word of a command is taken for syntax by any shell on the way."""
    done = transport.run(("printf", "%s\\0", *WORDS), timeout_s=10)
    assert done.stdout.decode().split("\0")[:-1] == list(WORDS)
    script = 'cat; printf "%s\\0" "$@"; exit 3'
    done = transport.run(("sh", "-c", script, "sh", *WORDS), timeout_s=10)
    assert (done.exit_code, done.stdout.decode().split("\0")[:-1]) == (3, list(WORDS))


def test_a_status_is_an_answer_and_both_streams_come_whole(transport: Transport) -> None:
    """Six megabytes on each stream and exit status 7, with no input to wait for."""
    script = "cat; head -c 6000000 /dev/zero; head -c 6000000 /dev/zero >&2; exit 7"
    done = transport.run(("sh", "-c", script), timeout_s=60)
    assert (done.exit_code, len(done.stdout), len(done.stderr)) == (7, 6_000_000, 6_000_000)


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


def test_put_where_nothing_can_be_written_names_the_path(
    transport: Transport, tmp_path: Path
) -> None:
    """With the reason, however much is to be written; no content is read as a command."""
    command = f"\n: >{tmp_path}/made\n".encode() * 999
    for content in (b"x", bytes(8 << 20), command):
        for path, why in (("/proc/none/file", "No such file"), ("/proc/version/file", "exists")):
            with pytest.raises(transport.unfit, match=rf"cannot write {path}: .*{why}"):
                transport.put(content, path)
    assert not (tmp_path / "made").exists()


def test_get_reads_from_an_offset_and_returns_none_without_a_file(
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
    contents = set()
    with python(swap, str(folder), str(secret)):
        wait_for((folder / "log").exists, "the log is there")
        until = time.monotonic() + SWAP_S
        while time.monotonic() < until:
            contents.add(transport.get(str(folder / "log"), own=True))
    assert contents <= {None, b"", b"public"}


def test_get_own_reads_a_log_that_grows(transport: Transport, tmp_path: Path) -> None:
    """Whatever is written meanwhile, its bytes come, and none twice."""
    log = tmp_path / "log"
    writes = "for n in range(10**7): print(n, flush=True)"
    with python(writes, log=log):
        wait_for(lambda: log.stat().st_size > 0, "it writes")
        content = b""
        for _ in range(50):
            piece = transport.get(str(log), len(content), own=True)
            assert piece is not None
            content += piece
    assert log.read_bytes().startswith(content)
    assert content


def test_a_gate_is_opened_for_a_waiting_reader_alone(transport: Transport, tmp_path: Path) -> None:
    """Nothing is written into a file, nor through a link, nor where nobody reads."""
    gate = tmp_path / "gate"
    (tmp_path / "file").write_text("whole")
    os.mkfifo(gate)
    for name, to in (("link", "file"), ("to-fifo", "gate")):
        (tmp_path / name).symlink_to(tmp_path / to)
    assert not opens(transport, gate)
    reader = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for name in ("file", "link", "to-fifo", "gone"):
            assert not opens(transport, tmp_path / name), name
        assert (tmp_path / "file").read_text() == "whole"
        assert opens(transport, gate)
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


def test_answers_of_calls_at_the_same_time_do_not_mix(transport: Transport, tmp_path: Path) -> None:
    def work(number: int) -> None:
        path = str(tmp_path / f"of-{number}")
        for turn in range(10):
            word = f"{number}-{turn}".encode()
            transport.put(word * 1000, path)
            said = transport.run(("printf", "%s", word.decode()), timeout_s=60)
            assert (transport.get(path), said.stdout) == (word * 1000, word)
            assert transport.get(path, len(word) * 999) == word
            assert not opens(transport, tmp_path / "nobody")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert len(list(tmp_path.iterdir())) == 16


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
    heard = read_all(stream)
    assert (len(heard), heard[-3:]) == (300_003, b"end")


def test_a_stream_waits_no_longer_than_it_may(transport: Transport) -> None:
    """Silence is a TimeoutError, after which the stream goes on."""
    stream = transport.open(("sh", "-c", "read line; echo $line"))
    stream.settimeout(0.2)
    with pytest.raises(TimeoutError):
        stream.recv(10)
    stream.sendall(b"hello\n")
    stream.settimeout(30)
    assert read_all(stream) == b"hello\n"


def test_a_command_sees_the_end_of_a_closed_stream(transport: Transport, tmp_path: Path) -> None:
    stream = transport.open(("sh", "-c", 'cat >/dev/null; : >"$1"', "sh", str(tmp_path / "done")))
    stream.sendall(b"some")
    stream.close()
    wait_for((tmp_path / "done").exists, "the end of the command")


def test_a_closed_transport_leaves_commands_alone(transport: Transport, tmp_path: Path) -> None:
    """A command that was detached on the node goes on."""
    script = '(sleep 0.3; : >"$1") </dev/null >/dev/null 2>&1 &'
    transport.run(("setsid", "sh", "-c", script, "sh", str(tmp_path / "done")), timeout_s=10)
    transport.close()
    wait_for((tmp_path / "done").exists, "the end of the command")


# The node's mkdir, while another attempt is forgotten, which removes empty folders: one above is
# removed first, then three times the new one.
REMOVED = """#!/bin/sh
for last; do :; done
echo >>{times}
turns=$(wc -l <{times})
[ "$turns" -gt 1 ] || exit 1
/bin/mkdir "$@" || exit
[ "$turns" -gt 4 ] || /bin/rmdir "$last"
"""


def test_a_folder_that_is_removed_before_its_file_is_there_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim, times = tmp_path / "bin" / "mkdir", tmp_path / "times"
    shim.parent.mkdir()
    shim.write_text(REMOVED.format(times=times))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    path = tmp_path / "attempts" / "a1" / "task"
    LocalTransport("here").put(b"it", str(path))
    assert path.read_bytes() == b"it"
    assert len(times.read_text().splitlines()) == 5


def test_the_last_words_of_a_shell_that_ends_at_once_are_read() -> None:
    """It may have ended before its input is written, as nologin on a busy machine."""
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(b"not available\n")
        theirs.close()
        marks = _shell.Marks()
        with pytest.raises(_shell.NoShell) as raised:
            marks.begin(ours, marks.format_open(("cat",)))
    assert (raised.value.args, raised.value.__cause__) == ((b"not available\n",), None)


def test_put_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by one who knows the name beside it: what it leads to stays as it is."""
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    (tmp_path / "task.00000000.new").symlink_to(other)
    monkeypatch.setattr("secrets.token_hex", lambda count: "0" * 2 * count)
    with contextlib.suppress(errors.DlperfError):
        LocalTransport("here").put(b"it", str(tmp_path / "task"))
    assert other.read_bytes() == b"theirs"


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
