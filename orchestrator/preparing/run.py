"""All nodes' preparations of a data set at once: none waits for another, none stops another."""

import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from functools import partial
from typing import Literal

from orchestrator import errors
from orchestrator.console import Voice, duration
from orchestrator.datasets import progress
from orchestrator.datasets.progress import Progress
from orchestrator.fleet import Answer, ask_all
from orchestrator.pool import Pool
from orchestrator.preparing.plan import Planned, Plans
from orchestrator.preparing.watch import Running
from orchestrator.preparing.work import Work, begin, left, prepare

MOST_AT_ONCE = 64
SHOW_S = 0.5
State = Literal["prepared", "there", "shared", "refused", "failed", "stopped", "unknown"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one node; ``error`` where something failed."""

    state: State
    words: str
    error: errors.DlperfError | None = None


def run(work: Work, found: Plans, voice: Voice) -> dict[str, Outcome]:
    """What came of every node, those last that did not even say what lies there."""
    plans = found.nodes
    live, outcomes = _found(work, plans)
    todo = {name: planned for name, planned in plans.items() if name not in outcomes}
    claims = _claims(work, todo, live)
    outcomes |= {claim.node: _of(claim.error) for claim in claims if claim.error}
    owners = {claim.node: claim.value for claim in claims if claim.value}
    mine = {name: todo[name] for name, owner in owners.items() if owner == name}
    outcomes |= _worked(work, mine, live, voice)
    for name, owner in owners.items():
        if owner != name:
            outcomes[name] = _shared(owner, outcomes.get(owner))
    silent = {error.where.get("node", "?"): _of(error) for error in found.failures}
    return {**{name: outcomes[name] for name in plans}, **silent}


def _found(
    work: Work, plans: Mapping[str, Planned]
) -> tuple[dict[str, Running], dict[str, Outcome]]:
    """Nodes where an earlier run's work goes on; and what came of those where none is to begin."""
    there = [name for name, planned in plans.items() if planned.state == "there"]
    others = [name for name in plans if name not in there]
    # In a tuple: nothing found is an answer too.
    answers = ask_all(others, lambda name: (left(work, plans[name]),))
    live = {answer.node: answer.value[0] for answer in answers if answer.value and answer.value[0]}
    outcomes = {name: Outcome("there", "nothing is overwritten") for name in there}
    outcomes |= {answer.node: _of(answer.error) for answer in answers if answer.error}
    for name in others:
        if name not in live and name not in outcomes and plans[name].refusals:
            outcomes[name] = Outcome("refused", plans[name].refusals[0].code)
    return live, outcomes


def _claims(
    work: Work, todo: Mapping[str, Planned], live: Mapping[str, Running]
) -> list["Answer[str]"]:
    """Who does the work at each node's path; where work is going on, that node does."""
    nonce = secrets.token_hex(8)

    def claim(name: str) -> str:
        return begin(work, todo[name], nonce, live.get(name))

    first = [name for name in todo if name in live]
    return [
        *ask_all(first, claim),
        *ask_all([name for name in todo if name not in live], claim),
    ]


def _worked(
    work: Work, mine: Mapping[str, Planned], live: Mapping[str, Running], voice: Voice
) -> dict[str, Outcome]:
    """Every node's work, with how far it is shown all the while."""
    pool = Pool(min(MOST_AT_ONCE, len(mine)))
    show = _Show(work, voice)
    try:
        asked = {
            name: pool.submit(partial(_one, work, planned, live.get(name)))
            for name, planned in mine.items()
        }
        pending = set(asked.values())
        while pending:
            _, pending = futures.wait(pending, SHOW_S)
            show.now()
        return {name: future.result() for name, future in asked.items()}
    finally:
        voice.rested()
        pool.close()


def _one(work: Work, planned: Planned, running: Running | None) -> Outcome:
    began = time.monotonic()
    try:
        words = prepare(work, planned, running)
    except errors.DlperfError as error:
        error.where.setdefault("node", planned.node.name)
        if work.stopping() and not isinstance(error, errors.NodeError):
            return Outcome("stopped", "ended before it was done")
        return _of(error)
    finally:
        work.progress.pop(planned.node.name, None)
    found = "found at work, " if running else ""
    return Outcome("prepared", f"{found}{words}, took {duration(time.monotonic() - began)}")


def _of(error: errors.DlperfError | None) -> Outcome:
    if error is None:
        raise AssertionError("an answer without a value has an error")
    state: State = "failed"
    if error.code == "STOPPED":
        state = "stopped"
    elif isinstance(error, errors.NodeError):
        state = "unknown"
    return Outcome(state, error.code, error)


def _shared(owner: str, outcome: Outcome | None) -> Outcome:
    words = f"the same place as on {owner}"
    if outcome is not None and outcome.state == "prepared":
        return Outcome("shared", words)
    return Outcome("failed", words)


class _Show:
    """How far all nodes are, said now and then."""

    def __init__(self, work: Work, voice: Voice) -> None:
        self._work, self._voice = work, voice
        self._first: dict[str, tuple[Progress, float]] = {}

    def now(self) -> None:
        at = time.monotonic()
        shown = dict(self._work.progress)
        for name, progress_now in shown.items():
            self._first.setdefault(name, (progress_now, at))
        name = self._work.asked.dataset.name
        line = progress.told(shown, self._rate(shown, at), self._left(shown, at))
        self._voice.working(f"data set {name}: {line}")

    def _rate(self, shown: Mapping[str, Progress], at: float) -> float:
        """Files per second of all nodes together."""
        rates = [
            (progress_now.files - self._first[name][0].files)
            / max(at - self._first[name][1], SHOW_S)
            for name, progress_now in shown.items()
        ]
        return sum(rates)

    def _left(self, shown: Mapping[str, Progress], at: float) -> str:
        """The time that the last node will take, as far as it can be known of any."""
        lefts: Sequence[float | None] = [
            progress.left_s(self._first[name][0], progress_now, at - self._first[name][1])
            for name, progress_now in shown.items()
        ]
        known = [left for left in lefts if left is not None]
        return duration(max(known)) if known else ""
