"""Threads that hold up no exit."""

import sys
import threading
import time
from functools import partial

import pytest

from orchestrator.fleet import Pool
from tests import commands

STUCK = """
import threading
from orchestrator.fleet import Pool
pool = Pool(2)
pool.submit(threading.Event().wait)
pool.close()
print("done", flush=True)
"""


def test_everything_that_is_submitted_is_done() -> None:
    """More work than threads: each result comes back to whoever asked for it."""
    pool = Pool(3)
    asked = [pool.submit(partial(pow, n, 2)) for n in range(100)]
    assert [future.result(10) for future in asked] == [n * n for n in range(100)]
    pool.close()


def test_no_more_threads_than_allowed_work_at_once() -> None:
    """Of twenty jobs that wait for each other's place, never more than four run."""
    running, most, guard = 0, 0, threading.Lock()

    def job() -> None:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with guard:
            running -= 1

    pool = Pool(4)
    for future in [pool.submit(job) for _ in range(20)]:
        future.result(10)
    pool.close()
    assert most == 4


def test_what_a_job_raises_reaches_whoever_asks() -> None:
    """And the thread goes on with the next."""
    pool = Pool(1)
    bad, good = pool.submit(lambda: 1 // 0), pool.submit(lambda: "fine")
    with pytest.raises(ZeroDivisionError):
        bad.result(10)
    assert good.result(10) == "fine"
    pool.close()


def test_a_program_ends_although_a_job_never_does() -> None:
    """What a node does not answer holds up nobody's terminal."""
    done = commands.run([sys.executable, "-c", STUCK], timeout_s=20)
    assert (done.returncode, done.stdout) == (0, "done\n")
