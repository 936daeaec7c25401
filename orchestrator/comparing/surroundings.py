"""What differs between two sides beside their numbers, and could explain them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import nodeset
from orchestrator.comparing.pairing import ABSENT, Pair, Pairs
from orchestrator.comparing.sides import Mark, Side, SideCase

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
    found += [item for item in _of_cases(pairs.both) if item.what not in known]
    if not (first.is_published or second.is_published):
        found += _of_marks(first, second, pairs.both)
    return tuple(found)


def recorded_once(first: Side, second: Side, pairs: Pairs) -> tuple[str, ...]:
    """Return the names of facts that one side records and the other does not.

    None beside a published result, of which little is known.
    """
    if first.is_published or second.is_published:
        return ()
    facts = [(first.settings, second.settings), (_of_all(first), _of_all(second))]
    facts += [(_facts(pair.first), _facts(pair.second)) for pair in _measured(pairs.both)]
    names = (
        name
        for here, there in facts
        for name in (*here, *there)
        if bool(here.get(name)) != bool(there.get(name)) and name not in _OWN
    )
    return tuple(dict.fromkeys(names))


def _of_all(side: Side) -> dict[str, str]:
    return {name: _values(side.environment, name) for name in _names(side.environment)}


def _measured(pairs: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.first.valid and pair.second.valid]


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
    for number, pair in enumerate(pairs):
        here, there = _facts(pair.first), _facts(pair.second)
        for name in here:
            if _differ(here[name], there.get(name, "")):
                cases.setdefault((name, here[name], there[name]), []).append(number)
    for (name, mine, theirs), numbers in cases.items():
        where = () if len(numbers) == len(_measured(pairs)) else tuple(numbers)
        yield Difference(name, mine, theirs, where)


def _of_marks(first: Side, second: Side, pairs: Sequence[Pair]) -> Iterable[Difference]:
    """Yield marks that one side has and the other has not: of the whole, then of cases."""
    here, there = codes(first.marks), codes(second.marks)
    if here != there:
        yield Difference("marks of the whole", here or ABSENT, there or ABSENT)
    cases: dict[tuple[str, str], list[int]] = {}
    for number, pair in enumerate(pairs):
        here, there = codes(pair.first.every_mark), codes(pair.second.every_mark)
        if here != there:
            cases.setdefault((here or ABSENT, there or ABSENT), []).append(number)
    for (here, there), numbers in cases.items():
        yield Difference("marks", here, there, tuple(numbers))


def codes(marks: Iterable[Mark]) -> str:
    """Return the codes of marks, each once, in alphabetical order."""
    return ", ".join(sorted({mark.code for mark in marks}))


def _facts(case: SideCase) -> dict[str, str]:
    provenance = {_SAID.get(name, name): value for name, value in case.provenance.items()}
    transports = dict.fromkeys(trial.transport for trial in case.valid if trial.transport)
    return {
        **provenance,
        NODES: nodeset.fold(sorted(case.nodes)) if case.nodes else "",
        TRANSPORT: " or ".join(transports),
    }
