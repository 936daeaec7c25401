"""Bringing data sets onto nodes: ``dlperf-orch data``.

``held`` reads what nodes have, ``plan`` decides how each node gets what it lacks, ``one_node`` does
it there and ``all_nodes`` everywhere, ``show`` prints. What a data set must hold is in
``datasets/``.
"""
