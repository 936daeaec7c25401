"""Compares two sets of measured cases: intervals, verdicts, a gate, and their reports. Pure."""
