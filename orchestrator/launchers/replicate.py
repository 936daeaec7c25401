"""The same command line on every node; the program finds its own rank."""

from orchestrator.model.plan import Command, Placement


def launch(command: Command, placement: Placement) -> tuple[tuple[str, ...], ...]:
    """The one command line, once for each node."""
    return tuple((*command.agent, *command.program) for _ in placement.seats)
