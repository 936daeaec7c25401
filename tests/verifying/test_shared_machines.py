"""Nodes that are one machine: both readers take the gang's own processors off."""

from pathlib import Path

import pytest

from orchestrator.collecting import telemetry
from orchestrator.model.attempt import TaskEnd
from orchestrator.telemetry import judge, periods
from orchestrator.verifying import machines
from orchestrator.verifying.trials import DerivedTrial
from tests.verifying.observers import Seen


@pytest.mark.parametrize(("namespaces", "others"), [("12", 3.89), ("11", 5.2)])
def test_both_readers_agree_on_others(tmp_path: Path, namespaces: str, others: float) -> None:
    """To the last digit; of 6.51 CPUs that are busy each task used 1.31, and sees itself or all."""
    seen = Seen(1000.0, 20, others=5.2, task=1.31)
    for rank, namespace in enumerate(namespaces):
        head, rest = seen.state().split("\n", 1)
        text = f"{head},boot,pid:[{namespace}]\n{rest}"
        (tmp_path / f"r{rank}.state").write_text(text)
    ends = [TaskEnd(f"vs{rank}", rank, 0, "exited", 1, "", 1000.0) for rank in range(2)]
    nodes = telemetry.observed(tmp_path, ends)
    pairs = [(node, periods.period(node, 1000.0, None)) for node in nodes]
    ours = [judge.state(*pair, judge.beside(pair[0], pairs)).others_cpus for pair in pairs]
    tasks = [{"node": end.node, "node_rank": end.node_rank, "went_at": 1000.0} for end in ends]
    derived = machines.derived(tmp_path, {"tasks": tasks}, DerivedTrial())
    assert ours == pytest.approx([others, others], abs=0.05)
    assert [state["others_cpus"] for state in derived.states] == ours
