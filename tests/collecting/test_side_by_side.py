"""Many files are read by a process for each core, and nothing else differs."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.collecting.side_by_side import FEW, read_all
from orchestrator.signals import REQUESTS, Signals, Stopped


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes as on a machine with four, wherever the test runs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})  # there may be fewer


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{number}.log" for number in range(4 * FEW + 3)]
    for path in found:
        path.write_text(path.name)
    return found


@pytest.fixture
def requests_taken() -> Iterator[None]:
    """Requests to end come as in a command."""
    before = {number: signal.getsignal(number) for number in REQUESTS}
    signals = Signals()
    signals.take()
    signals.begin()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Children:
    """Processes of this one that were not there before: other tests keep some."""

    def __init__(self) -> None:
        self._before: set[int] = set()
        self._before = set(self())

    def __call__(self) -> list[int]:
        task = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
        return [pid for pid in map(int, task.read_text().split()) if pid not in self._before]


@pytest.fixture
def children() -> Children:
    return Children()


def test_all_files_are_read_in_their_order_by_several_processes(
    paths: list[Path], children: Children
) -> None:
    """Each name with the process that read it; none is left."""
    found = read_all(paths, lambda path: (path.read_text(), os.getpid()))
    assert [name for name, _ in found] == [path.name for path in paths]
    assert len({pid for _, pid in found}) == 4
    assert os.getpid() in {pid for _, pid in found}
    assert children() == []


def test_a_few_files_are_read_here(paths: list[Path]) -> None:
    """A process costs more than it saves."""
    assert set(read_all(paths[: 2 * FEW - 1], lambda _: os.getpid())) == {os.getpid()}
    assert read_all([], lambda _: os.getpid()) == []


def test_what_a_killed_process_read_is_read_again(paths: list[Path]) -> None:
    """As the kernel does it where memory runs out."""
    here = os.getpid()

    def read(path: Path) -> str:
        if os.getpid() != here and path.name in ("1.log", "101.log"):
            os.kill(os.getpid(), signal.SIGKILL)
        return path.read_text()

    assert read_all(paths, read) == [path.name for path in paths]


def test_an_error_of_a_process_is_raised_here(paths: list[Path], children: Children) -> None:
    """With its words, and no process is left."""

    def read(path: Path) -> str:
        if path.name == "102.log":
            raise errors.LogError("no such log", code="READ")
        return path.name

    with pytest.raises(errors.LogError, match="no such log"):
        read_all(paths, read)
    assert children() == []


@pytest.mark.usefixtures("requests_taken")
def test_ctrl_c_ends_all_processes_at_once(paths: list[Path], children: Children) -> None:
    """The terminal sends it to all of them; the command ends as told, and nothing goes on."""
    here, began = os.getpid(), time.monotonic()

    def read(path: Path) -> str:
        if os.getpid() != here:
            time.sleep(60)
        elif path == paths[0]:
            for pid in children():
                os.kill(pid, signal.SIGINT if pid % 2 else signal.SIGUSR1)
            os.kill(here, signal.SIGINT)
        return path.name

    with pytest.raises(Stopped):
        read_all(paths, read)
    assert children() == []
    assert time.monotonic() - began < 30
