"""From a playbook to command lines. Pure.

``matrix`` turns the grid into cases and finds what contradicts itself, ``plan`` makes trials of
cases, without nodes, ``bind`` is the one place where nodes and ports meet a command line;
``environment`` gives its variables. ``packing`` decides which trial begins next,
``inventory_draft`` writes the inventory of ``init``, ``images`` lists what must be built.
"""
