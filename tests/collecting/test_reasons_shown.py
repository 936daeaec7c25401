"""What a terminal says behind the table: why trials do not count, or what marks them."""

from dataclasses import replace

from orchestrator.collecting.show import reasons
from orchestrator.model.problem import Problem
from tests.reported import results


def test_many_lines_of_one_code_do_not_push_the_table_out_of_sight() -> None:
    """Four are said, the others counted; what is rare is said all the same."""
    (one,) = results({"1x1": (800.0,) * 9})
    hot = [replace(trial, marks=(Problem("THROTTLED", "GPU 0"),)) for trial in one.trials]
    changed = replace(hot[8], state="invalid", problems=(Problem("LOG-CHANGED", "sha256"),))
    assert [*reasons((*hot[:8], changed))] == [
        *(f"1n1g-r50_b256_amp_{n}: valid: THROTTLED: GPU 0" for n in (1, 2, 3, 4)),
        "THROTTLED: 5 lines more; the report has all of them",
        "1n1g-r50_b256_amp_9: invalid: LOG-CHANGED: sha256",
    ]
