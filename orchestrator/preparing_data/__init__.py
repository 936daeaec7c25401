"""Bringing data sets onto nodes: ``dlperf-orch data``.

``held`` reads what nodes have, ``plan`` decides how each node gets what it lacks, ``work`` does it
on one node and ``run`` on all, ``watch`` follows an attempt, ``show`` prints. What a data set must
hold is in ``datasets/``.
"""
