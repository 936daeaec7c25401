"""Lanes: work done by several threads, each item once, while signals reach who waits."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.sweeping.loop import run_lanes
from orchestrator.transports.cached import Cached
from tests.waiting import wait_for

# $1: lanes. The first of three items never ends; the program says what a second Ctrl-C leaves.
ABANDONED = """
import sys, threading
from orchestrator.console import Voice
from orchestrator.signals import Abandoned, Signals
from orchestrator.sweeping.loop import run_lanes

signals = Signals()
signals.take()
signals.begin()
given = []

def give():
    given.append(len(given))
    return given[-1]

def work(item):
    sys.stdout.write(f"begun {item}\\n")  # in one piece: threads write side by side
    sys.stdout.flush()
    if item == 0:
        threading.Event().wait()

try:
    with signals:
        run_lanes(
            give, work, lanes=int(sys.argv[1]), voice=Voice(as_json=False),
            may_begin=lambda: len(given) < 3 and not signals.stopping(),
        )
except Abandoned:
    print("abandoned with", signals.received, flush=True)
    sys.exit(7)
"""


# Of a sweep that was detached, whose first trials begin at the same moment.
UNDER_WAY = """
import os, sys, threading
from pathlib import Path
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping.detached import Begun

sys.setswitchinterval(1e-6)
failures = []

def lane(begun, together, folder):
    together.wait()
    try:
        begun(Sweep(folder))
    except BaseException as error:
        failures.append(error)

