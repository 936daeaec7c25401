"""Checks of nodes before gangs are started there in containers."""

from typing import TYPE_CHECKING

from orchestrator import errors, nodeset
from orchestrator.fleet import Fleet, ask_all
from orchestrator.model.image import Program

if TYPE_CHECKING:
    from orchestrator.runtimes.images import ImageFacts


def same_image(fleet: Fleet, name: str, program: Program) -> None:
    """Refuse nodes with an engine that no longer have the image that was prepared.

    Args:
        name: of the image, for the message.
        program: what is in it.

    Raises:
        ImageError: IMAGE-MISSING, and where.
        UnfitError: a node's engine does not answer.
        NodeError: a node does not answer.
    """

    def look(node: str) -> "ImageFacts | None":
        fleet.engines[node].check()  # a hung one is given up sooner
        return fleet.images[node].find(program.ids.get(node, program.digest))

    answers = ask_all(list(fleet.engines), look)
    failed = [answer.error for answer in answers if answer.error]
    if failed:
        raise failed[0]
    without = [answer.node for answer in answers if answer.value is None]
    if without:
        raise errors.ImageError(
            f"image {name} ({program.digest[:19]}) is no longer there",
            code="IMAGE-MISSING",
            node=nodeset.fold(without),
            fix="provision again",
        )
