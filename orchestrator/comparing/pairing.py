"""Which cases of two sides belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.comparing.sides import Side, SideCase
from orchestrator.model.text import Scalar


@dataclass(frozen=True, slots=True)
class Pair:
    """A case of both sides."""

    first: SideCase
    second: SideCase


@dataclass(frozen=True, slots=True)
class Pairs:
    """The cases that both sides have, and those that only one has.

    Args:
        varied: what the sides differ in as a whole, such as a parameter that each gives one value:
            it is what is compared, and does not keep cases apart.
    """

    both: tuple[Pair, ...]
    only_first: tuple[SideCase, ...]
    only_second: tuple[SideCase, ...]
    varied: Mapping[str, tuple[str, str]]


ABSENT = "(none)"
# What follows from other fields, and what makes another benchmark of a case.
_DERIVED = frozenset({"placement", "world_size", "global_batch_size", "data_parallel"})


def paired(first: Side, second: Side) -> Pairs:
    """Pair the cases of two sides, in the order of the first."""
    varied = _varied(first.cases, second.cases)
    theirs = {_key(case, varied): case for case in second.cases}
    both, only_first = [], []
    for case in first.cases:
        other = theirs.pop(_key(case, varied), None)
        if other is None:
            only_first.append(case)
        else:
            both.append(Pair(case, other))
    return Pairs(tuple(both), tuple(only_first), tuple(theirs.values()), varied)


def _key(case: SideCase, varied: Mapping[str, object]) -> frozenset[tuple[str, Scalar]]:
    ignored = _DERIVED | varied.keys()
    return frozenset((name, value) for name, value in case.case.items() if name not in ignored)


def _varied(first: Sequence[SideCase], second: Sequence[SideCase]) -> Mapping[str, tuple[str, str]]:
    """Parameters that have one value in all cases of each side, and not the same one."""
    names = dict.fromkeys(name for case in (*first, *second) for name in case.case)
    varied = {}
    for name in names:
        here, there = _values(first, name), _values(second, name)
        if name.startswith("params.") and len(here) == len(there) == 1 and here != there:
            varied[name.removeprefix("params.")] = (*here, *there)
    return {f"params.{name}": values for name, values in varied.items()}


def _values(cases: Sequence[SideCase], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(case.case.get(name, ABSENT)) for case in cases))
