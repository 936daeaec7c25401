"""From a playbook to command lines. Pure.

``matrix`` turns the grid into cases and finds what contradicts itself, ``plan`` makes trials of
cases, without nodes, ``bind`` is the one place where nodes and ports meet a command line.
"""
