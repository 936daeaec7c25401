"""All nodes' preparations of a data set at once: none waits for another, none stops another."""

import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from functools import partial
from typing import Literal

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.datasets import progress
from orchestrator.datasets.progress import DataProgress
from orchestrator.fleet import Answer, ask_all
from orchestrator.pool import Pool
from orchestrator.preparing_data.one_node import RunningAttempt, Work, begin, find_running, prepare
from orchestrator.preparing_data.plan import Planned, Plans
from orchestrator.words import duration

MOST_AT_ONCE = 64
SHOW_S = 0.5
State = Literal["prepared", "there", "shared", "refused", "failed", "stopped", "unknown"]


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """The outcome of one node's preparation; ``error`` if something failed."""

    state: State
    message: str
    error: errors.DlperfError | None = None


def run(work: Work, plans_found: Plans, voice: Voice) -> dict[str, NodeOutcome]:
    """Prepare all nodes at once; outcomes by node name, silent nodes last."""
    plans = plans_found.nodes
    live, outcomes = _find_earlier(work, plans)
    todo = {name: planned for name, planned in plans.items() if name not in outcomes}
    claims = _claims(work, todo, live)
    outcomes |= {claim.node: _of(claim.error) for claim in claims if claim.error}
    owners = {claim.node: claim.value for claim in claims if claim.value}
    mine = {name: todo[name] for name, owner in owners.items() if owner == name}
    outcomes |= _prepare_all(work, mine, live, voice)
    for name, owner in owners.items():
        if owner != name:
            outcomes[name] = _shared(owner, outcomes.get(owner))
    silent = {error.where.get("node", "?"): _of(error) for error in plans_found.failures}
    return {**{name: outcomes[name] for name in plans}, **silent}


def _find_earlier(
    work: Work, plans: Mapping[str, Planned]
) -> tuple[dict[str, RunningAttempt], dict[str, NodeOutcome]]:
    """Return running attempts of earlier runs, and outcomes of nodes with nothing to do."""
    there = [name for name, planned in plans.items() if planned.state == "there"]
    others = [name for name in plans if name not in there]
    # In a tuple, since an answer of None would count as no answer.
    answers = ask_all(others, lambda name: (find_running(work, plans[name]),))
    live = {answer.node: answer.value[0] for answer in answers if answer.value and answer.value[0]}
    outcomes = {name: NodeOutcome("there", "nothing is overwritten") for name in there}
    outcomes |= {answer.node: _of(answer.error) for answer in answers if answer.error}
    for name in others:
        if name not in live and name not in outcomes and plans[name].findings:
            outcomes[name] = NodeOutcome("refused", plans[name].findings[0].code)
    return live, outcomes


def _claims(
    work: Work, todo: Mapping[str, Planned], live: Mapping[str, RunningAttempt]
) -> list["Answer[str]"]:
    """Claim each node's path for one node; a node already at work keeps it."""
    nonce = secrets.token_hex(8)

    def claim(name: str) -> str:
        return begin(work, todo[name], nonce, live.get(name))

    first = [name for name in todo if name in live]
    return [
        *ask_all(first, claim),
        *ask_all([name for name in todo if name not in live], claim),
    ]


def _prepare_all(
    work: Work, mine: Mapping[str, Planned], live: Mapping[str, RunningAttempt], voice: Voice
) -> dict[str, NodeOutcome]:
    """Prepare the nodes that work, showing their progress; return their outcomes."""
    pool = Pool(min(MOST_AT_ONCE, len(mine)))
    show = _Show(work, voice)
    try:
        submitted = {
            name: pool.submit(partial(_prepare_one, work, planned, live.get(name)))
            for name, planned in mine.items()
        }
        pending = set(submitted.values())
        while pending:
            _, pending = futures.wait(pending, SHOW_S)
            show.now()
        return {name: future.result() for name, future in submitted.items()}
    finally:
        voice.rested()
        pool.close()


def _prepare_one(work: Work, planned: Planned, running: RunningAttempt | None) -> NodeOutcome:
    began = time.monotonic()
    try:
        message = prepare(work, planned, running)
    except errors.DlperfError as error:
        error.where.setdefault("node", planned.node.name)
        if work.stopping() and not isinstance(error, errors.NodeError):
            return NodeOutcome("stopped", "ended before it was done")
        return _of(error)
    finally:
        work.progress.pop(planned.node.name, None)
    prefix = "found at work, " if running else ""
    return NodeOutcome("prepared", f"{prefix}{message}, took {duration(time.monotonic() - began)}")


def _of(error: errors.DlperfError | None) -> NodeOutcome:
    if error is None:
        raise AssertionError("an answer without a value has an error")
    state: State = "failed"
    if error.code == "STOPPED":
        state = "stopped"
    elif isinstance(error, errors.NodeError):
        state = "unknown"
    return NodeOutcome(state, error.code, error)


def _shared(owner: str, outcome: NodeOutcome | None) -> NodeOutcome:
    message = f"the same place as on {owner}"
    if outcome is not None and outcome.state == "prepared":
        return NodeOutcome("shared", message)
    return NodeOutcome("failed", message)


class _Show:
    """The progress line of all nodes."""

    def __init__(self, work: Work, voice: Voice) -> None:
        self._work, self._voice = work, voice
        self._first: dict[str, tuple[DataProgress, float]] = {}

    def now(self) -> None:
        at = time.monotonic()
        shown = dict(self._work.progress)
        for name, progress_now in shown.items():
            self._first.setdefault(name, (progress_now, at))
        name = self._work.request.dataset.name
        line = progress.summary(shown, self._rate(shown, at), self._estimate_remaining(shown, at))
        self._voice.working(f"data set {name}: {line}")

    def _rate(self, shown: Mapping[str, DataProgress], at: float) -> float:
        """Return the files per second of all nodes together."""
        rates = [
            (progress_now.files - self._first[name][0].files)
            / max(at - self._first[name][1], SHOW_S)
            for name, progress_now in shown.items()
        ]
        return sum(rates)

    def _estimate_remaining(self, shown: Mapping[str, DataProgress], at: float) -> str:
        """Return the longest estimate of the time left, in words; empty without any."""
        lefts: Sequence[float | None] = [
            progress.left_s(self._first[name][0], progress_now, at - self._first[name][1])
            for name, progress_now in shown.items()
        ]
        lefts_known = [left for left in lefts if left is not None]
        return duration(max(lefts_known)) if lefts_known else ""
