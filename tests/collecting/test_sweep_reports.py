"""Reports on sweeps: how long they ran, by which rule they were measured, and what is printed."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import report
from orchestrator.collecting import evidence, nodes_seen
from orchestrator.collecting.report_files import say_reasons
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.model.attempt import TaskEnd
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Trial
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog
from orchestrator.model.sweep import Ended, History, Intent
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from tests.reported import LOG, results, sweep, unrun
from tests.verifying import sweeps

AT = "2026-01-05T{}.000+00:00"
CASE = Case(nodes=1, gpus_per_node=1, micro_batch_size=128, precision="amp", device="cuda")
TRIAL = Trial("1n1g-amp_1", 1, CASE, "1n1g/amp_1.log", 0)
REPORTED = Method(repeats=1, iterations=500)
CLOCK = Method(repeats=5, iterations=151, window=(25, 125))
SPANS: list[tuple[list[tuple[str, str]], float | None]] = [
    ([], None),
    ([("09:00:00", "09:01:00")], 60.0),
    ([("09:00:00", "09:01:00"), ("09:00:30", "09:02:00")], 120.0),
    ([("09:00:00", "09:05:00"), ("09:01:00", "09:02:00")], 300.0),
    ([("09:00:00", "09:01:00"), ("23:00:00", "23:00:30")], 90.0),
    ([("09:00:00", "09:01:00"), ("09:02:00", "")], 60.0),
]


def test_a_log_is_measured_between_both_ends_of_its_window() -> None:
    """By its clock; without a clock, or without an end, nothing is known."""
    assert replace(LOG, origin_ns=1_600_000_000_000_000_000).measured_s == 10.0
    assert LOG.measured_s is None
    assert replace(LOG, origin_ns=1, end=None).measured_s is None


def test_a_sweep_ran_while_any_trial_ran(tmp_path: Path) -> None:
    """Trials side by side count once, a pause of a night and an open attempt not at all."""
    made = sweeps.made(Store(tmp_path), sweeps.tensorflow())
    names = [trial.name for trial in made.record().plan.trials]
    for spans, ran_s in SPANS:
        (made.folder / "events.jsonl").unlink(missing_ok=True)
        for name, (begin, end) in zip(names, spans, strict=False):
            made.append(Intent(at=AT.format(begin), trial=name, attempt=1, port=22333, log="x"))
            if end:
                made.append(Ended(at=AT.format(end), trial=name, attempt=1, state="failed"))
        assert measured(made).ran_s == ran_s, spans


@pytest.mark.parametrize(
    ("recorded", "method", "rule"),
    [
        (sweeps.tensorflow, REPORTED, "reported"),  # PaddlePaddle/Perf's, in its benchmark mode
        (sweeps.pytorch, CLOCK, "clock"),
        (sweeps.pytorch, CLOCK.model_copy(update={"rule": "rates"}), "rates"),
    ],
    ids=["by what the program reports", "by its clock", "by the rule of the playbook"],
)
def test_a_report_has_the_rule_that_measured_its_trials(
    tmp_path: Path, recorded: Callable[[], sweeps.Recorded], method: Method, rule: str
) -> None:
    made = sweeps.made(Store(tmp_path), replace(recorded(), method=method))
    found = measured(made)
    assert any(trial.state == "valid" for result in found.results for trial in result.trials)
    assert report.document(found)["rule"] == rule
    trials, histories = made.record().plan.trials, made.histories()
    kept = [evidence.check_outcome(made, it, histories[it.name]) for it in trials]
    assert [it.valid for it in kept] == [it.outcome.state == "valid" for it in kept if it.outcome]


def test_a_log_is_changed_only_where_events_know_another(tmp_path: Path) -> None:
    """An outcome whose event was lost does not count, and nothing is said against its log."""
    sweep = Sweep(tmp_path)
    log = sweep.log(TRIAL.log)
    log.parent.mkdir(parents=True)
    log.write_bytes(b"DLL\n")
    log.with_suffix(".json").write_bytes(b"{")

    def codes(history: History) -> list[str]:
        return [problem.code for problem in evidence.check_outcome(sweep, TRIAL, history).problems]

    assert codes(History()) == ["OUTCOME-CHANGED"]
    other, at = History(), AT.format("09:00:00")
    other.add(Ended(at=at, trial=TRIAL.name, attempt=1, state="valid", sha256="aa", outcome="bb"))
    assert codes(other) == ["LOG-CHANGED", "OUTCOME-CHANGED"]


def test_a_changed_log_of_a_rank_is_named_with_its_node(tmp_path: Path) -> None:
    """It proves the transport of its node."""
    made = sweeps.made(Store(tmp_path), sweeps.gang())
    trial, *_ = made.record().plan.trials
    (made.attempt_folder(trial.name, 1) / "r1.log").write_text("other\n")
    found = evidence.check_outcome(made, trial, made.histories()[trial.name])
    (problem,) = found.problems
    assert (found.valid, problem.code) == (False, "LOG-CHANGED")
    assert problem.message.startswith("r1.log of vs2: its sha256 is not the one")


def test_files_of_observers_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "r0.state").write_bytes(b"state")
    (tmp_path / "r1.gpus").write_bytes(b"")
    ends = [TaskEnd(f"n{rank}", rank, 0, "exited", 0, "", 1.0) for rank in (0, 1)]
    sha256 = hashlib.sha256(b"state").hexdigest()
    assert nodes_seen.digests(tmp_path, ends) == {"r0.state": sha256}


def test_many_lines_of_one_code_do_not_push_the_table_out_of_sight(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Four are printed, the others counted; a rare code is printed all the same; no mark is."""
    (one,) = results({"1x1": (800.0,) * 11})
    torn = Problem("TRUNCATED", "no last step")
    ended = [replace(trial, state="invalid", problems=(torn,)) for trial in one.trials]
    changed = replace(ended[8], problems=(Problem("LOG-CHANGED", "sha256"),))
    hot = replace(one.trials[9], marks=(Problem("THROTTLED", "GPU 0"),))
    trials = (hot, *ended[:8], changed, unrun(one.trials[10]))
    lone = LoneLog("b.txt", LOG, None, (Problem("NO-CLOCK", "no time"),))
    say_reasons(sweep((replace(one, trials=trials),), lone=(lone,)), Voice(as_json=False))
    assert capfd.readouterr().err.splitlines() == [
        *(f"1n1g-r50_b256_amp_{n}: invalid: TRUNCATED: no last step" for n in (1, 2, 3, 4)),
        "TRUNCATED: 4 lines more; the report has all of them",
        "1n1g-r50_b256_amp_9: invalid: LOG-CHANGED: sha256",
        "b.txt: NO-CLOCK: no time",
        "1 of 11 planned trials have not been run",
    ]
