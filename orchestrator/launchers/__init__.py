"""Launchers: from one command, the command line of every node. Pure.

A new launcher is a module here with ``launch``, named by the workloads that use it. ``gang_env`` is
the environment that gangs share.
"""

from collections.abc import Callable

from orchestrator.model.plan import Command, Placement, Start

Launcher = Callable[[Command, Placement], tuple[Start, ...]]
"""A function that returns what each node starts, by node_rank, leader first."""
