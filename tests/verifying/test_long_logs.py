"""A log may be far larger than what the second reader keeps of it."""

import tracemalloc
from pathlib import Path

import pytest

from orchestrator.verifying import trials
from tests.collecting.pytorch_logs import run_of

STEPS = 40_000


def test_a_step_takes_a_rate_of_memory(tmp_path: Path) -> None:
    """Eight bytes, and some for how arrays grow; a column more would take as many again."""
    lines = run_of("1n1g", 1, 800.0).log().splitlines(keepends=True)
    head = [line for line in lines if "Iteration" not in line]
    step = next(line for line in lines if "Iteration: 25 " in line)
    path = tmp_path / "long.log"
    with open(path, "w") as file:
        file.writelines(head)
        for number in range(1, STEPS + 1):
            file.write(step.replace("Iteration: 25 ", f"Iteration: {number} "))
    plan = {"workload": "ngc_pytorch_rn50", "method": {"window": [25, 125], "rule": "rates"}}
    case = {"nodes": 1, "gpus_per_node": 1, "micro_batch_size": 256}
    tracemalloc.start()
    try:
        found = trials.derived(path, plan, case)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.throughput == pytest.approx(found.rate_mean)
    assert peak < 14 * STEPS
