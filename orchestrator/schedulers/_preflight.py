"""Checks of nodes before gangs are started there in containers."""

from orchestrator import errors, nodeset
from orchestrator.fleet import Fleet, ask_all
from orchestrator.model.image import Program


def same_image(fleet: Fleet, name: str, program: Program) -> None:
    """Refuse nodes that no longer have the image that was prepared.

    Args:
        name: of the image, for the message.
        program: what is in it.

    Raises:
        ImageError: IMAGE-MISSING, and where.
        NodeError: a node does not answer.
    """
    answers = ask_all(
        list(fleet.images),
        lambda node: fleet.images[node].find(program.ids.get(node, program.digest)),
    )
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
