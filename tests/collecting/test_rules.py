"""By which rule a report says that its trials were measured: what their logs chose."""

from dataclasses import replace
from pathlib import Path

from orchestrator import report
from orchestrator.collecting.sweep import measured
from orchestrator.model.experiment import Method
from orchestrator.state.store import Store
from tests.verifying import sweeps


def rule_of(folder: Path, recorded: sweeps.Recorded, method: Method) -> object:
    """``rule`` of the results.json of a sweep with recorded logs."""
    sweep = sweeps.made(Store(folder), replace(recorded, method=method))
    found = measured(sweep)
    assert any(trial.state == "valid" for result in found.results for trial in result.trials)
    return report.document(found)["rule"]


def test_a_program_in_its_benchmark_mode_is_measured_by_what_it_reports(tmp_path: Path) -> None:
    """PaddlePaddle/Perf's TensorFlow logs; the playbook names no rule."""
    method = Method(repeats=1, iterations=500)
    assert rule_of(tmp_path, sweeps.tensorflow(), method) == "reported"


def test_a_program_whose_log_has_a_clock_is_measured_by_it(tmp_path: Path) -> None:
    """Seed 003's PyTorch."""
    method = Method(repeats=5, iterations=151, window=(25, 125))
    assert rule_of(tmp_path, sweeps.pytorch(), method) == "clock"


def test_the_rule_of_a_playbook_is_that_of_its_report(tmp_path: Path) -> None:
    """Seed 003's PyTorch by the mean of its rates."""
    method = Method(repeats=5, iterations=151, window=(25, 125), rule="rates")
    assert rule_of(tmp_path, sweeps.pytorch(), method) == "rates"
