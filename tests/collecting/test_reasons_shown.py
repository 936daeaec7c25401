"""What a terminal says behind the table: why trials do not count; marks stand before it."""

from dataclasses import replace

import pytest

from orchestrator.collecting.report_files import say_reasons
from orchestrator.console import Voice
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog
from tests.reported import LOG, results, sweep, unrun


def test_many_lines_of_one_code_do_not_push_the_table_out_of_sight(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Four are said, the others counted; what is rare is said all the same; no mark is."""
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
