"""Exit codes, what is tried again, and threads that hold up no exit."""

import itertools
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from orchestrator import errors, retries
from orchestrator.deadlines import Patience
from orchestrator.fleet import Pool
from orchestrator.retries import Policy
from tests import commands

QUICK = Policy({"SSH-LOST": 3, "SSH-RESET": 2}, 0.001, 2.0, within_s=10.0)
STUCK = """
import threading
from orchestrator.fleet import Pool
pool = Pool(2)
pool.submit(threading.Event().wait)
pool.close()
print("done", flush=True)
"""


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((), 0),
        ((0, 0), 0),
        ((0, 3), 3),
        ((3, 5), 5),
        ((5, 4), 4),
        ((4, 6), 6),
        ((6, 7), 7),
        ((4, 7), 7),
        ((130, 4), 130),
        ((143, 7), 7),
    ],
)
def test_the_gravest_exit_code_counts_in_any_order(codes: tuple[int, ...], code: int) -> None:
    """7, what may still run, before the others; a stop before all but 7."""
    for order in itertools.permutations(codes):
        assert errors.joined(order) == code


def test_every_error_has_a_place_in_the_order() -> None:
    kinds: list[type[errors.DlperfError]] = [errors.DlperfError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {kind.exit_code for kind in kinds} <= set(errors.PRECEDENCE)
    assert {errors.Interrupted(number).exit_code for number in (1, 2, 15)} <= {130, 143}


def test_the_first_of_the_gravest_errors_is_raised() -> None:
    silent = errors.NodeUnreachable("silent", code="SSH-LOST")
    left = errors.LeftoverError("left", code="LEFTOVER")
    other = errors.LeftoverError("also left", code="LEFTOVER")
    assert errors.gravest((silent, left, other)) is left


@pytest.mark.parametrize(
    ("cause", "shown"), [("so.", "so."), ("so", "so."), ("it was cut...", "it was cut...")]
)
def test_a_foreign_cause_ends_with_one_full_stop(cause: str, shown: str) -> None:
    assert str(errors.LocalError(cause, code="X")) == f"ERROR X: {shown}"


@pytest.mark.parametrize(
    ("codes", "tries"),
    [
        ("", 1),
        ("SSH-LOST", 2),
        ("SSH-LOST SSH-LOST", 3),
        ("SSH-RESET", 2),
        ("SSH-LOST SSH-LOST SSH-LOST", 3),
        ("SSH-RESET SSH-RESET", 2),
        ("SSH-AUTH", 1),
        ("SSH-LOST SSH-RESET", 2),
    ],
)
def test_an_error_is_tried_again_as_often_as_the_policy_says(codes: str, tries: int) -> None:
    """Then the last error itself is raised."""
    calls, work = failing(*codes.split())
    if len(codes.split()) < tries:
        assert QUICK.call(work) == "done"
    else:
        with pytest.raises(errors.NodeUnreachable) as raised:
            QUICK.call(work)
        assert raised.value.code == codes.split()[-1]
    assert len(calls) == tries


def failing(*codes: str) -> tuple[list[str], Callable[[], str]]:
    """Return work that fails with these errors one after another, then ends; and its calls."""
    calls: list[str] = []

    def work() -> str:
        calls.append("")
        if len(calls) <= len(codes):
            raise errors.NodeUnreachable("lost", code=codes[len(calls) - 1])
        return "done"

    return calls, work


def test_no_try_begins_after_the_deadline() -> None:
    calls, work = failing("SSH-LOST", "SSH-LOST")
    with pytest.raises(errors.NodeUnreachable):
        Policy({"SSH-LOST": 9}, 5.0, 1.0, within_s=0.5).call(work)
    assert len(calls) == 1


def test_only_errors_that_the_policy_names_are_tried_again() -> None:
    """No fault of the program, no failure of a training, no refused key, which locks an account."""
    with pytest.raises(ZeroDivisionError):
        QUICK.call(lambda: 1 // 0)
    assert not {"PROGRAM-FAILED", "OOM", "TRUNCATED", "INTERRUPTED"} & set(retries.ATTEMPTS)
    assert retries.ATTEMPTS["GPU-DETACHED"] == 2
    policies = (retries.CONNECT, retries.REPEATABLE, retries.ENGINE, retries.PULL)
    tried = {code for policy in policies for code in policy.tries}
    assert not [code for code in tried if code.startswith(("SSH-AUTH", "SSH-HOSTKEY", "REG-AUTH"))]


def test_slow_kinds_of_calls_have_more_time_than_a_short_question() -> None:
    """GPU hooks, images of tens of GB and registries take longer than an answer."""
    patience = Patience()
    slow = (patience.create_s, patience.start_s, patience.untag_s, patience.registry_s)
    assert min(slow) >= 6 * patience.answer_s


def test_a_pool_does_all_its_work_on_as_many_threads_as_allowed() -> None:
    """Each result comes back to its own future."""
    running, most, guard = 0, 0, threading.Lock()

    def job(number: int) -> int:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        time.sleep(0.01)  # so that jobs overlap
        with guard:
            running -= 1
        return number**2

    pool = Pool(4)
    futures = [pool.submit(partial(job, number)) for number in range(40)]
    assert [future.result(10) for future in futures] == [number**2 for number in range(40)]
    pool.close()
    assert most == 4


def test_an_error_of_a_job_is_raised_by_its_future() -> None:
    """The thread goes on with the next job."""
    pool = Pool(1)
    bad, good = pool.submit(lambda: 1 // 0), pool.submit(lambda: "fine")
    with pytest.raises(ZeroDivisionError):
        bad.result(10)
    assert good.result(10) == "fine"
    pool.close()


def test_a_program_ends_although_a_job_never_does() -> None:
    """A node that does not answer holds up nobody's terminal."""
    done = commands.run([sys.executable, "-c", STUCK], timeout_s=20)
    assert (done.returncode, done.stdout) == (0, "done\n")
