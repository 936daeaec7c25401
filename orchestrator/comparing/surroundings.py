"""What differs between two sides beside their numbers, and could explain them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import nodeset
from orchestrator.comparing.pairing import ABSENT, Pair, Pairs
from orchestrator.comparing.sides import Side, SideCase

# Differs between nodes that are alike.
_OWN = frozenset({"hostname"})
# Provenance in a reader's words.
_SAID = {
    "tasks": "command line and environment (sha256)",
    "image": "image digest or program",
    "cpus": "usable CPUs",
    "gpu": "GPUs",
    "library_path": "LD_LIBRARY_PATH",
}
NODES, TRANSPORT = "nodes", "transport"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same on both sides.

    Args:
        cases: the numbers of the pairs that it holds for, from 0; empty for all that were measured.
    """

    what: str
    first: str
    second: str
    cases: tuple[int, ...] = ()


def differences(first: Side, second: Side, pairs: Pairs) -> tuple[Difference, ...]:
    """Settings of the whole, what cases are varied in, facts of nodes, then what trials were."""
    found = [
        Difference(name, first.settings.get(name) or ABSENT, second.settings.get(name) or ABSENT)
        for name in dict.fromkeys((*first.settings, *second.settings))
        if _differ(first.settings.get(name, ""), second.settings.get(name, ""))
    ]
    found += [Difference(name, *values) for name, values in pairs.varied.items()]
    found += _of_nodes(first.environment, second.environment)
    known = {difference.what for difference in found}
    return (*found, *(item for item in _of_cases(pairs.both) if item.what not in known))


def _differ(here: str, there: str) -> bool:
    return bool(here and there) and here != there


def _of_nodes(
    first: Mapping[str, Mapping[str, str]], second: Mapping[str, Mapping[str, str]]
) -> Iterable[Difference]:
    """Facts whose values are not the same; a side that knows none of a fact says nothing of it."""
    for name in dict.fromkeys(name for facts in (first, second) for name in _names(facts)):
        here, there = _values(first, name), _values(second, name)
        if name not in _OWN and _differ(here, there):
            yield Difference(name, here, there)


def _names(environment: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    return dict.fromkeys(name for facts in environment.values() for name in facts)


def _values(environment: Mapping[str, Mapping[str, str]], name: str) -> str:
    values = dict.fromkeys(facts[name] for facts in environment.values() if name in facts)
    return " or ".join(sorted(values))


def _of_cases(pairs: Sequence[Pair]) -> Iterable[Difference]:
    """Provenance, nodes and transport of trials; equal differences of several cases are one."""
    cases: dict[tuple[str, str, str], list[int]] = {}
    measured = [pair for pair in pairs if pair.first.valid and pair.second.valid]
    for number, pair in enumerate(pairs):
        here, there = _facts(pair.first), _facts(pair.second)
        for name in here:
            if _differ(here[name], there.get(name, "")):
                cases.setdefault((name, here[name], there[name]), []).append(number)
    for (name, mine, theirs), numbers in cases.items():
        where = () if len(numbers) == len(measured) else tuple(numbers)
        yield Difference(name, mine, theirs, where)


def _facts(case: SideCase) -> dict[str, str]:
    provenance = {_SAID.get(name, name): value for name, value in case.provenance.items()}
    transports = dict.fromkeys(trial.transport for trial in case.valid if trial.transport)
    return {
        **provenance,
        NODES: nodeset.fold(sorted(case.nodes)) if case.nodes else "",
        TRANSPORT: " or ".join(transports),
    }
