"""What ``until_interval`` saves, and what is marked by chance.

    python -m tests.benchmarks.repeats

By simulation. Every number but those of the last table is drawn from the spreads that DLPerf's
documents print (tests/samples/seed-trials): each simulated case has the standard deviation of one
of the nine printed cases, and the shape of all their trials together, each set off by its own
case's mean and deviation, smoothed a little so that no two draws are equal. Pseudo-random with a
fixed seed: it prints the same again.
"""

import csv
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev, stdev

from orchestrator.measuring import medians, settling
from orchestrator.model.experiment import Repeats
from orchestrator.model.result import Interval, Statistics
from tests import ROOT

TRIALS = ROOT / "tests" / "samples" / "seed-trials" / "trials.csv"
RUNS, SMOOTH, NEAR = 2000, 0.3, 0.005
FIXED = (*range(3, 13), 15, 20, 25, 30)
ADAPTIVE = tuple(
    Repeats(min=least, max=most, until_interval="1%")
    for least, most in ((3, 9), (3, 20), (5, 9), (6, 9), (6, 20))
)
Rule = Callable[[Sequence[float]], Statistics]


@dataclass(frozen=True, slots=True)
class Shape:
    """How trials scatter: a case is its deviation times this, around a median of 1."""

    residuals: tuple[float, ...]
    deviations: tuple[float, ...]
    middle: float

    def draws(self, deviation: float, chance: random.Random, count: int) -> list[float]:
        """So many trials of a case."""
        return [
            1 + deviation * (chance.choice(self.residuals) + chance.gauss(0, SMOOTH) - self.middle)
            for _ in range(count)
        ]


@dataclass(frozen=True, slots=True)
class Yield:
    """What a rule gave, over all simulated cases.

    Args:
        trials: of a case, on average.
        covers: share of the intervals that hold the true median.
        near: share of the medians within 0.5 % of the true one.
        narrow: share of the intervals of at most 1 % of the median.
        worst: ``covers`` of the case where it is least.
    """

    trials: float
    covers: float
    near: float
    narrow: float
    worst: float

    def line(self, name: str) -> str:
        """It as a row."""
        shares = (self.covers, self.worst, self.near, self.narrow)
        return f"{name:<22}{self.trials:>7.2f}" + "".join(f"{share:>9.1%}" for share in shares)


def shape() -> Shape:
    """The printed trials, each set off by the mean and deviation of its case."""
    cases: dict[tuple[str, str], list[float]] = {}
    with TRIALS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cases.setdefault((row["seed"], row["placement"]), []).append(float(row["throughput"]))
    residuals = [
        (value - fmean(values)) / pstdev(values) for values in cases.values() for value in values
    ]
    widened = math.sqrt(fmean(value * value for value in residuals) + SMOOTH**2)
    low, high = -10.0, 10.0
    while high - low > 1e-12:  # the median of the smoothed residuals
        middle = (low + high) / 2
        below = fmean(
            math.erfc((value - middle) / SMOOTH / math.sqrt(2)) / 2 for value in residuals
        )
        low, high = (middle, high) if below < 0.5 else (low, middle)
    deviations = tuple(stdev(values) / fmean(values) / widened for values in cases.values())
    return Shape(tuple(residuals), deviations, middle)


def until(often: Repeats) -> Rule:
    """As a sweep does: trials until the interval is narrow, or there are ``max``."""

    def measured(values: Sequence[float]) -> Statistics:
        for count in range(often.min, often.max):
            if (totals := settling.narrow(values[:count], often)) is not None:
                return totals
        return medians.summary(values[: often.max])

    return measured


def fixed(count: int) -> Rule:
    """A plain number of trials."""
    return lambda values: medians.summary(values[:count])


def simulated(rule: Rule, scatter: Shape, runs: int = RUNS) -> Yield:
    """The rule over many draws of every case; every rule sees the same draws."""
    chance, found = random.Random(12), list[Yield]()
    for deviation in scatter.deviations:
        totals = [rule(scatter.draws(deviation, chance, max(FIXED))) for _ in range(runs)]
        covers = fmean(holds(one.interval, 1.0) for one in totals)
        widths = [settling.width(one) or 0.0 for one in totals]
        found.append(
            Yield(
                fmean(one.n for one in totals),
                covers,
                fmean(abs(one.median - 1) <= NEAR for one in totals),
                fmean(width <= 0.01 for width in widths),
                covers,
            )
        )
    return Yield(
        trials=fmean(one.trials for one in found),
        covers=fmean(one.covers for one in found),
        near=fmean(one.near for one in found),
        narrow=fmean(one.narrow for one in found),
        worst=min(one.covers for one in found),
    )


def holds(interval: Interval | None, value: float) -> bool:
    """Whether the interval holds the value."""
    return interval is not None and interval.low <= value <= interval.high


def equal(plain: dict[int, Yield], found: Yield) -> str:
    """The smallest plain number that covers as surely and has as many narrow intervals."""
    fits = (
        str(count)
        for count, one in plain.items()
        if one.covers >= found.covers and one.narrow >= found.narrow
    )
    return next(fits, f"more than {max(plain)}")


def print_repeats(scatter: Shape) -> None:
    """Both kinds of rules, and which plain number does as well as each other one."""
    plain = {count: simulated(fixed(count), scatter) for count in FIXED}
    print(f"{'rule':<22}{'trials':>7}{'covers':>9}{'worst':>9}{'near':>9}{'narrow':>9}")
    for count, one in plain.items():
        print(one.line(str(count)))
    for often in ADAPTIVE:
        one = simulated(until(often), scatter)
        name = f"{often.min} to {often.max} until {often.until_interval}"
        print(f"{one.line(name)}   as sure and as narrow: {equal(plain, one)}")


def print_marks() -> None:
    """How many cases are marked by chance, whose trials are independent and normal."""
    print(f"\n{'by chance: trials':<22}{'OUTLIER':>9}")
    chance = random.Random(12)
    for count in (5, 7, 9, 15):
        cases = [[chance.gauss(100, 1) for _ in range(count)] for _ in range(RUNS)]
        outliers = fmean(bool(medians.find_outliers(values)) for values in cases)
        print(f"{count:<22}{outliers:>9.1%}")


def main() -> None:
    """Print the tables."""
    scatter = shape()
    shown = ", ".join(f"{deviation:.2%}" for deviation in scatter.deviations)
    print(f"standard deviations: {shown}; {RUNS} runs of each case\n")
    print_repeats(scatter)
    print_marks()


if __name__ == "__main__":
    main()
