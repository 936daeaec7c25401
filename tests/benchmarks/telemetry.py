"""What the observer beside a task costs the reference program, measured on the device at hand.

    python -m tests.benchmarks.telemetry [--device cpu --image-size 64 -b 4 ...]

Takes the options of ``images/reference-rn50/train.py``, and minutes where nothing else runs: a
window has as many iterations as take eight seconds. One process trains in windows, in turns
with the observer beside it and without, A B B A, so that what drifts meets both alike. The ratio of
rates is as noisy as the machine; processor time of the observer for that of the program is not, and
decides: a program that wants all processors cannot lose more than the observer takes.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from orchestrator.measuring import intervals
from orchestrator.model.attempt import Attempt
from orchestrator.model.plan import Task
from orchestrator.runtimes import marks, supervisor
from orchestrator.transports.local import LocalTransport
from tests.benchmarks.reference_rn50 import PROGRAM, load

PAIRS = 8
WINDOW_S = 8.0
FEW = 3  # iterations that tell how long one takes
USUAL = ["--device", "cpu", "--image-size", "64", "-b", "4"]
SHARES: list[float] = []  # of one CPU, that the observer used in each window
COSTS: list[float] = []  # its processor time for that of the program
AIM = 0.005


def main(argv: list[str]) -> None:
    """Print the throughput of each pair, and the median of their ratios."""
    program = load(PROGRAM)
    options = program.parse([*(argv or USUAL), "--prof", "2"])  # how many is found out below
    device = program.prepare(options, program.seat_here(os.environ))
    program.join(options, device)
    iterate = program.Training(options, device).iterate
    ticks = program.gpu_ticks if device.type == "cuda" else program.cpu_ticks

    def rate(count: int) -> float:
        last = count + 1
        clock_s = {at: time_s for at, time_s, _ in ticks(iterate, last, (1, last))}
        return float(options.batch_size * count / (clock_s[last] - clock_s[1]))

    gpus = (0,) if device.type == "cuda" else ()
    rate(FEW)
    usual, ratios = rate(FEW), []
    with tempfile.TemporaryDirectory(prefix="dlperf-benchmark-") as folder:
        for number in range(PAIRS):
            found: dict[bool, float] = {}
            count = max(FEW, round(WINDOW_S * usual / options.batch_size))
            for watched in (True, False) if number % 2 else (False, True):
                with observed(Path(folder) / str(number), gpus) if watched else nothing():
                    found[watched] = rate(count)
            ratios.append(found[True] / found[False])
            usual = min(found.values())
            pair = f"with {found[True]:.3f}  without {found[False]:.3f} img/s"
            print(f"{pair}  ratio {ratios[-1]:.4f}  {count} iterations each", flush=True)
    print(f"the observer itself used {median(SHARES):.2%} of one CPU; here are {os.cpu_count()}")
    print(f"load of the machine in the last minute: {os.getloadavg()[0]:.1f}")
    print(f"rate with / without: {told(ratios, '.4f')}")
    print(f"processor time of the observer / of the program: {told(COSTS, '.3%')}")
    print(f"at most {AIM:.1%}: {'yes' if high(COSTS) <= AIM else 'not shown'}")
    program.distributed.destroy_process_group()


@contextmanager
def nothing() -> Iterator[None]:
    """No observer."""
    yield


@contextmanager
def observed(folder: Path, gpus: tuple[int, ...]) -> Iterator[None]:
    """An observer of this process, as it runs beside a task, within the block."""
    folder.mkdir(parents=True)
    task = Task("here", 0, (), {}, (), gpus)
    attempt = Attempt("benchmark", folder.name, os.getpid(), {"here": str(folder)}, 0, (task,))
    transport = LocalTransport("here")
    os.mkfifo(folder / "r0.alive")
    alive = os.open(folder / "r0.alive", os.O_RDWR)
    words = (str(folder), "0", attempt.sweep, "3600", ",".join(map(str, gpus)), str(os.getpid()))
    observe = folder / supervisor.OBSERVE
    observe.write_bytes(supervisor.program(supervisor.OBSERVE))
    env = {**os.environ, "DLPERF_OBSERVER": attempt.token(task)}
    subprocess.Popen(("sh", str(observe), *words), env=env, start_new_session=True)
    began, worked_s = time.monotonic(), time.process_time()
    try:
        yield
    finally:
        observed_s = used_s(attempt.token(task))
        SHARES.append(observed_s / (time.monotonic() - began))
        COSTS.append(observed_s / (time.process_time() - worked_s))
        os.close(alive)
        marks.kill(transport, attempt.token(task))
    if (folder / "r0.state").read_bytes().count(b"\nhost,") < 2:
        sys.exit(f"the observer did not look twice within {WINDOW_S:g} s of training")


def told(values: list[float], form: str) -> str:
    """Median and its interval."""
    found = intervals.of_median(values)
    assert found is not None
    ends = f"{found.low:{form}} to {found.high:{form}} (covers {found.coverage:.1%})"
    return f"median {median(values):{form}}, {ends}"


def high(values: list[float]) -> float:
    """The upper end of the median's interval."""
    found = intervals.of_median(values)
    assert found is not None
    return found.high


def used_s(token: str) -> float:
    """Processor time of an observer's processes and of those that they waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"DLPERF_OBSERVER={token}\0" in (path / "environ").read_text():
                words = (path / "stat").read_text().rpartition(") ")[2].split()
                ticks += sum(map(int, words[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(sys.argv[1:])
