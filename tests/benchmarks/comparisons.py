"""How often `compare` and its gate are right, and what the intervals of quotients cover.

    python -m tests.benchmarks.comparisons

By simulation, with fixed seeds: it prints the same numbers whenever it runs, in about two minutes.
The spreads of cases are those of DLPerf's own trials (tests/reported.py), from 0.3 to 1.9 %.
"""

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass

from orchestrator.comparing import verdicts
from orchestrator.comparing.verdicts import ComparedCase
from orchestrator.measuring import intervals
from orchestrator.model.result import Interval
from tests.comparing.reports import case
from tests.reported import RN50_AMP

RUNS = 200
DRAWS = 1000
BOUND, GATE = 0.01, 0.03
SIZES = (3, 5, 7)
COUNTS = (1, 5, 20)
SLOWER = (0.0, 0.01, 0.02, 0.025, 0.03, 0.05)
DEVIATIONS = tuple(statistics.stdev(map(math.log, trials)) for trials in RN50_AMP.values())
SPREADS = {"equal": (0.01, 0.01), "1 to 3": (0.003, 0.01), "1 to 9": (0.002, 0.0185)}
Noise = Callable[[random.Random], float]


def normal(chance: random.Random) -> float:
    """A normal deviate."""
    return chance.gauss(0, 1)


def heavy(chance: random.Random) -> float:
    """Student's t with 3 degrees of freedom."""
    return chance.gauss(0, 1) / math.sqrt(sum(chance.gauss(0, 1) ** 2 for _ in range(3)) / 3)


def skewed(chance: random.Random) -> float:
    """An exponential tail on the slow side, with a median of 0."""
    return math.log(2) - chance.expovariate(1)


def outlier(chance: random.Random) -> float:
    """Normal, but one trial in ten is slow by ten standard deviations; with a median of 0."""
    value = chance.gauss(0, 1) + 0.1397  # the median of what is drawn here is 0
    return value - 10 if chance.random() < 0.1 else value


def wide(chance: random.Random) -> float:
    """Normal, with three times the spread."""
    return 3 * normal(chance)


NOISES: dict[str, Noise] = {"normal": normal, "t3": heavy, "skewed": skewed, "outlier": outlier}


def draw(
    chance: random.Random, noise: Noise, deviation: float, size: int, factor: float = 1.0
) -> tuple[float, ...]:
    """Trials around ``factor``, whose logarithms have the noise times the deviation."""
    return tuple(factor * math.exp(deviation * noise(chance)) for _ in range(size))


@dataclass(frozen=True, slots=True)
class Shares:
    """Of simulated comparisons, by what was found.

    Args:
        any_different: those with a case that is called different.
        different, same: of all cases.
        passed, failed: comparisons that the gate passes and fails; it cannot tell of the others.
        plain: comparisons that would fail if the gate took each case's own interval.
        one_failed, one_plain: cases that fail, and would.
    """

    any_different: float
    different: float
    same: float
    passed: float
    failed: float
    one_failed: float
    plain: float
    one_plain: float


def simulate(noise: Noise, size: int, count: int, slower: float, runs: int = RUNS) -> Shares:
    """Compare pairs of sweeps of ``count`` cases, all slower by a true difference in the second.

    Args:
        size: trials of each case in each sweep.
    """
    chance = random.Random(f"{noise.__name__} {size} {count} {slower}")
    found = []
    for _ in range(runs):
        cases = []
        for number in range(count):
            place = number if count > 1 else chance.randrange(len(DEVIATIONS))
            deviation = DEVIATIONS[place % len(DEVIATIONS)]
            first = draw(chance, noise, deviation, size)
            second = draw(chance, noise, deviation, size, 1 - slower)
            cases.append((case(first), case(second)))
        found.append(verdicts.judge_cases(cases, BOUND, GATE))
    kinds = [verdict.verdict for whole in found for verdict in whole]
    return Shares(
        any_different=_share("different" in {one.verdict for one in whole} for whole in found),
        different=_share(kind == "different" for kind in kinds),
        same=_share(kind == "same" for kind in kinds),
        passed=_share({one.gate for one in whole} == {"passed"} for whole in found),
        failed=_share("slower" in {one.gate for one in whole} for whole in found),
        plain=_share(any(map(_is_slower, whole)) for whole in found),
        one_failed=_share(one.gate == "slower" for whole in found for one in whole),
        one_plain=_share(_is_slower(one) for whole in found for one in whole),
    )


def _is_slower(verdict: ComparedCase) -> bool:
    return verdict.interval is not None and verdict.interval.high < -GATE


def _share(found: Iterator[bool]) -> float:
    return statistics.fmean(found)


def cover(
    rule: Callable[[Sequence[float], Sequence[float]], Interval | None],
    sizes: tuple[int, int],
    *,
    draws: int = DRAWS,
) -> dict[tuple[str, str], tuple[float, float]]:
    """By noise and spreads: what an interval of a quotient of 1 claims on average, and covers."""
    found = {}
    for name, noise in NOISES.items():
        for spreads, (mine, theirs) in SPREADS.items():
            chance = random.Random(f"{name} {spreads} {sizes}")
            given = []
            for _ in range(draws):
                ours = draw(chance, noise, mine, sizes[0])
                given.append(rule(ours, draw(chance, noise, theirs, sizes[1])))
            known = [interval for interval in given if interval is not None]
            held = [interval.low <= 1 <= interval.high for interval in known]
            claims = statistics.fmean(interval.coverage for interval in known)
            found[name, spreads] = claims, _share(iter(held))
    return found


