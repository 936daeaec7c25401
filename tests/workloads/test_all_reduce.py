"""All-reduce: its log against the microseconds in it, its command line, and a real sweep."""

import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.measuring import validity
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import TrainingLog
from orchestrator.model.plan import Placement, Seat
from orchestrator.workloads.all_reduce import WORKLOAD
from tests import SAMPLES
from tests.conftest import Place

SAMPLE = (SAMPLES / "logs-all-reduce" / "gloo_2ranks_64mib.log").read_bytes()
CASE = Case(
    nodes=2, gpus_per_node=8, micro_batch_size=1, precision="fp32", device="cuda", params=()
)
METHOD = Method(repeats=1, iterations=25, window=(6, 25))
PLAYBOOK = """\
workload: all_reduce
image: reference-rn50
device: cpu
method: {repeats: 1, iterations: 8, window: [3, 8], time_limit_s: 300, stall_limit_s: 120}
grid: {placement: [2x1], precision: [fp32], micro_batch_size: [1]}
params: {size_mib: 4}
"""


def read(text: bytes, window: tuple[int, int] | None = None) -> TrainingLog:
    """What the workload's reader makes of it."""
    return WORKLOAD.read((text,), window)


def codes(log: TrainingLog) -> set[str]:
    """Of its problems."""
    return {problem.code for problem in log.problems}


def bus_bandwidth(text: str, first: int, last: int) -> float:
    """By nccl-tests' formula, from the printed microseconds alone."""
    (ranks, mib) = map(int, re.findall(r"ranks=(\d+) size_mib=(\d+)", text)[0])
    lasted = [float(us) / 1e6 for us in re.findall(r" us=(\S+)", text)][first - 1 : last]
    share = 2 * (ranks - 1) / ranks
    return statistics.harmonic_mean([(mib << 20) / each_s * share / 1e9 for each_s in lasted])


@pytest.mark.parametrize("window", [(6, 25), (2, 9)])
def test_bandwidth_is_what_the_microseconds_give(window: tuple[int, int]) -> None:
    """The harmonic mean over the window; rates are printed with four decimals."""
    log = read(SAMPLE, window)
    expected = bus_bandwidth(SAMPLE.decode(), *window)
    assert validity.compute_throughput(log, None, "rates") == pytest.approx(expected, abs=1e-4)
    assert (log.rule, log.problems) == ("rates", ())
    assert log.config["world_size"] == 2


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (b"iteration=25 us", b"iteration=24 us", "DUP-STEPS"),
        (SAMPLE[SAMPLE.index(b"iteration=20 ") :], b"", "TRUNCATED"),
        (b"all-reduce ranks", b"some-reduce ranks", "NO-HEADER"),
        (b" busbw=0.2512 GB/s", b" busbw=nan GB/s", "NOT-FINITE"),
        (b" busbw=0.2512 GB/s", b" busbw=0.25", "MALFORMED"),
    ],
)
def test_a_damaged_log_says_so(before: bytes, after: bytes, code: str) -> None:
    """No number comes from it in silence."""
    assert before in SAMPLE
    assert code in codes(read(SAMPLE.replace(before, after)))


def test_progress_is_the_last_whole_iteration() -> None:
    """For the live view."""
    assert WORKLOAD.progress(SAMPLE[: SAMPLE.index(b"iteration=4 ") + 9]) is not None
    found = WORKLOAD.progress(SAMPLE)
    assert found is not None
    assert found[0] == 25


def test_the_command_line_and_the_environment() -> None:
    """torchrun starts our program; NCCL is told the interface and the adapters, and speaks."""
    seats = tuple(Seat(f"n{n}", f"10.0.0.{n}", (0, 1), "ib0", ("mlx5_0",), {}) for n in (1, 2))
    placement = Placement(seats, 8, port=22333, code="/code", python="python3")
    case = replace(CASE, params=(("size_mib", 256),))
    command = WORKLOAD.command(case, METHOD, placement)
    assert command.program == (
        *("/code/all_reduce.py", "--device", "cuda"),
        *("--size-mib", "256", "--iterations", "25"),
    )
    env: Mapping[str, str] = WORKLOAD.env(case, placement, seats[0])
    assert (env["NCCL_IB_HCA"], env["NCCL_DEBUG"]) == ("=mlx5_0", "INFO")
    assert (WORKLOAD.mount(case, seats[0]), WORKLOAD.data(case)) == ((), {})
    assert (WORKLOAD.port(case), WORKLOAD.last_iteration(25)) == (22333, 25)
    assert WORKLOAD.published
    assert WORKLOAD.published(case) is None
    large = WORKLOAD.published(replace(CASE, params=(("size_mib", 8192),)))
    assert large
    assert (large.frameworks, large.batch) == (("nccl-tests",), "8-16 GiB")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (CASE, []),
        (replace(CASE, nodes=1, gpus_per_node=1), ["one rank"]),
        (replace(CASE, micro_batch_size=8), ["micro_batch_size 8; needed 1"]),
    ],
)
def test_what_it_cannot_do_is_refused(case: Case, words: list[str]) -> None:
    """Before anything starts."""
    found = list(WORKLOAD.unsupported(case, METHOD))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


@pytest.mark.long
@pytest.mark.cluster
def test_two_local_nodes_are_measured_for_real(place: Place) -> None:
    """By gloo over the loopback: report and record have the bandwidth that the log gives."""
    pytest.importorskip("torch")
    (place.folder / "playbooks" / "reduce.yaml").write_text(PLAYBOOK)
    place.more_env["OMP_NUM_THREADS"] = "1"
    place.must("provision", "local")
    done = place.must("sweep", "reduce", "--inventory", "local", "--json")
    (case,) = json.loads(done.stdout)["cases"]
    (log,) = Path(place.sweep() / "logs").rglob("*.log")
    expected = bus_bandwidth(log.read_text(), 3, 8)
    assert case["median"] == pytest.approx(expected, rel=1e-3)
    assert json.loads(done.stdout)["unit"] == "GB/s"
