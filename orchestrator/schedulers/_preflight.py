"""What would spoil gangs in containers of an inventory's nodes."""

from collections.abc import Collection

from orchestrator import errors, nodeset
from orchestrator.fleet import Fleet, ask_all, settled


def no_other_gang(fleet: Fleet, ours: Collection[str]) -> None:
    """Nothing, if no container runs there for a sweep that this state folder knows nothing of.

    Raises:
        UnfitError: OTHER-GANG; measuring beside it would give a wrong number.
    """

    def look(name: str) -> list[str]:
        found = fleet.containers[name].labelled("dlperf.sweep")
        alive = [container for container in found if container.state == "running"]
        return [
            container.name for container in alive if container.labels["dlperf.sweep"] not in ours
        ]

    answers = ask_all(list(fleet.engines), look)
    settled(answers)
    others = {answer.node: answer.value for answer in answers if answer.value}
    if others:
        names = ", ".join(dict.fromkeys(name for found in others.values() for name in found))
        raise errors.UnfitError(
            f"containers of another state folder run there: {names}",
            code="OTHER-GANG",
            node=nodeset.fold(others),
            fix="stop that sweep where it was started, or wait for its deadline",
        )


def same_image(fleet: Fleet, name: str, wanted: str) -> None:
    """Nothing, if every node still has the very image that was prepared.

    Raises:
        ImageError: IMAGE-MISSING, and where.
    """
    answers = ask_all(list(fleet.images), lambda node: fleet.images[node].find(wanted))
    failed = [answer.error for answer in answers if answer.error]
    if failed:
        raise failed[0]
    without = [answer.node for answer in answers if answer.value is None]
    if without:
        raise errors.ImageError(
            f"image {name} ({wanted[:19]}) is no longer there",
            code="IMAGE-MISSING",
            node=nodeset.fold(without),
            fix="provision again",
        )
