"""Which data sets of a node may be counted: those that a first, short look has found."""

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.inputs import probing
from orchestrator.model.node import Node
from orchestrator.model.site import DataState
from orchestrator.probes import first_look
from orchestrator.transports import Transport


def observed(
    transport: Transport, paths: Mapping[str, str], *, contained: bool = False
) -> dict[str, DataState]:
    """What lies at paths of a node, by their names; ``contained`` as in ``first_look.section``.

    Raises:
        NodeError: no answer.
        UnfitError: the answer cannot be parsed.
    """
    asked = [first_look.section(name, path, contained=contained) for name, path in paths.items()]
    outputs = probing.outputs(transport, "first look", asked)
    return {name: first_look.state(output) for name, output in outputs.items()}


def present(node: Node, states: Mapping[str, DataState]) -> Node:
    """The node with those of its data sets only that are there: a count of others may hang."""
    there = {name: path for name, path in node.data.items() if states.get(name) == "present"}
    return replace(node, data=there)
