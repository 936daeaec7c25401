"""When trials of a sweep ran and on which nodes, by its events and outcomes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True)
class Span:
    """When the attempt that counts of a trial began and ended, and on which nodes it ran."""

    began: str
    ended: str
    nodes: frozenset[str]

    def meets(self, other: "Span") -> bool:
        """Whether both ran at one time."""
        return self.began < other.ended and other.began < self.ended


def spans(
    events: Iterable[Mapping[str, Any]], outcomes: Iterable[Mapping[str, Any]]
) -> dict[str, Span]:
    """By trial."""
    at = {
        (event["event"], event["trial"], event["attempt"]): event["at"]
        for event in events
        if event["event"] in ("intent", "outcome")
    }
    found = {}
    for outcome in outcomes:
        which = outcome["trial"], outcome["attempt"]
        nodes = frozenset(task["node"] for task in outcome["tasks"])
        found[outcome["trial"]] = Span(at["intent", *which], at["outcome", *which], nodes)
    return found


def side_by_side(found: Mapping[str, Span]) -> list[tuple[str, str]]:
    """Trials that ran at one time, two by two; no node was in both."""
    pairs = [
        (one, other) for one, other in combinations(found, 2) if found[one].meets(found[other])
    ]
    for one, other in pairs:
        assert not found[one].nodes & found[other].nodes, (one, other)
    return pairs
