"""What a terminal says behind the table: why trials do not count; marks stand before it."""

from dataclasses import replace

from orchestrator.collecting.show import reasons
from orchestrator.model.problem import Problem
from tests.reported import results


def test_many_lines_of_one_code_do_not_push_the_table_out_of_sight() -> None:
    """Four are said, the others counted; what is rare is said all the same; no mark is."""
    (one,) = results({"1x1": (800.0,) * 9})
    torn = Problem("TRUNCATED", "no last step")
    ended = [replace(trial, state="invalid", problems=(torn,)) for trial in one.trials]
    changed = replace(ended[8], problems=(Problem("LOG-CHANGED", "sha256"),))
    hot = replace(one.trials[0], marks=(Problem("THROTTLED", "GPU 0"),))
    assert [*reasons((hot, *ended[:8], changed))] == [
        *(f"1n1g-r50_b256_amp_{n}: invalid: TRUNCATED: no last step" for n in (1, 2, 3, 4)),
        "TRUNCATED: 4 lines more; the report has all of them",
        "1n1g-r50_b256_amp_9: invalid: LOG-CHANGED: sha256",
    ]
