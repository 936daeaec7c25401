"""Run two playbooks, or one with two images, on the same nodes in turns: A B, then B A."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.comparing.sides import Side, SideCase, pair_cases
from orchestrator.console import Voice
from orchestrator.model.plan import Trial
from orchestrator.state.files import dumps, write
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.submitting import submit
from orchestrator.sweeping import loop, resume
from orchestrator.sweeping.campaign import HeldNodes
from orchestrator.sweeping.requested import Requested, SweepOptions, resolve


def take(
    store: Store,
    sides: tuple[str, str],
    inventory: str | None,
    nodes: str | None,
    repeats: int | None,
    voice: Voice,
) -> list[Sweep]:
    """Run the remaining turns of a pair and write both reports; return the two sweeps.

    Both plans are written before the first turn, so an interrupted pair goes on by the same
    command. The nodes are held for all turns, and observed once for each image.

    Args:
        sides: a playbook each, or PLAYBOOK=IMAGE for another image than its own.
        repeats: of each case on each side; None for the fewer of what the playbooks say.
    """
    requests = []
    for side in sides:
        playbook, _, image = side.partition("=")
        options = SweepOptions(
            playbook, inventory, repeats=repeats, new=True, nodes=nodes, image=image or None
        )
        requests.append(resolve(store, options, voice))
    fewer = min(of.plan.method.most for of in requests)
    for place, of in enumerate(requests):
        trials = tuple(trial for trial in of.plan.trials if trial.repeat <= fewer)
        requests[place] = replace(of, plan=replace(of.plan, trials=trials))
    pairs = _pair_trials(sides, requests)
    if submit.is_needed(requests[0].cluster):
        raise _no_turns("this is no job of Slurm's", "run it inside one, as of `salloc`")
    for of in requests:
        of.refuse_unprepared()
    name = hashlib.sha256(json.dumps([*sides, inventory, nodes]).encode()).hexdigest()[:12]
    path = store.root / "turns" / f"{name}.json"
    earlier = _find_begun(store, path, requests)
    with (
        HeldNodes(store, voice) as held,
        held.open(requests, earlier) as campaigns,
    ):
        sweeps = [campaign.sweep for campaign in campaigns]
        write(path, dumps([sweep.id for sweep in sweeps]).encode())
        loop.take_turns(campaigns, [*_order(pairs)], sides)
        for sweep in sweeps:
            loop.write_report(sweep)
    path.unlink(missing_ok=True)  # the same command begins a new pair
    return sweeps


def _pair_trials(
    sides: tuple[str, str], requests: Sequence[Requested]
) -> list[tuple[tuple[Trial, ...], tuple[Trial, ...]]]:
    first, second = requests
    if sides[0] == sides[1]:
        raise _no_turns(f"both sides are {sides[0]}", "name two playbooks or images")
    if first.cluster != second.cluster:
        raise _no_turns("their playbooks name two inventories", "name one with --inventory")
    watched = [of.playbook.name for of in requests if of.plan.method.watch is not None]
    if watched:
        raise _no_turns(f"{watched[0]} has a canary", "take it out: turns show a drift themselves")
    named = [
        {trials[0].name.rpartition("_")[0]: trials for trials in of.plan.by_case.values()}
        for of in requests
    ]
    listed = [
        tuple(SideCase(case=trials[0].case.document(), name=name) for name, trials in by.items())
        for by in named
    ]
    unit = first.recipe.workload.unit
    pairs = pair_cases(*(Side(version=1, source="", unit=unit, cases=it) for it in listed))
    alone = (*pairs.only_first, *pairs.only_second)
    if alone or not pairs.both:
        names = ", ".join(case.name or "" for case in alone)
        raise _no_turns(f"one side alone has {names}", "give both playbooks the same cases")
    return [(named[0][pair[0].name or ""], named[1][pair[1].name or ""]) for pair in pairs.both]


def _order(
    pairs: Sequence[tuple[tuple[Trial, ...], tuple[Trial, ...]]],
) -> Iterator[tuple[int, Trial]]:
    """Yield a side, 0 or 1, and its trial for each turn; the side that begins changes."""
    for repeat in range(min(len(trials) for pair in pairs for trials in pair)):
        for pair in pairs:
            turn = [(side, trials[repeat]) for side, trials in enumerate(pair)]
            yield from turn if repeat % 2 == 0 else reversed(turn)


def _find_begun(store: Store, path: Path, requests: Sequence[Requested]) -> list[Sweep]:
    """Return the sweeps of a pair that was interrupted; none if its playbooks changed since."""
    try:
        sweeps = [store.sweep(str(sweep_id)) for sweep_id in json.loads(path.read_bytes())]
    except (OSError, ValueError, errors.DlperfError):
        return []
    digests = [resume.identity(request.recipe)[1] for request in requests]
    return sweeps if [sweep.record().identity for sweep in sweeps] == digests else []


def _no_turns(cause: str, fix: str) -> errors.UsageError:
    return errors.UsageError(f"they cannot take turns: {cause}", code="NO-TURNS", fix=fix)
