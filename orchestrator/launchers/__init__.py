"""Launchers: from one command, the command line of every node. Pure.

A new launcher is a module here with ``launch``, named by the workloads that use it. ``gang_env`` is
the environment that gangs share.
"""

from collections.abc import Callable

from orchestrator.model.plan import Command, Placement, Task

Launcher = Callable[[Command, Placement], tuple[Task, ...]]
"""A function that returns each node's task, without environment and mounts, leader first."""
