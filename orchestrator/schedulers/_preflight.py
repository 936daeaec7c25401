"""Checks of nodes before gangs are started there in containers."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from orchestrator import errors, nodeset
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.model.image import Program

if TYPE_CHECKING:
    from orchestrator.runtimes.images import ImageFacts


def no_other_gang(fleet: Fleet, ours: Collection[str]) -> None:
    """Refuse nodes on which a container of another state folder's sweep runs.

    Args:
        ours: ids of this state folder's sweeps.

    Raises:
        UnfitError: OTHER-GANG; measuring at the same time would give a wrong number.
        NodeError: a node does not answer.
    """

    def look(name: str) -> list[str]:
        containers = fleet.containers[name].labelled("dlperf.sweep")
        alive = [container for container in containers if container.state == "running"]
        return [
            container.name for container in alive if container.labels["dlperf.sweep"] not in ours
        ]

    answers = ask_all(list(fleet.engines), look)
    settled(answers)
    others = {answer.node: answer.value for answer in answers if answer.value}
    if others:
        names = ", ".join(dict.fromkeys(name for running in others.values() for name in running))
        raise errors.UnfitError(
            f"containers of another state folder run on the node: {names}",
            code="OTHER-GANG",
            node=nodeset.fold(others),
            fix="stop that sweep where it was started, or wait for its deadline",
        )


def same_image(fleet: Fleet, name: str, program: Program) -> None:
    """Refuse nodes that no longer have the image that was prepared.

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
