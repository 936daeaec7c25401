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
from orchestrator.fleet import Pool, ask_all
from orchestrator.preparing_data.one_node import RunningAttempt, Work, begin, find_running, prepare
from orchestrator.preparing_data.plan import Planned
from orchestrator.words import duration

MOST_AT_ONCE = 64
State = Literal["prepared", "there", "shared", "refused", "failed", "stopped", "unknown"]


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """The outcome of one node's preparation; ``error`` if something failed."""

    state: State
    message: str
    error: errors.DlperfError | None = None


def run(
    work: Work,
    plans: Mapping[str, Planned],
    failures: Sequence[errors.DlperfError],
    voice: Voice,
) -> dict[str, NodeOutcome]:
    """Prepare all nodes at once; return outcomes by node name, silent nodes last.

    Args:
        failures: of nodes that could not be looked at.
    """
    outcomes = {
        name: NodeOutcome("there", "nothing is overwritten")
        for name, planned in plans.items()
        if planned.state == "there"
    }
    others = [name for name in plans if name not in outcomes]
    # In a tuple, since an answer of None would count as no answer.
    found = ask_all(others, lambda name: (find_running(work, plans[name]),))
    live = {answer.node: answer.value[0] for answer in found if answer.value and answer.value[0]}
    outcomes |= {answer.node: _failed(answer.error) for answer in found if answer.error}
    for name in others:
        if name not in live and name not in outcomes and plans[name].findings:
            outcomes[name] = NodeOutcome("refused", plans[name].findings[0].code)
    nonce = secrets.token_hex(8)

    def claim(name: str) -> str:
        return begin(work, plans[name], nonce, live.get(name))

    # Of nodes with one path a node already at work keeps it.
    todo = [name for name in plans if name not in outcomes]
    claims = ask_all([name for name in todo if name in live], claim)
    claims += ask_all([name for name in todo if name not in live], claim)
    outcomes |= {answer.node: _failed(answer.error) for answer in claims if answer.error}
    owners = {answer.node: answer.value for answer in claims if answer.value}
    mine = {name: plans[name] for name, owner in owners.items() if owner == name}
    outcomes |= _prepare_all(work, mine, live, voice)
    for name, owner in owners.items():
        if owner != name:
            well = owner in outcomes and outcomes[owner].state == "prepared"
            state: State = "shared" if well else "failed"
            outcomes[name] = NodeOutcome(state, f"the same place as on {owner}")
    silent = {error.where.get("node", "?"): _failed(error) for error in failures}
    return {**{name: outcomes[name] for name in plans}, **silent}


def _prepare_all(
    work: Work, mine: Mapping[str, Planned], live: Mapping[str, RunningAttempt], voice: Voice
) -> dict[str, NodeOutcome]:
    """Prepare the nodes that work, showing their progress; return their outcomes."""
    pool = Pool(min(MOST_AT_ONCE, len(mine)))
    first: dict[str, tuple[DataProgress, float]] = {}
    try:
        submitted = {
            name: pool.submit(partial(_prepare_one, work, planned, live.get(name)))
            for name, planned in mine.items()
        }
        pending = set(submitted.values())
        while pending:
            _, pending = futures.wait(pending, progress.LEAST_S)
            at, now = time.monotonic(), dict(work.progress)
            for name, seen in now.items():
                first.setdefault(name, (seen, at))
            line = progress.summary(first, now, at)
            voice.working(f"data set {work.request.dataset.name}: {line}")
        return {name: future.result() for name, future in submitted.items()}
    finally:
        pool.close()


def _prepare_one(work: Work, planned: Planned, running: RunningAttempt | None) -> NodeOutcome:
    began = time.monotonic()
    try:
        message = prepare(work, planned, running)
    except errors.DlperfError as error:
        error.where.setdefault("node", planned.node.name)
        if work.stopping() and not isinstance(error, errors.NodeError):
            return NodeOutcome("stopped", "ended before it was done")
        return _failed(error)
    finally:
        work.progress.pop(planned.node.name, None)
    prefix = "found at work, " if running else ""
    return NodeOutcome("prepared", f"{prefix}{message}, took {duration(time.monotonic() - began)}")


def _failed(error: errors.DlperfError) -> NodeOutcome:
    state: State = "unknown" if isinstance(error, errors.NodeError) else "failed"
    return NodeOutcome("stopped" if error.code == "STOPPED" else state, error.code, error)
