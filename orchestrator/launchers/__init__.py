"""How a gang's command lines come from one: each launcher says what every node starts."""

from collections.abc import Callable

from orchestrator.model.plan import Command, Placement, Start

Launcher = Callable[[Command, Placement], tuple[Start, ...]]
"""What the nodes start, by node_rank, leader first."""
