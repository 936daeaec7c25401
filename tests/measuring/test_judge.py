"""A log judged against its case: what keeps its number out, and what is only marked."""

from dataclasses import replace

from orchestrator.measuring import validity
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.result import Measurement
from orchestrator.workloads import ngc_pytorch_rn50
from tests import SAMPLES

LOGS = SAMPLES / "logs-pytorch-rn50"
RAW = (LOGS / "paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt").read_bytes()
CASE = Case(nodes=1, gpus_per_node=8, micro_batch_size=128, precision="amp", device="cuda")
METHOD = Method(repeats=1, iterations=100, window=(20, 60))


def log(raw: bytes = RAW) -> TrainingLog:
    """What the program's reader makes of a log."""
    return ngc_pytorch_rn50.WORKLOAD.read([raw], (20, 60))


def measured(log: TrainingLog, case: Case) -> Measurement:
    """The measurement of a log by the method."""
    return validity.measure_log(log, case, METHOD, trial="t", repeat=1, path="p")


def codes(problems: tuple[Problem, ...]) -> set[str]:
    """The codes of some problems."""
    return {problem.code for problem in problems}


def test_a_log_of_its_case_counts() -> None:
    """With its throughput, the lines that it is from, and the digest of its bytes."""
    found = measured(log(), CASE)
    assert (found.state, found.problems, found.trial) == ("valid", (), "t")
    assert found.throughput is not None
    assert found.log is not None
    assert found.log.sha256 == log().sha256


def test_the_rule_of_the_method_makes_the_number() -> None:
    """And the measurement's log says by which rule, and from which lines, it was made."""
    method = Method(repeats=1, iterations=100, window=(20, 60), rule="rates")
    found = validity.measure_log(log(), CASE, method, trial="t", repeat=1, path="p")
    assert found.log is not None
    assert (found.log.rule, found.log.evidence) == ("rates", log().lines)
    assert found.throughput == log().window_weighed


def test_a_log_of_another_case_gives_no_number() -> None:
    """No batch can be trusted that its header does not confirm."""
    found = measured(log(), replace(CASE, micro_batch_size=256))
    assert (found.state, found.throughput) == ("invalid", None)
    assert "CASE-MISMATCH" in codes(found.problems)


def test_two_runs_in_a_log_give_no_number() -> None:
    """Nobody can say which of them is the trial's; one reason is enough."""
    found = measured(log(RAW + RAW), CASE)
    assert (found.state, found.throughput) == ("invalid", None)
    assert "SEVERAL-RUNS" in codes(found.problems)


def test_a_window_beyond_the_log_is_said_once() -> None:
    """By the reader or by the measure, not by both."""
    cut = RAW[: RAW.index(b"Iteration: 50 ")]
    throughput, problems = validity.value(log(cut), CASE.global_batch_size)
    assert (throughput, [problem.code for problem in problems]) == (None, ["WINDOW"])
