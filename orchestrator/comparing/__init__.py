"""Compares two sets of measured cases: intervals, verdicts, a gate, and their reports. Pure.

``sides`` reads results.json and pairs the cases, ``verdicts`` judges cases by the intervals of
their differences with ``rank_test`` beside them, ``comparison`` does so for all and lists what else
differs, ``forms`` makes the reports.
"""
