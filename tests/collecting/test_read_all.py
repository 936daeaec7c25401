"""Many files are read by a process for each core, and nothing else differs."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.collecting.logs import FEW, read_all
from orchestrator.signals import REQUESTS, Signals, Stopped
from tests.processes import wait_for


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read with as many processes as on a machine with four cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})  # there may be fewer


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{number}.log" for number in range(4 * FEW + 3)]
    for path in found:
        path.write_text(path.name)
    return found


@pytest.fixture
def requests_taken() -> Iterator[None]:
    """Handle requests to end as a command does."""
    before = {number: signal.getsignal(number) for number in REQUESTS}
    signals = Signals()
    signals.take()
    signals.begin()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Children:
    """List the children of this process that were not there before."""

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
    paths: list[Path], tmp_path: Path, children: Children
) -> None:
    """Each name with the process that read it; none is left."""
    readers = tmp_path / "readers"
    readers.mkdir()

    def read(path: Path) -> tuple[str, int]:
        (readers / str(os.getpid())).touch()
        wait_for(lambda: len(list(readers.iterdir())) == 4, "four processes that read")
        return path.read_text(), os.getpid()

    found = read_all(paths, read)
    assert [name for name, _ in found] == [path.name for path in paths]
    assert {str(pid) for _, pid in found} == {path.name for path in readers.iterdir()}
    assert children() == []


@pytest.mark.parametrize("count", [0, 1, 2 * FEW - 1])
def test_a_few_files_are_read_here(paths: list[Path], count: int, children: Children) -> None:
    """A process costs more than it saves."""
    assert read_all(paths[:count], lambda _: (os.getpid(), *children())) == [(os.getpid(),)] * count


def test_what_killed_processes_read_is_read_again(paths: list[Path]) -> None:
    """As the kernel does it where memory runs out."""
    here = os.getpid()

    def read(path: Path) -> str:
        if os.getpid() != here:
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
def test_ctrl_c_ends_all_processes_at_once(
    paths: list[Path], tmp_path: Path, children: Children
) -> None:
    """The command alone gets the signal; nothing that reads for it goes on."""
    here, began, reading = os.getpid(), time.monotonic(), tmp_path / "reading"

    def read(_path: Path) -> None:
        with contextlib.suppress(FileExistsError):
            reading.mkdir()
            os.kill(here, signal.SIGINT)
        time.sleep(60)

    with pytest.raises(Stopped):
        read_all(paths, read)
    assert children() == []
    assert time.monotonic() - began < 30
