"""The program that passes an image from node to node: real processes that call each other here.

In the place of Docker stand commands of the shell, which take, give, fail and stall at will.
"""

import ast
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest

from orchestrator.provisioning.node_to_node import onward_s
from orchestrator.runtimes import hand_on
from tests.sshd import free_port
from tests.waiting import wait_for

PROGRAM = Path(hand_on.__file__).read_text()
IMAGE = bytes(range(256)) * 40_000  # 10 MB, more than lies in pipes and sockets
FAR_MORE = 100_000_000  # more than lies in all of that and in memory
LIMITS = {"called_s": 20, "call_s": 5, "beat_s": 0.2, "stall_s": 20, "onward_s": 40, "work_s": 20}
TAKES = ("sh", "-c", 'cat >"$0"')
KEY = "5e" * 32
PATIENCE_S = 60.0
Call = tuple[str, int, str, str]


class Post:
    """The program on one node of a chain."""

    def __init__(self, *, listens: bool = True) -> None:
        self.port = free_port() if listens else 0
        self.word, self.answer = f"{self.port:032}", f"{self.port + 1:032}"
        argv = (sys.executable, "-IS", "-c", PROGRAM, str(self.port))
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.watch = Timer(PATIENCE_S, self.process.kill)  # a test that waits for it then fails
        self.watch.start()

    @property
    def called(self) -> Call:
        """How to call it."""
        return "127.0.0.1", self.port, self.word, self.answer

    def tell(self, argv: tuple[str, ...], *calls: Call, **limits: float) -> None:
        """What to run in Docker's place, and whom to call."""
        words = {"argv": argv, "word": self.word, "answer": self.answer, "key": KEY, "next": calls}
        assert self.process.stdin
        self.process.stdin.write(json.dumps({**LIMITS, **limits, **words}).encode() + b"\n")
        self.process.stdin.flush()

    def says(self) -> str:
        """Its next line that is no sign of life; empty at the end."""
        assert self.process.stdout
        while (line := self.process.stdout.readline().decode()).startswith("at "):
            continue
        return line.strip()

    def call(self, word: str) -> bytes:
        """What it answers to a caller that says this word."""
        with socket.create_connection(("127.0.0.1", self.port), 20) as peer:
            peer.sendall(word.encode())
            return peer.recv(len(self.answer))

    def end(self) -> None:
        """End its input, which ends it."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.watch.cancel()
        self.process.stdout.close()


@pytest.fixture
def posts() -> Iterator[list[Post]]:
    """Where the image is, and three nodes that listen."""
    made = [Post(listens=False), Post(), Post(), Post()]
    assert [post.says() for post in made] == ["ready"] * 4
    yield made
    for post in made:
        post.end()


@pytest.fixture
def image(tmp_path: Path) -> tuple[str, str]:
    """The command that gives the image."""
    (tmp_path / "image").write_bytes(IMAGE)
    return ("cat", str(tmp_path / "image"))


def taking(path: Path) -> tuple[str, ...]:
    """The command that takes an image in."""
    return (*TAKES, str(path))


def running(words: str) -> list[int]:
    """Processes that have these words in their command line."""
    found = subprocess.run(["pgrep", "-f", words], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def came(path: Path) -> bytes:
    """What a command took in that may have been ended before it began."""
    return path.read_bytes() if path.exists() else b""


def test_any_python_of_the_last_years_reads_it() -> None:
    """Its syntax is that of 3.6, which distributions of 2018 have."""
    ast.parse(PROGRAM, feature_version=(3, 6))


def test_each_node_has_all_bytes_and_the_source_is_read_once(
    posts: list[Post], image: tuple[str, ...], tmp_path: Path
) -> None:
    """The first gives to the second, the second to the third."""
    source, *others = posts
    for place, post in enumerate(others):
        post.tell(taking(tmp_path / str(place)), *[one.called for one in others[place + 1 :]])
    counted = ("sh", "-c", f'echo once >>{tmp_path}/reads; exec "$@"', "sh", *image)
    source.tell(counted, *[one.called for one in others])
    for post in posts:
        assert post.says() == ("next -1" if post is others[-1] else "next 0")
    assert source.says() == "end handed"
    assert [post.says() for post in others] == ["end handed"] * 3
    assert [(tmp_path / str(place)).read_bytes() == IMAGE for place in range(3)] == [True] * 3
    assert (tmp_path / "reads").read_text() == "once\n"


def test_who_does_not_say_the_word_is_refused(
    posts: list[Post], image: tuple[str, ...], tmp_path: Path
) -> None:
    """Neither a wrong word nor silence; whoever then says the right one is served, and nobody else.

    The connection of a refused caller is closed without a byte.
    """
    source, one, *_ = posts
    one.tell(taking(tmp_path / "one"))
    assert one.call("f" * 32) == b""
    assert one.call("short") == b""
    source.tell(image, one.called)
    assert (source.says(), one.says()) == ("next 0", "next -1")
    with pytest.raises(ConnectionRefusedError):
        one.call(one.word)
    assert one.says() == "end handed"
    assert (tmp_path / "one").read_bytes() == IMAGE


def frame(piece: bytes, number: int, key: str = KEY) -> bytes:
    """A piece as it travels."""
    code = hand_on.mac(bytes.fromhex(key), number, piece)
    return hand_on.HEAD.pack(len(piece), code) + piece


@pytest.mark.parametrize(
    "data",
    [
        b"an image without a frame" * 100,
        frame(b"another's key", 1, "00" * 32),
        frame(b"ours", 0),  # heard on the network, and said again
        frame(b"changed", 1)[:-1] + b"D",
        frame(b"longer than any" * hand_on.PIECE_BYTES, 1),
    ],
)
def test_bytes_that_are_not_ours_come_to_no_docker(
    posts: list[Post], tmp_path: Path, data: bytes
) -> None:
    """Not even from who heard the word on the network; what came before is not taken for all."""
    one, two = posts[1], posts[2]
    one.tell(taking(tmp_path / "one"), two.called)
    two.tell(taking(tmp_path / "two"))
    with socket.create_connection(("127.0.0.1", one.port), 20) as peer:
        peer.sendall(one.word.encode())
        assert peer.recv(len(one.answer)) == one.answer.encode()
        peer.sendall(frame(b"ours", 0))
        with suppress(OSError):  # it does not listen to the end
            peer.sendall(data)
        assert one.says() == "next 0"
        assert one.says() == "end cut"
    assert (two.says(), two.says()) == ("next -1", "end handed")
    assert {came(tmp_path / "one"), came(tmp_path / "two")} <= {b"", b"ours"}


def test_a_node_that_nobody_calls_ends_in_time(posts: list[Post]) -> None:
    """And has started nothing."""
    posts[1].tell(("sh", "-c", "echo never"), called_s=1)
    assert posts[1].says() == ""
    assert posts[1].process.wait(20) == 0


def test_a_listener_that_is_not_ours_is_given_nothing(
    posts: list[Post], image: tuple[str, ...], tmp_path: Path
) -> None:
    """Where something else answers, or nobody, the next but one is called."""
    source, gone, stranger, one = posts
    gone.end()
    stranger.tell(taking(tmp_path / "stranger"))
    one.tell(taking(tmp_path / "one"))
    other = (*stranger.called[:3], "f" * 32)  # not what it will answer
    source.tell(image, gone.called, other, one.called)
    assert source.says() == "next 2"
    assert source.says() == "end handed"
    assert one.says() == "next -1"
    assert one.says() == "end handed"
    assert came(tmp_path / "stranger") == b""


@pytest.mark.parametrize("fails", ["false", "sleep"])
def test_a_docker_that_fails_or_stalls_costs_only_its_own_node(
    posts: list[Post], fails: str, tmp_path: Path
) -> None:
    """It is given up and ended, and what it had to hand on is handed on."""
    source, one, two, _ = posts
    known = str(one.port + 600_000)
    two.tell(taking(tmp_path / "two"))
    one.tell((fails, known), two.called, stall_s=1)
    source.tell(("head", "-c", str(FAR_MORE), "/dev/zero"), one.called)
    for post in (source, one, two):
        post.says()
    assert source.says() == "end handed"
    assert one.says() == "end handed"
    assert two.says() == "end handed"
    assert (tmp_path / "two").stat().st_size == FAR_MORE
    assert one.process.wait(20) == 0
    wait_for(lambda: not running(f"{fails} {known}"), "its end", 20)


def test_a_next_node_that_stalls_is_cut_off_and_told(posts: list[Post], tmp_path: Path) -> None:
    """The node before it has the image all the same."""
    source, one, *_ = posts
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        word, answer = "a" * 32, "b" * 32
        one.tell(taking(tmp_path / "one"), ("127.0.0.1", port, word, answer), onward_s=2)
        source.tell(("head", "-c", str(FAR_MORE), "/dev/zero"), one.called)
        peer, _ = server.accept()
        with peer:
            assert peer.recv(32) == word.encode()
            peer.sendall(answer.encode())
            assert (source.says(), one.says()) == ("next 0", "next 0")
            assert source.says() == "end handed"
            assert one.says() == "end cut"
    assert (tmp_path / "one").stat().st_size == FAR_MORE


def test_a_last_node_that_stalls_costs_none_of_those_before_it(
    posts: list[Post], tmp_path: Path
) -> None:
    """All of the chain wait then; the one before it gives it up first, and the others go on."""
    source, one, two, _ = posts
    assert 1 < onward_s(1, behind=1) < onward_s(1, behind=2) < onward_s(1, behind=3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        stalls = ("127.0.0.1", server.getsockname()[1], "a" * 32, "b" * 32)
        two.tell(taking(tmp_path / "two"), stalls, onward_s=onward_s(1, behind=1))
        one.tell(taking(tmp_path / "one"), two.called, onward_s=onward_s(1, behind=2))
        giving = ("head", "-c", str(FAR_MORE), "/dev/zero")
        source.tell(giving, one.called, onward_s=onward_s(1, behind=3))
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"b" * 32)
            chain = (source, one, two)
            assert [post.says() for post in chain] == ["next 0"] * 3
            assert [post.says() for post in chain] == ["end handed", "end handed", "end cut"]
    assert [(tmp_path / name).stat().st_size for name in ("one", "two")] == [FAR_MORE] * 2


def test_a_docker_that_gives_no_more_ends_the_chain(posts: list[Post], tmp_path: Path) -> None:
    """It does not wait for ever for the rest."""
    source, one, *_ = posts
    one.tell(taking(tmp_path / "one"))
    source.tell(("sh", "-c", "echo begun; exec sleep 600"), one.called, stall_s=1)
    assert (source.says(), one.says()) == ("next 0", "next -1")
    assert source.says() == "end cut"
    assert one.says() == "end handed"
    assert source.process.wait(20) == 0


def test_the_end_of_its_input_ends_all_that_it_started(posts: list[Post], tmp_path: Path) -> None:
    """As when the machine that started it is gone."""
    source, one, *_ = posts
    giving, taken = tmp_path / "giving", tmp_path / "taken"
    one.tell(("sh", "-c", f"cat >{taken}"))
    source.tell(("sh", "-c", f"while echo more; do sleep 0.1; done # {giving}"), one.called)
    wait_for(lambda: taken.exists() and taken.stat().st_size, "bytes that flow")
    assert running(str(giving))
    for post in (source, one):
        post.end()
    wait_for(lambda: not running(str(giving)) and not running(str(taken)), "the end of both", 20)


def test_signs_of_life_tell_how_far_it_is(posts: list[Post], tmp_path: Path) -> None:
    """While bytes come, and while Docker works at the end."""
    source, one, *_ = posts
    one.tell(("sh", "-c", f"cat >{tmp_path}/one; sleep 1"))
    source.tell(("sh", "-c", "echo some; sleep 1; echo more"), one.called)
    assert one.process.stdout
    lines = [line.decode().strip() for line in one.process.stdout]
    assert lines[0] == "next -1"
    assert lines[-1] == "end handed"
    assert {"at 5", "at 10"} <= set(lines)
