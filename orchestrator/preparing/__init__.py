"""Bringing data sets onto nodes: ``dlperf-orch data``.

``held`` says what nodes have, ``plan`` how each node is to get what it lacks, ``work`` and ``run``
do it, ``watch`` follows the processes there. What a data set must hold is in ``datasets/``.
"""
