"""Bringing data sets onto nodes: ``dlperf-orch data``.

``plan`` decides how each node gets what it lacks, ``prepare`` does it, ``copies`` reads and shows
what nodes have. What a data set must hold is in ``datasets/``.
"""
