"""How often `compare` is wrong, and what it finds, at the spreads of DLPerf's own trials.

``python -m tests.benchmarks.comparisons`` prints both; the same numbers whenever it runs.
"""

import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from orchestrator.comparing import sizes, verdicts
from orchestrator.comparing.verdicts import Samples, Verdict
from tests.seeds import RN50_AMP

PAIRS = 200
EQUAL = {"normal": 1000, "skewed": 1000, "resampled": 200}  # ties are counted one by one
SIZES = (5, 7, 10)
SLOWER = 0.97
BOUND = 0.01
NORMAL = statistics.NormalDist()
Noise = Callable[[random.Random, tuple[float, ...]], float]


def normal(chance: random.Random, trials: tuple[float, ...]) -> float:
    """A trial whose logarithm is normal, with the standard deviation of the case's own."""
    middle, deviation = _logarithms(trials)
    return math.exp(chance.gauss(middle, deviation))


def skewed(chance: random.Random, trials: tuple[float, ...]) -> float:
    """The same, but one trial in ten is slow by up to 5 % more, as 1x1's second is."""
    slow = chance.uniform(0, 0.05) if chance.random() < 0.1 else 0.0
    return normal(chance, trials) * (1 - slow)


def resampled(chance: random.Random, trials: tuple[float, ...]) -> float:
    """One of the case's own five trials: ties everywhere."""
    return chance.choice(trials)


NOISES: dict[str, Noise] = {"normal": normal, "skewed": skewed, "resampled": resampled}


def simulated(
    noise: Noise, size: int, factors: Mapping[str, float], bound: float, pairs: int = PAIRS
) -> Iterator[tuple[Verdict, ...]]:
    """The verdicts on pairs of sweeps of all five cases.

    Args:
        factors: by which a case is faster in the second sweep; others are equal.
    """
    chance = random.Random(f"{noise.__name__} {size} {[*factors.values()]}")
    for _ in range(pairs):
        cases = []
        for case, trials in RN50_AMP.items():
            first = tuple(noise(chance, trials) for _ in range(size))
            factor = factors.get(case, 1.0)
            second = tuple(noise(chance, trials) * factor for _ in range(size))
            cases.append(Samples(first, second, bound))
        yield verdicts.judged(cases, 1 - SLOWER)


def false_alarms(noise: Noise, size: int, bound: float, pairs: int) -> int:
    """Of pairs of equal sweeps, how many have any case called different."""
    found = simulated(noise, size, {}, bound, pairs)
    return sum(any(verdict.kind == "different" for verdict in whole) for whole in found)


def found(
    noise: Noise, size: int, pairs: int = PAIRS, slower: Iterable[str] = RN50_AMP
) -> dict[str, tuple[int, int, int]]:
    """By case: pairs in which it is called different, the same, unknown.

    Args:
        slower: the cases that are 3 % slower in the second sweep.
    """
    whole = list(simulated(noise, size, dict.fromkeys(slower, SLOWER), BOUND, pairs))
    kinds = ("different", "same", "unknown")
    return {
        case: (counts[0], counts[1], counts[2])
        for number, case in enumerate(RN50_AMP)
        for counts in [[sum(v[number].kind == kind for v in whole) for kind in kinds]]
    }


def wrong_passes(noise: Noise, size: int, pairs: int = PAIRS) -> int:
    """Of pairs whose second sweep is just slower than 3 %, how many pass a gate of 3 % anywhere."""
    whole = simulated(noise, size, dict.fromkeys(RN50_AMP, SLOWER - 1e-6), BOUND, pairs)
    return sum(any(verdict.gate == "passed" for verdict in judged) for judged in whole)


@cache
def _logarithms(trials: tuple[float, ...]) -> tuple[float, float]:
    """Mean and standard deviation."""
    values = [math.log(value) for value in trials]
    return statistics.fmean(values), statistics.stdev(values)


def _alarms() -> Iterator[str]:
    yield f"False alarms: equal sweeps of {len(RN50_AMP)} cases, any of them called different"
    yield f"{'noise':<11}{'trials':>7}{'pairs':>7}{'no bound':>10}{'bound 1 %':>11}"
    for name, noise in NOISES.items():
        for size in SIZES:
            pairs = EQUAL[name]
            alone, bounded = (
                false_alarms(noise, size, bound, pairs) / pairs for bound in (0.0, BOUND)
            )
            yield f"{name:<11}{size:>7}{pairs:>7}{alone:>10.1%}{bounded:>11.1%}"


def ideal(trials: tuple[float, ...], size: int) -> float:
    """How often the best test of a case finds it 3 % slower: a normal one that is told the spread.

    No test can do better at its level of 5 %: others have to learn the spread from the trials.
    """
    shift = -math.log(SLOWER) / (_logarithms(trials)[1] * math.sqrt(2 / size))
    quantile = NORMAL.inv_cdf(1 - 0.05 / 2)
    return NORMAL.cdf(shift - quantile) + NORMAL.cdf(-shift - quantile)


def _detection() -> Iterator[str]:
    count = len(RN50_AMP)
    yield f"A case 3 % slower, of {count} compared together, bound 1 %: how often it is found"
    yield f"{'':<14}{'all are slower':^30}{'it alone':>12}{'best':>9}{'foreseen':>11}"
    heads = "".join(f"{f'{size} trials':>10}" for size in SIZES)
    yield f"{'case':<6}{'spread':>8}{heads}{'7 trials':>12}{'7':>9}{'for 80 %':>11}"
    by_size = {size: found(normal, size) for size in SIZES}
    for case, trials in RN50_AMP.items():
        spread = (max(trials) - min(trials)) / statistics.median(trials)
        shares = "".join(f"{by_size[size][case][0] / PAIRS:>10.1%}" for size in SIZES)
        alone = found(normal, 7, slower=[case])[case][0] / PAIRS
        foreseen = sizes.telling(_logarithms(trials)[1], -math.log(SLOWER), verdicts.DIFFERENT)
        best = f"{ideal(trials, 7):>9.1%}{f'{foreseen} trials':>11}"
        yield f"{case:<6}{spread:>8.1%}{shares}{alone:>12.1%}{best}"


def _gates() -> Iterator[str]:
    yield f"Wrong passes of --fail-if-slower 3% in {PAIRS} pairs that are slower by just that"
    for size in SIZES:
        yield f"{size:>2} trials: {wrong_passes(normal, size) / PAIRS:.1%}"


if __name__ == "__main__":
    for part in (_alarms, _detection, _gates):
        print("\n".join(part()), end="\n\n")
