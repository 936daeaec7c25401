"""Compares two sets of measured cases: intervals, verdicts, a gate, and their reports. Pure.

``sides`` reads results.json and pairs the cases, ``verdicts`` judges them by the intervals of their
differences with ``rank_test`` beside them, ``surroundings`` lists what else differs, ``bounds``
learns a case's noise from earlier sweeps. ``table`` and ``forms`` make the reports.
"""
