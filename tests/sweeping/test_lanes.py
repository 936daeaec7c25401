"""Lanes: work done by several threads, each item once, while signals reach the main thread."""

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
from orchestrator.model.plan import Plan, Trial
from orchestrator.sweeping.loop import Feed, run_lanes
from orchestrator.transports.cached import Cached
from tests.measuring.test_settling import built, first_case, truth
from tests.processes import wait_for

# $1: lanes. The first of three items never ends; a second Ctrl-C ends the program all the same.
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


# A detached sweep whose first trials begin at the same moment.
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
    lanes: int = 3,
    may_begin: Callable[[], bool] = lambda: True,
) -> None:
    """Do so many items."""

    def do(item: int) -> None:
        work(item)

    give = partial(next, iter(range(items)), None)
    run_lanes(give, do, lanes=lanes, may_begin=may_begin, voice=Voice(as_json=False))


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_every_item_is_done_once_and_begun_in_order(lanes: int) -> None:
    """Whatever time each takes, in daemon threads, never more at once than lanes."""
    begun: list[int] = []
    now: set[int] = set()
    most: list[int] = []

    def work(item: int) -> None:
        assert threading.current_thread().daemon
        assert threading.current_thread() is not threading.main_thread()
        now.add(item)
        most.append(len(now))
        begun.append(item)
        time.sleep(random.SystemRandom().uniform(0, 0.005))
        now.remove(item)

    run(200, work, lanes=lanes)
    assert sorted(begun) == list(range(200))
    assert max(most) <= lanes
    # Two lanes may note what they began the other way round, and no more.
    assert all(abs(item - place) < lanes for place, item in enumerate(begun))


