"""How a gang's command lines come from one: each launcher gives one task argv per node."""

from collections.abc import Callable

from orchestrator.model.plan import Command, Placement

Launcher = Callable[[Command, Placement], tuple[tuple[str, ...], ...]]
"""Command lines by node_rank, leader first."""
