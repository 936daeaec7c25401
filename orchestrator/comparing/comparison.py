"""The comparison of two sides: all cases that both have, judged together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator import words
from orchestrator.comparing import surroundings, verdicts
from orchestrator.comparing.bounds import Bound
from orchestrator.comparing.sides import Pair, Side, SideCase, pair_cases
from orchestrator.comparing.surroundings import Difference
from orchestrator.comparing.verdicts import Samples, Verdict
from orchestrator.model.case import NAMED_BY

SLOWER, NOT_MEASURED = 3, 5


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A case that both sides have."""

    pair: Pair
    bound: Bound
    samples: Samples
    verdict: Verdict


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
    def exit_code(self) -> int:
        """Return 3 if the gate found a case slower, else 5 if it could not decide one, else 0."""
        if self.slower is None:
            return 0
        gates = {row.verdict.gate for row in self.rows}
        if "slower" in gates:
            return SLOWER
        return NOT_MEASURED if "unknown" in gates or self.only_first else 0

    @property
    def gate(self) -> str:
        """The result of the gate in a sentence; empty without a gate."""
        if self.slower is None:
            return ""
        limit = f"slower by more than {self.slower:.2%}"
        counts = {"slower": 0, "unknown": len(self.only_first), "passed": 0}
        for row in self.rows:
            counts[str(row.verdict.gate)] += 1
        if counts["slower"]:
            return f"FAILED: {words.count(counts['slower'], 'case')} {limit}"
        if counts["unknown"]:
            undecided = words.count(counts["unknown"], "case")
            return f"NO PASS: of {undecided} it cannot be told whether they are {limit}"
        return f"passed: no case is {limit}"


def compare_sides(
    first: Side, second: Side, bounds: Mapping[int, Bound] | Bound, slower: float | None
) -> Comparison:
    """Compare two sides case by case.

    Args:
        bounds: one for all cases, or by number of the case among those that both sides have.
    """
    pairs = pair_cases(first, second)
    chosen = [bounds if isinstance(bounds, Bound) else bounds[n] for n in range(len(pairs.both))]
    published = first.is_published or second.is_published
    samples = [
        Samples(
            first=pair.first.values,
            second=pair.second.values,
            bound=bound.share,
            shared=len(_logs(pair.first) & _logs(pair.second)),
            published=published,
        )
        for pair, bound in zip(pairs.both, chosen, strict=True)
    ]
    judged = verdicts.judge_cases(samples, slower)
    return Comparison(
        first=first,
        second=second,
        rows=tuple(map(ComparedCase, pairs.both, chosen, samples, judged)),
        only_first=pairs.only_first,
        only_second=pairs.only_second,
        differences=surroundings.find_differences(first, second, pairs),
        recorded_once=surroundings.find_recorded_once(first, second, pairs),
        slower=slower,
    )


def _logs(case: SideCase) -> frozenset[str]:
    return frozenset(trial.sha256 for trial in case.valid if trial.sha256)


def name_case(case: SideCase, cases: Sequence[SideCase]) -> str:
    """Return placement, precision and batch of a case, and what else differs between the cases."""
    varying = [
        f"{name.removeprefix('params.')}={value}"
        for name, value in case.case.items()
        if name not in NAMED_BY and any(other.case.get(name) != value for other in cases)
    ]
    plain = [str(case.case.get(name, "?")) for name in ("placement", "precision")]
    return " ".join((*plain, f"b{case.case.get('micro_batch_size', '?')}", *varying))
