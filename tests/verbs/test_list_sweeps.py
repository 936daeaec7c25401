"""Rows of ``list sweeps`` for people."""

from orchestrator.verbs.list_ import build_cells


def test_medians_of_a_row_have_their_unit_and_are_few() -> None:
    """Three are named with the unit behind the last, others counted; the time is for people."""
    medians = [
        {"case": {"placement": f"{nodes}x8", "precision": "amp"}, "median": 6000.0 * nodes}
        for nodes in (1, 2, 3, 4)
    ]
    row = {
        **{"sweep": "a", "cluster": "c", "created": "2026-11-24T10:24:13.756+00:00"},
        **{"trials": 4, "valid": 4, "state": "readable", "unit": "images/s", "medians": ()},
    }
    assert build_cells(row)[2:] == ("2026-11-24 10:24:13 UTC", "4", "4", "")
    assert build_cells({**row, "medians": medians[:1]})[-1] == "1x8 amp 6000.00 images/s"
    said = "1x8 amp 6000.00, 2x8 amp 12000.00, 3x8 amp 18000.00 images/s, and 1 more"
    assert build_cells({**row, "medians": medians})[-1] == said
