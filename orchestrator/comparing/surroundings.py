"""Differences between two sides beside their numbers, which may explain them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import nodeset
from orchestrator.comparing.sides import ABSENT, Mark, Pair, Pairs, Side, SideCase

# Facts that differ between nodes of one kind.
_OWN = frozenset({"hostname"})
# Names of provenance for a reader.
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
    """A fact that differs between the sides.

    Args:
        cases: numbers of the pairs that differ so, from 0; empty for all that were measured.
    """

    what: str
    first: str
    second: str
    cases: tuple[int, ...] = ()


def find_differences(first: Side, second: Side, pairs: Pairs) -> tuple[Difference, ...]:
    """Return differences of settings, varied parameters, facts of nodes, then those of trials."""
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


def find_recorded_once(first: Side, second: Side, pairs: Pairs) -> tuple[str, ...]:
    """Return the names of facts that only one side records; none beside a published result."""
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
    """Yield facts with other values; a fact that a side lacks is no difference."""
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
    """Yield differences in provenance, nodes and transport; equal ones of several cases are one."""
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
    """Yield marks that only one side has: of the whole, then of cases."""
    here, there = list_codes(first.marks), list_codes(second.marks)
    if here != there:
        yield Difference("marks of the whole", here or ABSENT, there or ABSENT)
    cases: dict[tuple[str, str], list[int]] = {}
    for number, pair in enumerate(pairs):
        here, there = list_codes(pair.first.every_mark), list_codes(pair.second.every_mark)
        if here != there:
            cases.setdefault((here or ABSENT, there or ABSENT), []).append(number)
    for (here, there), numbers in cases.items():
        yield Difference("marks", here, there, tuple(numbers))


def list_codes(marks: Iterable[Mark]) -> str:
    """Return the codes of marks, each once, sorted."""
    return ", ".join(sorted({mark.code for mark in marks}))


def _facts(case: SideCase) -> dict[str, str]:
    provenance = {_SAID.get(name, name): value for name, value in case.provenance.items()}
    transports = dict.fromkeys(trial.transport for trial in case.valid if trial.transport)
    return {
        **provenance,
        NODES: nodeset.fold(sorted(case.nodes)) if case.nodes else "",
        TRANSPORT: " or ".join(transports),
    }
