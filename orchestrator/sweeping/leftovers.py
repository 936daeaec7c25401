"""What sweeps whose controllers are gone may have left running."""

import contextlib

from orchestrator import errors
from orchestrator.state.store import Store, Sweep
from orchestrator.sweeping import attempts, running
from orchestrator.sweeping.campaign import Campaign
from orchestrator.sweeping.requested import Requested


def clear_others(campaign: Campaign) -> None:
    """End what dead controllers of other sweeps of this state folder left on the cluster.

    What a sweep started whose files cannot be read is found by its name, on every node.
    """
    store, voice = campaign.store, campaign.voice
    unreadable = store.unreadable()
    for other in sweeps_on(store, campaign.recipe.cluster.name):
        if other.id == campaign.sweep.id:
            continue
        try:
            left = running.Running.from_sweep(other).open_attempts()
        except errors.DlperfError as error:
            unreadable[other.id] = error
        else:
            attempts.clear_other(campaign, other, left)
    for sweep_id, why in unreadable.items():
        if why.code != "STORE-VERSION":  # in such a one nothing is amiss
            voice.line(f"sweep {sweep_id} is passed over: {why.cause}")
    dead = [
        sweep_id
        for sweep_id in unreadable
        if not Sweep(store.root / "sweeps" / sweep_id).lock().holder()
    ]
    for node, names in campaign.scheduler.strays(dead).items():
        voice.line(f"ended on {node}: {', '.join(names)}")


def sweeps_on(store: Store, cluster: str) -> list[Sweep]:
    return [sweep for sweep in store.sweeps() if sweep.record().cluster == cluster]


def refuse_left(store: Store) -> None:
    """For a sweep that was stopped before it looked at anything.

    Raises:
        LeftoverError: something of this state folder's sweeps may still run, and nobody watches it.
    """
    if left := of(store, None):
        raise leftover(left)


def of(store: Store, found: Requested | None) -> list[str]:
    """Tasks that may still run and that no controller watches.

    Args:
        found: they are of its cluster; None for any, while that is not known yet.
    """
    sweeps = sweeps_on(store, found.cluster.name) if found else store.sweeps()
    left: list[str] = []
    for sweep in sweeps:
        with contextlib.suppress(errors.StoreError):  # of a damaged one nobody knows
            if sweep.lock().holder() is None:
                open_attempts = running.Running.from_sweep(sweep).open_attempts()
                left += [
                    f"{attempt.token(task)} on {task.node}"
                    for attempt in open_attempts
                    for task in attempt.tasks
                ]
    return left


def leftover(left: list[str]) -> errors.LeftoverError:
    return errors.LeftoverError(
        f"left at once; {', '.join(left)} may still run",
        code="LEFTOVER",
        fix="end it with `dlperf-orch stop`, or run the same command again: it adopts what runs",
    )
