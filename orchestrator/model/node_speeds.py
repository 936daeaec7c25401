"""How fast nodes are beside one another, by the cases that ran on single nodes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeSpeed:
    """One node.

    Args:
        trials: how many valid ones say so.
        speed: over the median of all nodes; 0.95 is 5 % slower.
    """

    node: str
    trials: int
    speed: float


@dataclass(frozen=True, slots=True)
class NodeSpeeds:
    """Nodes that can be compared.

    Args:
        nodes: in the order of their names; empty where nothing can be compared.
        slow: names of those that are apart from the others by more than chance.
    """

    nodes: tuple[NodeSpeed, ...] = ()
    slow: tuple[str, ...] = ()