def test_after_an_error_the_others_finish_and_nothing_begins(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Hours of a cluster are kept; the failure is printed at once, and raised at the end."""
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
def test_a_fault_between_items_waits_for_the_other_lanes(fault: str) -> None:
    """No gang runs on after the locks of nodes are released."""
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


FULL = errors.StoreError("no space left", code="STORE-FULL")
LEFT = errors.LeftoverError("it would not go", code="LEFTOVER", node="b")
SILENT = errors.NodeError("it is silent", code="SSH-LOST", node="c")


@pytest.mark.parametrize(
    ("failures", "raised", "printed"),
    [
        ((FULL, LEFT, FULL, SILENT), (LEFT,), {str(FULL), str(SILENT)}),
        ((SILENT, KeyError("trial")), (KeyError,), {str(SILENT)}),
        ((KeyError("a"), KeyError("a")), (KeyError,), {"KeyError('a')"}),
    ],
    ids=["what may still run", "a bug of ours", "two bugs"],
)
def test_the_gravest_error_is_raised_and_each_other_is_printed_once(
    capfd: pytest.CaptureFixture[str],
    failures: tuple[Exception, ...],
    raised: tuple[object, ...],
    printed: set[str],
) -> None:
    """A bug counts more than an error of a node, and its traceback names the line in its lane."""
    together = threading.Barrier(len(failures))

    def work(item: int) -> None:
        together.wait(10)
        raise failures[item]

    with pytest.raises((errors.LeftoverError, KeyError)) as caught:
        run(len(failures), work, lanes=len(failures))
    assert caught.value is raised[0] or type(caught.value) is raised[0]
    assert any(entry.name == "work" for entry in caught.traceback)
    lines = capfd.readouterr().err.splitlines()
    assert set(lines[-len(printed) :]) == printed


def test_a_lane_that_stalls_holds_up_no_other() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 0:
            wait_for(lambda: len(done) == 49, "the others have done the rest")
        done.append(item)

    run(50, work)
    assert done[-1] == 0


def test_once_an_item_may_not_begin_none_does() -> None:
    """What had begun ends; after the first refusal nobody asks again."""
    asked: list[int] = []
    begun: list[int] = []

    def may_begin() -> bool:
        asked.append(1)
        return len(asked) != 6

    run(50, begun.append, may_begin=may_begin)
    assert len(begun) == 5


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_second_ctrl_c_leaves_at_once_whatever_the_lanes_do(lanes: int) -> None:
    """The first begins nothing further; the second is raised in the main thread."""
    words = [sys.executable, "-c", ABANDONED, str(lanes)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
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
    assert "abandoned with 2\n" in said
    assert said.count("begun") == (0 if lanes == 1 else 2)  # the first line is read already


def test_a_detached_sweep_reports_once_that_it_is_under_way(tmp_path: Path) -> None:
    """Whichever lane's trial runs first."""
    words = [sys.executable, "-c", UNDER_WAY, str(tmp_path)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_an_answer_is_cached_for_each_node_by_itself() -> None:
    """A silent node holds up its own callers alone; an error is nobody's answer."""
    silent = threading.Event()
    asked: list[str] = []

    def ask(name: str) -> str:
        asked.append(name)
        if name == "silent":
            silent.wait(60)
        if name == "broken" and asked.count(name) == 1:
            raise ZeroDivisionError
        return f"user of {name}"

    users = {name: Cached(partial(ask, name)) for name in ("silent", "other", "broken")}
    thread = threading.Thread(target=users["silent"].get)
    thread.start()
    wait_for(lambda: asked, "the silent node is asked")
    assert users["other"].get() == users["other"].get() == "user of other"
    with pytest.raises(ZeroDivisionError):
        users["broken"].get()
    assert users["broken"].get() == "user of broken"
    silent.set()
    thread.join(10)
    run(30, lambda _: users["silent"].get())
    assert sorted(asked) == ["broken", "broken", "other", "silent"]


def feed(
    whole: Plan, known: dict[str, float], trials: tuple[Trial, ...], nodes: int = 1
) -> tuple[Feed, list[tuple[str, int]]]:
    """Return a feed of trials, and the lines that it prints of settled cases."""
    said: list[tuple[str, int]] = []

    def say(line: str, count: int) -> None:
        said.append((line, count))

    return Feed(whole, trials, lambda it: known.get(it.name), lambda: nodes, say), said


def test_lanes_run_what_is_needed_and_drop_what_is_not() -> None:
    """Three lanes: nine trials of two cases, the quiet one's last three are dropped once."""
    whole = built(pack="disjoint")
    gives, outcomes = truth(whole), dict[str, float]()
    trials, said = feed(whole, outcomes, whole.trials, 3)

    def measure(trial: Trial) -> float:
        return outcomes.setdefault(trial.name, gives[trial.name])

    run_lanes(trials.next, measure, lanes=3, voice=Voice(as_json=False), ended=trials.end)
    quiet = first_case(whole)
    assert set(outcomes) == {one.name for one in whole.trials} - {one.name for one in quiet[3:]}
    ((line, count),) = said
    assert line.startswith("1n1g-r50_b256_amp: settled after 3 trials")
    assert count == 3


def test_a_trial_that_decides_runs_alone_and_its_outcome_drops_the_rest() -> None:
    """So do outcomes of an earlier command."""
    whole = built()
    quiet, gives = first_case(whole), truth(whole)
    trials, said = feed(whole, {it.name: gives[it.name] for it in quiet[:2]}, tuple(quiet[2:]))
    assert [trials.next(), trials.next()] == [quiet[2], None]
    trials.end(quiet[2], gives[quiet[2].name])
    assert trials.next() is None
    assert [count for _, count in said] == [3]
    trials, said = feed(whole, {it.name: gives[it.name] for it in quiet[:3]}, tuple(quiet))
    assert trials.next() is None
    assert [count for _, count in said] == [3]


# $1: what waits. A thread takes the signal, as if it had come just before the main thread waited.
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
def test_a_signal_just_before_a_wait_is_handled(waiting: str) -> None:
    """A request to end is not lost before a long trial or answer."""
    done = subprocess.run((sys.executable, "-c", DEAF, waiting), capture_output=True, check=True)
    assert done.stdout == b"True\n"
