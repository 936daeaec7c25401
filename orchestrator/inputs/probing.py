"""Probes of nodes: their answers as facts."""

from typing import TypeVar

from orchestrator import errors
from orchestrator.probes import Probe
from orchestrator.transports import Completed, Transport

T = TypeVar("T")


def ask(transport: Transport, probe: Probe[T], timeout_s: float) -> T:
    """A node's answer to a probe.

    Raises:
        NodeError: it gave none.
        UnfitError: its answer cannot be read.
    """
    return understood(probe, transport.run(probe.argv, timeout_s=timeout_s), transport.node)


def understood(probe: Probe[T], done: Completed, node: str) -> T:
    """What came of a probe's command, as a fact.

    Raises:
        UnfitError: it cannot be read.
    """
    try:
        return probe.parse(done.stdout.decode(errors="replace"))
    except errors.LogError as error:
        said = done.stderr.decode(errors="replace").strip() or f"exit status {done.exit_code}"
        raise errors.UnfitError(
            f"{error.cause} ({said})", code=error.code, node=node, phase=probe.name, fix=error.fix
        ) from error
