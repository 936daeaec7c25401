"""Ending what other sweeps of this state folder left on a cluster, before anything is measured."""

from collections.abc import Iterable

from orchestrator import errors
from orchestrator.model.attempt import Attempt
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import gather, observed_sweep, orphaned_tasks
from orchestrator.sweeping.campaign import Campaign


def clear_others(campaign: Campaign) -> None:
    """End what dead controllers of other sweeps of this state folder left on the cluster.

    Tasks of a sweep whose files cannot be read are found by the sweep's id, on every node.

    Raises:
        LeftoverError: a process or container could not be ended.
        NodeError: a node does not answer.
    """
    store, voice = campaign.store, campaign.voice
    unreadable = store.unreadable()
    for other in orphaned_tasks.sweeps_on(store, campaign.recipe.cluster.name):
        if other.id == campaign.sweep.id:
            continue
        try:
            left = observed_sweep.Running.from_sweep(other).open_attempts()
        except errors.DlperfError as error:
            unreadable[other.id] = error
        else:
            _clear(campaign, other, left)
    for sweep_id, why in unreadable.items():
        if why.code != "STORE-VERSION":  # such a one is whole, only not for this version
            voice.line(f"sweep {sweep_id} is skipped: {why.cause}")
    dead = [
        sweep_id
        for sweep_id in unreadable
        if not Sweep(store.root / "sweeps" / sweep_id).lock().holder()
    ]
    for node, names in campaign.scheduler.strays(dead).items():
        voice.line(f"ended on {node}: {', '.join(names)}")


def _clear(campaign: Campaign, sweep: Sweep, left: Iterable[Attempt]) -> None:
    """End the gangs that a dead controller of another sweep left on this cluster.

    Raises:
        LeftoverError: a process or container could not be ended, and would disturb measuring.
        UnfitError: NODE-MOVED; the inventory gives a node's name to another machine now.
    """
    for attempt in left:
        gather.close_left(sweep, campaign.scheduler, attempt)
        name = f"{attempt.trial} a{attempt.number}"
        campaign.voice.line(f"ended what was left of {name} of sweep {sweep.id}")
