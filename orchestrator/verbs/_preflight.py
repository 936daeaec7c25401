"""What would spoil a sweep that is about to start on its nodes."""

from orchestrator import errors, nodeset
from orchestrator.deadlines import PREPARING_S
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.store import Store

# Exit 0 if some process belongs to the preparation of a data set.
PREPARING = "grep -lsz '^DLPERF_TASK=dlp-data-' /proc/[0-9]*/environ | grep -q ."


def no_other_gang(store: Store, fleet: Fleet) -> None:
    """Nothing, if no container runs there for a sweep that this state folder knows nothing of.

    Raises:
        UnfitError: OTHER-GANG; measuring beside it would give a wrong number.
    """
    ours = {*(each.id for each in store.sweeps()), *store.unreadable()}

    def look(name: str) -> list[str]:
        found = fleet.containers[name].labelled("dlperf.sweep")
        alive = [each for each in found if each.state == "running"]
        return [each.name for each in alive if each.labels["dlperf.sweep"] not in ours]

    answers = ask_all(list(fleet.engines), look)
    settled(answers)
    others = {each.node: each.value for each in answers if each.value}
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
    failed = [each.error for each in answers if each.error]
    if failed:
        raise failed[0]
    without = [each.node for each in answers if each.value is None]
    if without:
        raise errors.ImageError(
            f"image {name} ({wanted[:19]}) is no longer there",
            code="IMAGE-MISSING",
            node=nodeset.fold(without),
            fix="provision again",
        )


def no_preparation(fleet: Fleet) -> None:
    """Nothing, if no data set is being prepared there, by whatever controller.

    Raises:
        UnfitError: PREPARING; measuring beside it would give a wrong number.
    """

    def look(node: str) -> int:
        return fleet.transports[node].run(("sh", "-c", PREPARING), timeout_s=PREPARING_S).exit_code

    answers = ask_all(list(fleet.transports), look)
    settled(answers)
    busy = [each.node for each in answers if each.value == 0]
    if busy:
        raise errors.UnfitError(
            "a data set is being prepared there",
            code="PREPARING",
            node=nodeset.fold(busy),
            fix="wait for `dlperf-orch data prepare` to end, or run it again and press Ctrl-C",
        )
