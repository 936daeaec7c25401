"""Whether a recorded outcome counts, and what is said of the log that lies beside it."""

from pathlib import Path

from orchestrator.collecting import evidence
from orchestrator.model.case import Case
from orchestrator.model.plan import Trial
from orchestrator.model.sweep import Ended, History
from orchestrator.state.sweep import Sweep

AT = "2026-01-05T09:00:00.000+00:00"
CASE = Case(nodes=1, gpus_per_node=1, micro_batch_size=128, precision="amp", device="cuda")
TRIAL = Trial("1n1g-amp_1", 1, CASE, "1n1g/amp_1.log", 0)


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
    other = History()
    other.add(Ended(at=AT, trial=TRIAL.name, attempt=1, state="valid", sha256="aa", outcome="bb"))
    assert codes(other) == ["LOG-CHANGED", "OUTCOME-CHANGED"]