for number in range(50):
    folder = Path(sys.argv[1]) / str(number)
    folder.mkdir()
    (folder.parent / "messages").touch()
    ours, theirs = os.pipe()
    given = Begun(theirs, folder.parent / "messages"), threading.Barrier(4), folder
    threads = [threading.Thread(target=lane, args=given) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if os.read(ours, 100) != str(number).encode() or not (folder / "messages").exists():
        failures.append(number)
sys.exit(f"failed: {failures}" if failures else 0)
"""


def run(
    items: int,
    work: Callable[[int], object],
    *,
    side_by_side: int = 3,
    may_begin: Callable[[], bool] = lambda: True,
) -> None:
    """Have so many items done."""

    def do(item: int) -> None:
        work(item)

    give = partial(next, iter(range(items)), None)
    run_lanes(give, do, lanes=side_by_side, may_begin=may_begin, voice=Voice(as_json=False))


@pytest.mark.parametrize("side_by_side", [1, 2, 3, 8])
def test_every_item_is_done_once_and_begun_in_order(side_by_side: int) -> None:
    """However long each takes; none twice, none lost, and never more at once than lanes."""
    begun: list[int] = []
    now: set[int] = set()
    most: list[int] = []

    def work(item: int) -> None:
        now.add(item)
        most.append(len(now))
        begun.append(item)
        time.sleep(random.SystemRandom().uniform(0, 0.005))
        now.remove(item)

    run(200, work, side_by_side=side_by_side)
    assert sorted(begun) == list(range(200))
    assert max(most) <= side_by_side
    # Two lanes may write down what they began the other way round, and no more.
    assert all(abs(item - place) < side_by_side for place, item in enumerate(begun))


def test_one_lane_is_a_thread_too() -> None:
    """There is one path: who calls only waits, whatever the number of lanes."""
    seen: list[threading.Thread] = []
    run(2, lambda _: seen.append(threading.current_thread()), side_by_side=1)
    assert len(set(seen)) == 1
    assert seen[0] is not threading.main_thread()
    assert seen[0].daemon


def test_after_an_error_the_others_finish_and_nothing_begins(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Hours of a cluster are kept; that a lane failed is said at once, and raised at the end."""
    failed, together = threading.Event(), threading.Barrier(3)
    finished: list[int] = []

    def work(item: int) -> None:
        together.wait(10)
        if item == 1:
            failed.set()
            raise errors.StoreError("no space left", code="STORE-FULL")
        failed.wait(10)
        time.sleep(0.3)
        finished.append(item)

    with pytest.raises(errors.StoreError, match=r"no space left\.$"):
        run(9, work)
    assert sorted(finished) == [0, 2]
    words = "what runs is finished, nothing new is started"
    assert capfd.readouterr().err == f"ERROR STORE-FULL: no space left.\n{words}\n"


@pytest.mark.parametrize("fault", ["give", "ended"])
def test_a_fault_in_giving_out_waits_for_the_other_lanes(fault: str) -> None:
    """A mistake where results are noted lets no gang run on after the locks of nodes are gone."""
    items, done = iter(range(3)), list[int]()

    def give() -> int | None:
        item = next(items)
        if item == 2 and fault == "give":
            raise ZeroDivisionError
        return item

    def work(item: int) -> int:
        time.sleep(0.3 * item)
        done.append(item)
        return item

    def ended(item: int, _: int) -> float:
        return 1 / item if fault == "ended" else 1.0

    with pytest.raises(ZeroDivisionError):
        run_lanes(give, work, lanes=2, voice=Voice(as_json=False), ended=ended)
    assert done == [0, 1]


def test_the_gravest_error_is_raised_with_the_others_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What may still run counts more than a full disk; at the end every other is printed once."""
    together = threading.Barrier(4)
    failures = [
        errors.StoreError("no space left", code="STORE-FULL"),
        errors.LeftoverError("it would not go", code="LEFTOVER", node="b"),
        errors.StoreError("no space left", code="STORE-FULL"),
        errors.NodeError("it is silent", code="SSH-LOST", node="c"),
    ]

    def work(item: int) -> None:
        together.wait(10)
        raise failures[item]

    with pytest.raises(errors.LeftoverError, match="it would not go"):
        run(4, work, side_by_side=4)
    *_, before, last = capfd.readouterr().err.splitlines()
    others = {"ERROR STORE-FULL: no space left.", "ERROR SSH-LOST node=c: it is silent."}
    assert {before, last} == others


def test_a_fault_of_ours_counts_more_than_what_a_node_says(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It is shown with its traceback, and what else failed is printed before."""
    together = threading.Barrier(2)

    def work(item: int) -> None:
        together.wait(10)
        if item:
            raise KeyError("trial")
        raise errors.NodeError("it is silent", code="SSH-LOST", node="c")

    with pytest.raises(KeyError):
        run(2, work, side_by_side=2)
    assert capfd.readouterr().err.endswith("ERROR SSH-LOST node=c: it is silent.\n")


def test_each_fault_of_ours_is_told_by_its_kind(capfd: pytest.CaptureFixture[str]) -> None:
    """Of one, 'trial' alone would say nothing; the other ends with its traceback."""
    together = threading.Barrier(2)

    def work(item: int) -> None:
        together.wait(10)
        raise KeyError("trial") if item else ValueError("no such state")

    with pytest.raises((KeyError, ValueError)) as caught:
        run(2, work, side_by_side=2)
    said = capfd.readouterr().err + repr(caught.value)
    assert "KeyError('trial')" in said
    assert "ValueError('no such state')" in said


def test_a_lane_that_stalls_holds_up_no_other() -> None:
    """The others do all that is left."""
    done: list[int] = []
    stalled = threading.Event()

    def work(item: int) -> None:
        if item == 0:
            wait_for(lambda: len(done) == 49, "the others have done the rest")
            stalled.set()
        else:
            done.append(item)

    run(50, work)
    assert stalled.is_set()


def test_once_told_to_stop_nothing_begins() -> None:
    """And what had begun ends, even if it may begin again later: that is asked no more."""
    asked: list[int] = []
    begun: list[int] = []

    def may_begin() -> bool:
        asked.append(1)
        return len(asked) != 6

    run(50, begun.append, may_begin=may_begin)
    assert len(begun) == 5


@pytest.mark.parametrize("side_by_side", [1, 3])
def test_no_item_begins_after_the_last_failure_that_is_allowed(side_by_side: int) -> None:
    """A lane that counts one sees its own count before it takes the next; so do the others."""
    for _ in range(50):
        bad: list[int] = []
        late: list[int] = []

        def work(item: int, bad: list[int] = bad, late: list[int] = late) -> None:
            if len(bad) >= 4:
                late.append(item)
            time.sleep(random.SystemRandom().uniform(0, 0.0005))
            bad.append(item)

        def may_begin(bad: list[int] = bad) -> bool:
            return len(bad) < 4

        run(30, work, side_by_side=side_by_side, may_begin=may_begin)
        assert 4 <= len(bad) < 4 + side_by_side
        assert len(late) < side_by_side  # begun before, and only then overtaken


@pytest.mark.parametrize("side_by_side", [1, 3])
def test_a_second_ctrl_c_leaves_at_once_whatever_the_lanes_do(side_by_side: int) -> None:
    """The first begins nothing further; the second is raised in who waits, and the program ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", ABANDONED, str(side_by_side)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("begun")
    time.sleep(0.3)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    began = time.monotonic()
    assert process.wait(20) == 7
    assert time.monotonic() - began < 5
    said = process.stdout.read()
    process.stdout.close()
    assert "abandoned with 2\n" in said
    assert said.count("begun") == (0 if side_by_side == 1 else 2)  # the first line is read already


def test_a_detached_sweep_says_once_that_it_is_under_way(tmp_path: Path) -> None:
    """Whichever lane's trial runs first."""
    done = subprocess.run(
        [sys.executable, "-c", UNDER_WAY, str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_is_asked_once_is_asked_of_each_by_itself() -> None:
    """A node that is silent holds up who asks it, and nobody who asks another."""
    silent = threading.Event()
    asked: list[str] = []

    class Node:
        def __init__(self, name: str) -> None:
            self.name = name
            self.user = Cached(self._ask)

        def _ask(self) -> str:
            asked.append(self.name)
            if self.name == "silent":
                silent.wait(60)
            return f"user of {self.name}"

    nodes = [Node("silent"), Node("other")]
    thread = threading.Thread(target=nodes[0].user.get)
    thread.start()
    wait_for(lambda: asked, "the silent node is asked")
    assert nodes[1].user.get() == nodes[1].user.get() == "user of other"
    silent.set()
    thread.join(10)
    run(30, lambda _: nodes[0].user.get())
    assert sorted(asked) == ["other", "silent"]


def test_what_could_not_be_asked_is_asked_again() -> None:
    """An error is nobody's answer."""
    asked: list[int] = []

    def make() -> str:
        asked.append(1)
        return "fine" if 1 // (len(asked) - 1) else ""

    once = Cached(make)
    with pytest.raises(ZeroDivisionError):
        once.get()
    assert once.get() == "fine"


def test_a_lane_s_error_keeps_where_it_came_from() -> None:
    """The traceback names the line in the lane, not only who waited."""
    with pytest.raises(ZeroDivisionError) as caught:
        run(1, lambda _: 1 // 0)
    assert any(entry.name == "<lambda>" for entry in caught.traceback)


# $1: who waits. A thread takes the signal, as if it had come just before the main thread waited.
DEAF = """
import signal, sys, threading
from orchestrator.console import Voice
from orchestrator.fleet import ask_all
from orchestrator.sweeping.loop import run_lanes

heard = threading.Event()
signal.signal(signal.SIGHUP, lambda *_: heard.set())

def work(_):
    signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
    print(heard.wait(5))
    return True

if sys.argv[1] == "lanes":
    items = iter([1])
    run_lanes(lambda: next(items, None), work, lanes=1, voice=Voice(as_json=False))
else:
    ask_all(["n1"], work)
"""


@pytest.mark.parametrize("waiting", ["lanes", "nodes"])
def test_a_signal_is_handled_while_who_waits_cannot_be_woken(waiting: str) -> None:
    """A request to end that comes just before a long trial or answer is waited for is not lost."""
    done = subprocess.run((sys.executable, "-c", DEAF, waiting), capture_output=True, check=True)
    assert done.stdout == b"True\n"
