"""The comparison of two sides: all cases that both have, judged together, and what else differs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator import nodeset, words
from orchestrator.comparing import verdicts
from orchestrator.comparing.sides import ABSENT, Pairs, Side, SideCase, pair_cases
from orchestrator.comparing.verdicts import ComparedCase
from orchestrator.model.problem import Problem

SLOWER, NOT_MEASURED = 3, 5
USUAL = 0.01
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

    ``cases`` has the numbers of the compared cases, from 0; none for all that were measured.
    """

    what: str
    first: str
    second: str
    cases: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, compared.

    Args:
        bound: the largest difference that counts as noise, such as 0.01.
        recorded_once: facts that one side alone records.
        slower: the gate's limit, such as 0.03; None without a gate.
    """

    first: Side
    second: Side
    bound: float
    bound_is: Literal["given", "usual"]
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
        gates = self.gates
        return SLOWER if gates["slower"] else NOT_MEASURED if gates["unknown"] else 0

    @property
    def gate(self) -> str:
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
    first: Side, second: Side, slower: float | None = None, bound: float | None = None
) -> Comparison:
    """Compare two sides case by case; without a bound, by the usual one."""
    pairs = pair_cases(first, second)
    used = USUAL if bound is None else bound
    differences, recorded_once = _find_differences(first, second, pairs)
    return Comparison(
        first=first,
        second=second,
        bound=used,
        bound_is="usual" if bound is None else "given",
        rows=verdicts.judge_cases(pairs.both, used, slower),
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
    """
    measured = {n for n, pair in enumerate(pairs.both) if all(case.valid for case in pair)}
    varied = [{name: pair[at] for name, pair in pairs.varied.items()} for at in (0, 1)]
    facts = [(_facts_of_all(first, varied[0]), _facts_of_all(second, varied[1]))]
    for n, (our_case, their_case) in enumerate(pairs.both):
        is_measured = n in measured
        facts.append((_case_facts(our_case, is_measured), _case_facts(their_case, is_measured)))
    found: dict[tuple[str, str, str], set[int]] = {}
    of_whole: set[str] = set()
    once: dict[str, None] = {}
    for number, (here, there) in enumerate(facts, -1):
        for name in dict.fromkeys((*here, *there)):
            ours, theirs = here.get(name), there.get(name)
            if (ours or "") == (theirs or ""):
                continue
            if not ours or not theirs:
                once[name] = None
            elif number < 0:
                of_whole.add(name)
                found[name, ours, theirs] = set()
            elif name not in of_whole:
                found.setdefault((name, ours, theirs), set()).add(number)
    differences = (
        Difference(*fact, () if cases >= measured else tuple(sorted(cases)))
        for fact, cases in found.items()
    )
    return tuple(differences), tuple(once)


def _facts_of_all(side: Side, varied: Mapping[str, str]) -> dict[str, str]:
    values: dict[str, set[str]] = {}
    for facts in side.environment.values():
        for name, value in facts.items():
            values.setdefault(name, set()).add(value)
    values.pop("hostname", None)  # it differs between nodes of one kind
    nodes = {name: " or ".join(sorted(found)) for name, found in values.items()}
    marks = list_codes(side.every_mark)
    return {**side.settings, **varied, **nodes, "marks of the whole": marks}


def _case_facts(case: SideCase, is_measured: bool) -> dict[str, str]:
    """Return provenance, nodes and transport of a case that both sides measured, and its marks."""
    marks = {"marks": list_codes(case.every_mark)}
    if not is_measured:
        return marks
    provenance = {_READABLE.get(name, name): value for name, value in case.provenance.items()}
    transports = dict.fromkeys(trial.transport for trial in case.valid if trial.transport)
    nodes = nodeset.fold(sorted(case.nodes))
    return {**provenance, "nodes": nodes, "transport": " or ".join(transports), **marks}


def list_codes(marks: Sequence[Problem]) -> str:
    """Return the codes of marks, each once, sorted; ``(none)`` without any."""
    return ", ".join(sorted({mark.code for mark in marks})) or ABSENT