def of_comparison(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """The interval that `compare` prints, as one of the quotient."""
    (verdict,) = verdicts.judge_cases([(case(theirs), case(ours))], BOUND)
    found = verdict.interval
    return found and Interval(1 + found.low, 1 + found.high, found.coverage)


def of_medians(draws: int = DRAWS) -> Iterator[tuple[int, float, float]]:
    """For 3 to 9 trials: what the interval of a median claims, and covers over all noises."""
    for size in range(3, 10):
        held = []
        for name, noise in NOISES.items():
            chance = random.Random(f"{name} {size}")
            for _ in range(draws):
                interval = intervals.of_median(draw(chance, noise, 0.01, size))
                assert interval is not None
                claims = interval.coverage
                held.append(interval.low <= 1 <= interval.high)
        yield size, claims, _share(iter(held))


def tell(
    size: int, deviation: float, slower: float, *, runs: int = RUNS
) -> tuple[float, float, float]:
    """Simulate cases that are undecided after ``size`` trials.

    Returns three shares: cases for which a number of further trials is named, and of those, cases
    that the lowest and the highest named number decide.
    """
    chance = random.Random(f"{size} {deviation} {slower}")
    unknown = named = 0
    told = [0, 0]
    for _ in range(runs):
        first = draw(chance, normal, deviation, size)
        second = draw(chance, normal, deviation, size, 1 - slower)
        verdict = _judge(first, second)
        unknown += verdict.verdict == "unknown"
        if verdict.more_trials is None:
            continue
        named += 1
        for place, more in enumerate(verdict.more_trials):
            further = draw(chance, normal, deviation, more)
            others = draw(chance, normal, deviation, more, 1 - slower)
            told[place] += _judge(first + further, second + others).verdict != "unknown"
    return named / max(unknown, 1), told[0] / max(named, 1), told[1] / max(named, 1)


def _judge(first: tuple[float, ...], second: tuple[float, ...]) -> ComparedCase:
    (verdict,) = verdicts.judge_cases([(case(first), case(second))], BOUND)
    return verdict


def _verdicts() -> Iterator[str]:
    yield f"All cases slower by a true difference; bound {BOUND:.0%}, gate {GATE:.0%}"
    yield f"{'':<24}{'different':>23}{'same':>9}{'the gate':>18}{'plain interval: fails':>27}"
    head = ("any case", "a case", "a case", "passes", "fails", "a case", "any case", "a case")
    yield f"{'noise':<8}{'trials':>6}{'cases':>6}" + "".join(f"{one:>9}" for one in ("true", *head))
    settings = [("normal", size) for size in SIZES] + [(name, 5) for name in NOISES][1:]
    for name, size in settings:
        for count in COUNTS:
            for slower in SLOWER:
                found = simulate(NOISES[name], size, count, slower)
                shown = "".join(f"{share:>9.1%}" for share in astuple(found))
                yield f"{name:<8}{size:>6}{count:>6}{slower:>9.1%}{shown}"


def _wide() -> Iterator[str]:
    yield "The same with spreads three times as wide, 20 cases of 5 trials: the gate"
    yield f"{'true':>6}{'passes':>9}{'fails':>9}{'plain':>9}"
    for slower in SLOWER:
        found = simulate(wide, 5, 20, slower)
        yield f"{slower:>6.1%}{found.passed:>9.1%}{found.failed:>9.1%}{found.plain:>9.1%}"


def _quotients() -> Iterator[str]:
    sizes = [(size, size) for size in range(3, 10)] + [(3, 9), (9, 3), (5, 9), (9, 5), (30, 30)]
    for title, rule in (("compare", of_comparison), ("speedup", intervals.of_quotient)):
        yield f"What an interval of a quotient covers: {title}"
        head = ("claims", *NOISES, "least", "where")
        yield f"{'trials':<8}" + "".join(f"{one:>9}" for one in head)
        for pair in sizes[:-1] if title == "compare" else sizes:
            found = cover(rule, pair)
            by_noise = {
                name: min(held for (noise, _), (_, held) in found.items() if noise == name)
                for name in NOISES
            }
            worst = min(found, key=lambda one: found[one][1])
            claims = statistics.fmean(claim for claim, _ in found.values())
            shares = (claims, *by_noise.values(), found[worst][1])
            shown = "".join(f"{share:>9.1%}" for share in shares)
            yield f"{f'{pair[0]}, {pair[1]}':<8}{shown}   {worst[0]}, spreads {worst[1]}"
        yield ""


def _medians() -> Iterator[str]:
    yield f"What the interval of a median covers\n{'trials':<8}{'claims':>9}{'covers':>9}"
    for size, claims, held in of_medians():
        yield f"{size:<8}{claims:>9.1%}{held:>9.1%}"


def _more() -> Iterator[str]:
    yield "Of unknown cases: how many name a number of further trials, and of these how many are"
    yield "told by the lowest and by the highest of it"
    yield f"{'trials':<8}{'spread':>8}{'true':>7}{'named':>9}{'lowest':>9}{'highest':>9}"
    for size in (3, 5):
        for deviation in (0.005, 0.01, 0.0185):
            for slower in (0.0, 0.03, 0.05):
                named, low, high = tell(size, deviation, slower)
                shares = f"{named:>9.1%}{low:>9.1%}{high:>9.1%}"
                yield f"{size:<8}{deviation:>8.2%}{slower:>7.1%}{shares}"


if __name__ == "__main__":
    for part in (_verdicts, _wide, _quotients, _medians, _more):
        for line in part():
            print(line, flush=True)
        print()
