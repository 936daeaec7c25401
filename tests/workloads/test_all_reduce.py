"""All-reduce: its bandwidth against the microseconds in its log, and a real sweep."""

import json
import re
import statistics
from pathlib import Path

import pytest

from orchestrator.measuring import validity
from orchestrator.workloads.all_reduce import WORKLOAD
from tests import SAMPLES
from tests.conftest import Place

PLAYBOOK = """\
workload: all_reduce
image: reference-rn50
device: cpu
method: {repeats: 1, iterations: 8, window: [3, 8], time_limit_s: 300, stall_limit_s: 120}
grid: {placement: [2x1], precision: [fp32], micro_batch_size: [1]}
params: {size_mib: 4}
"""


def compute_bus_bandwidth(text: str, first: int, last: int) -> float:
    """Return GB/s by nccl-tests' formula, from the printed microseconds alone."""
    (ranks, mib) = map(int, re.findall(r"ranks=(\d+) size_mib=(\d+)", text)[0])
    lasted = [float(us) / 1e6 for us in re.findall(r" us=(\S+)", text)][first - 1 : last]
    share = 2 * (ranks - 1) / ranks
    return statistics.harmonic_mean([(mib << 20) / each_s * share / 1e9 for each_s in lasted])


@pytest.mark.parametrize("window", [(6, 25), (2, 9)])
def test_the_bandwidth_is_what_the_microseconds_give(window: tuple[int, int]) -> None:
    """The harmonic mean over the window; rates are printed with four decimals."""
    sample = (SAMPLES / "logs-all-reduce" / "gloo_2ranks_64mib.log").read_bytes()
    log = WORKLOAD.read((sample,), window)
    expected = compute_bus_bandwidth(sample.decode(), *window)
    assert validity.compute_throughput(log, None, "rates") == pytest.approx(expected, abs=1e-4)
    assert (log.rule, log.unit, log.problems) == ("rates", "GB/s", ())


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
    expected = compute_bus_bandwidth(log.read_text(), 3, 8)
    assert case["median"] == pytest.approx(expected, rel=1e-3)
    assert json.loads(done.stdout)["unit"] == "GB/s"
