"""Bringing data sets onto nodes: ``dlperf-orch data``.

``prepare`` decides how each node gets what it lacks and does it, ``copies`` reads and shows what
nodes have. What a data set must hold is in ``datasets/``.
"""
