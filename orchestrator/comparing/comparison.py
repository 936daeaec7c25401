"""The comparison of two sides: all cases that both have, judged together, and what else differs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import nodeset, words
from orchestrator.comparing import verdicts
from orchestrator.comparing.bounds import Bound, learn_bound
from orchestrator.comparing.sides import ABSENT, Pairs, Side, SideCase, pair_cases
from orchestrator.comparing.verdicts import ComparedCase
from orchestrator.model.problem import Problem

SLOWER, NOT_MEASURED = 3, 5
_OWN = frozenset({"hostname"})  # facts that differ between nodes of one kind
# Names of provenance for a reader.
_READABLE = {
    "tasks": "command line and environment (sha256)",
    "image": "image digest or program",
    "cpus": "usable CPUs",
    "gpu": "GPUs",
    "library_path": "LD_LIBRARY_PATH",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs between the sides, and may explain the numbers.

    Args:
        cases: numbers of the compared cases, from 0; empty for all that were measured.
    """

    what: str
    first: str
    second: str
    cases: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, compared.

    Args:
        only_first, only_second: cases that the other side lacks.
        recorded_once: facts that one side alone records.
        slower: the gate's limit, such as 0.03; None without a gate.
    """

    first: Side
    second: Side
    rows: tuple[ComparedCase, ...]
    only_first: tuple[SideCase, ...]
    only_second: tuple[SideCase, ...]
    differences: tuple[Difference, ...]
    recorded_once: tuple[str, ...]
    slower: float | None

    @property
    def gates(self) -> Counter[str | None]:
        """Count the cases by result of the gate; empty without one."""
        if self.slower is None:
            return Counter()
        return Counter([row.gate for row in self.rows] + ["unknown"] * len(self.only_first))

    @property
    def exit_code(self) -> int:
        """Return 3 if the gate found a case slower, else 5 if it could not decide one, else 0."""
        gates = self.gates
        return SLOWER if gates["slower"] else NOT_MEASURED if gates["unknown"] else 0

    @property
    def gate(self) -> str:
        """Return the result of the gate in a sentence; empty without a gate."""
        if self.slower is None:
            return ""
        gates, limit = self.gates, f"slower by more than {self.slower:.2%}"
        if gates["slower"]:
            return f"FAILED: {words.count(gates['slower'], 'case')} {limit}"
        if gates["unknown"]:
            undecided = words.count(gates["unknown"], "case")
            return f"NO PASS: of {undecided} it cannot be told whether they are {limit}"
        return f"passed: no case is {limit}"


def compare_sides(
    first: Side,
    second: Side,
    slower: float | None = None,
    bound: float | None = None,
    earlier: Sequence[Side] = (),
) -> Comparison:
    """Compare two sides case by case.

    Args:
        bound: up to which a difference is noise, such as 0.01; None: each case's own.
        earlier: sweeps from which that of a case is learnt, the newest first.
    """
    pairs = pair_cases(first, second)
    given = None if bound is None else Bound(bound, "given")
    cases = [
        (ours, theirs, given or learn_bound(ours if ours.nodes else theirs, earlier))
        for ours, theirs in pairs.both
    ]
    differences, recorded_once = _find_differences(first, second, pairs)
    return Comparison(
        first=first,
        second=second,
        rows=verdicts.judge_cases(cases, slower),
        only_first=pairs.only_first,
        only_second=pairs.only_second,
        differences=differences,
        recorded_once=recorded_once,
        slower=slower,
    )


def _find_differences(
    first: Side, second: Side, pairs: Pairs
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return differences of settings, parameters, nodes and marks, then those of trials.

    A fact that one side alone records is no difference; the names of such facts come second.
    A published result has no facts.
    """
    if first.is_published or second.is_published:
        return (), ()
    of_all = [
        (first.settings, second.settings),
        tuple({name: pair[side] for name, pair in pairs.varied.items()} for side in (0, 1)),
        (_node_facts(first), _node_facts(second)),
        tuple({"marks of the whole": list_codes(side.marks) or ABSENT} for side in (first, second)),
    ]
    measured = {n for n, pair in enumerate(pairs.both) if all(case.valid for case in pair)}
    of_cases = [
        tuple(_case_facts(case, is_measured=n in measured) for case in pair)
        for n, pair in enumerate(pairs.both)
    ]
    differences = [Difference(*fact) for facts in of_all for fact in _compare_facts(*facts)]
    known = {difference.what for difference in differences}
    numbers: dict[tuple[str, str, str], set[int]] = {}
    for n, facts in enumerate(of_cases):
        for fact in _compare_facts(*facts):
            if fact[0] not in known:
                numbers.setdefault(fact, set()).add(n)
    differences += [
        Difference(*fact, () if where >= measured else tuple(sorted(where)))
        for fact, where in numbers.items()
    ]
    once = [
        name
        for here, there in (*of_all, *of_cases)
        for name in dict.fromkeys((*here, *there))
        if bool(here.get(name)) != bool(there.get(name)) and name not in _OWN
    ]
    return tuple(differences), tuple(dict.fromkeys(once))


def _compare_facts(
    here: Mapping[str, str], there: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield facts that both sides record and that differ, with both values."""
    for name, value in here.items():
        other = there.get(name)
        if value and other and value != other and name not in _OWN:
            yield name, value, other


def _node_facts(side: Side) -> dict[str, str]:
    values: dict[str, set[str]] = {}
    for facts in side.environment.values():
        for name, value in facts.items():
            values.setdefault(name, set()).add(value)
    return {name: " or ".join(sorted(found)) for name, found in values.items()}


def _case_facts(case: SideCase, *, is_measured: bool) -> dict[str, str]:
    """Return provenance, nodes and transport of a case that both sides measured, and its marks."""
    marks = {"marks": list_codes(case.every_mark) or ABSENT}
    if not is_measured:
        return marks
    provenance = {_READABLE.get(name, name): value for name, value in case.provenance.items()}
    transports = dict.fromkeys(trial.transport for trial in case.valid if trial.transport)
    nodes = nodeset.fold(sorted(case.nodes))
    return {**provenance, "nodes": nodes, "transport": " or ".join(transports), **marks}


def list_codes(marks: Sequence[Problem]) -> str:
    """Return the codes of marks, each once, sorted."""
    return ", ".join(sorted({mark.code for mark in marks}))
