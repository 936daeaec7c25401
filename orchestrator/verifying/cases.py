"""Medians, intervals, speedups and marks of cases, from their derived trials."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median

from orchestrator.verifying.differences import at
from orchestrator.verifying.trials import DerivedTrial, global_batch

COVERAGE = 0.95
WIDE_SPREAD = 0.10
PLAUSIBLE_EFFICIENCY = 1.05
ALIKE = (
    *("image", "kernel", "driver", "torch", "cpus"),
    *("arch", "num_classes", "image_size", "memory_format", "data_backend"),
)
"""What must be the same in a case and in the 1x1 case that its speedup is taken over."""


@dataclass(slots=True)
class CaseTrial:
    """A trial of a case: its plan, its record, and what was derived.

    Args:
        state: as it follows from the logs; as it was recorded where logs do not tell.
        transport: ``-`` where no log names one.
    """

    plan: Mapping[str, object]
    name: str
    state: str
    derived: DerivedTrial
    outcome: Mapping[str, object]
    transport: str
    nodes: list[str]
    sha256: str | None

    def exclude(self, reason: str) -> None:
        """Make it invalid if it is valid, by this reason."""
        self.derived.reasons.append(reason)
        self.state = "invalid" if self.state == "valid" else self.state

    @property
    def provenance(self) -> Mapping[str, object]:
        """What its outcome says of the circumstances."""
        found = at(self.outcome, "provenance")
        return found if isinstance(found, Mapping) else {}


@dataclass(slots=True)
class DerivedCase:
    """A case with everything that follows from its trials."""

    case: Mapping[str, object]
    trials: list[CaseTrial]
    numbers: dict[str, object] = field(default_factory=dict)
    speedup: float | None = None
    efficiency: float | None = None
    speedup_interval: dict[str, object] | None = None
    marks: list[str] = field(default_factory=list)

    @property
    def valid(self) -> list[CaseTrial]:
        """The trials that count."""
        return [trial for trial in self.trials if trial.state == "valid"]

    @property
    def median(self) -> float | None:
        """Of its valid trials."""
        return median(self.values) if self.values else None

    @property
    def values(self) -> list[float]:
        """Throughputs of the valid trials, sorted."""
        found = [trial.derived.throughput for trial in self.valid]
        return sorted(value for value in found if value is not None)

    @property
    def ranks(self) -> int:
        """Of its gang."""
        return int(str(self.case["nodes"])) * int(str(self.case["gpus_per_node"]))

    @property
    def settings(self) -> str:
        """Equal for cases that differ in their placement only."""
        return str({key: it for key, it in self.case.items() if key not in _PLACEMENT})

    @property
    def token(self) -> str:
        """Such as ``4n8g``."""
        return f"{self.case['nodes']}n{self.case['gpus_per_node']}g"


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cases of a sweep, and the trials of its canary, which is outside of the medians."""

    cases: list[DerivedCase]
    canary: list[CaseTrial]


_PLACEMENT = ("nodes", "gpus_per_node")


def grouped(trials: Sequence[CaseTrial]) -> list[DerivedCase]:
    """The cases in the order of the plan, with numbers, speedups and marks."""
    cases: dict[str, DerivedCase] = {}
    for trial in trials:
        case = trial.plan["case"]
        assert isinstance(case, Mapping)
        cases.setdefault(str(case), DerivedCase(case, [])).trials.append(trial)
    found = list(cases.values())
    for case in found:
        case.numbers = _numbers(case)
        case.marks = _marks(case)
    for case in found:
        _speed_up(case, found)
    return found


def document(case: DerivedCase) -> dict[str, object]:
    """What results.json must say of a case, as far as it can be derived."""
    names = ("valid", "invalid")
    known = {trial.transport for trial in case.valid or case.trials if trial.state in names}
    order = [trial.transport for trial in case.valid or case.trials]
    said = [it for it in dict.fromkeys(order) if it in known and it != "-"]
    return {
        "case": _described(case.case),
        "trials_valid": len(case.values),
        **case.numbers,
        "speedup": case.speedup,
        "speedup_interval": case.speedup_interval,
        "efficiency": case.efficiency,
        "latency_s": _middle([trial.derived.latency_s for trial in case.valid]),
        "memory_mib": max(_known(trial.derived.memory_mib for trial in case.valid), default=None),
        "transport": " or ".join(said) or None,
        "trials": [_trial(trial) for trial in case.trials],
    }


def canary(trials: Sequence[CaseTrial]) -> dict[str, object]:
    """What results.json must say of a canary."""
    values = sorted(
        trial.derived.throughput
        for trial in trials
        if trial.state == "valid" and trial.derived.throughput is not None
    )
    drift = (values[-1] - values[0]) / median(values) if len(values) > 1 else None
    documents = [{"place": trial.plan.get("canary"), **_trial(trial)} for trial in trials]
    return {"drift": drift, "trials": documents}


def width(case: DerivedCase) -> float | None:
    """Of a case's interval, as a share of its median; None of fewer than two trials."""
    interval = _numbers(case).get("interval")
    low, high, middle = at(interval, "low"), at(interval, "high"), case.median
    if not isinstance(low, float) or not isinstance(high, float) or not middle:
        return None
    return (high - low) / middle


def disagreeing(trials: Sequence[CaseTrial]) -> list[CaseTrial]:
    """Valid trials that ran in other circumstances than the first valid one of their case."""
    valid = [trial for trial in trials if trial.state == "valid" and trial.derived.throughput]
    return [trial for trial in valid if _circumstances(trial) != _circumstances(valid[0])]


def _circumstances(trial: CaseTrial) -> tuple[object, ...]:
    labels = trial.transport.split("; ")
    for node in trial.nodes:
        labels = [label.removeprefix(f"{node}: ") for label in labels]
    return sorted(trial.provenance.items()), sorted(labels)


def _numbers(case: DerivedCase) -> dict[str, object]:
    values = case.values
    if not values:
        return dict.fromkeys(("median", "mean", "min", "max", "spread", "interval"))
    middle, several = median(values), len(values) > 1
    return {
        "median": middle,
        "mean": sum(values) / len(values),
        "min": values[0],
        "max": values[-1],
        "spread": (values[-1] - values[0]) / middle if several else None,
        "interval": _interval(values, COVERAGE) if several else None,
    }


def _interval(values: Sequence[float], least: float) -> dict[str, object]:
    """The narrowest pair of order statistics that covers the median so surely, else the widest."""
    count = len(values)
    inner = [k for k in range(count // 2) if _covered(count, k) >= least]
    k = max(inner, default=0)
    return {"low": values[k], "high": values[-1 - k], "coverage": _covered(count, k)}


def _covered(count: int, k: int) -> float:
    """With what probability the median lies between the values k from either end."""
    outside = sum(comb(count, below) for below in range(k + 1))
    return float(1 - 2 * outside / 2**count)


def _speed_up(case: DerivedCase, cases: Sequence[DerivedCase]) -> None:
    alone = [it for it in cases if it.ranks == 1 and it.values and it.settings == case.settings]
    middle = case.median
    if middle is None or not alone or alone[-1].median is None:
        return
    here, there = case.valid[0].provenance, alone[-1].valid[0].provenance
    if any(here[key] != there[key] for key in ALIKE if key in here and key in there):
        case.marks.append("BASELINE-DIFFERS")
        return
    case.speedup = middle / alone[-1].median
    if case is not alone[-1]:
        case.speedup_interval = _between(case.values, alone[-1].values)
    case.efficiency = case.speedup / case.ranks
    if case.efficiency > PLAUSIBLE_EFFICIENCY:
        case.marks.append("IMPLAUSIBLE")


def _between(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, object] | None:
    """The interval of a quotient of medians; each covers with the root of 95 % where it can."""
    if len(ours) < 2 or len(theirs) < 2:
        return None
    (a, b, sure), (c, d, also_sure) = (
        (float(str(it["low"])), float(str(it["high"])), float(str(it["coverage"])))
        for it in (_interval(ours, COVERAGE**0.5), _interval(theirs, COVERAGE**0.5))
    )
    return {"low": a / d, "high": b / c, "coverage": sure * also_sure}


def _marks(case: DerivedCase) -> list[str]:
    spread = case.numbers.get("spread")
    sets = {tuple(sorted(trial.nodes)) for trial in case.valid if trial.nodes}
    wide = isinstance(spread, float) and spread > WIDE_SPREAD
    return ["WIDE-SPREAD"] * wide + ["NODE-SETS"] * (len(sets) > 1)


def _described(case: Mapping[str, object]) -> dict[str, object]:
    nodes, gpus = int(str(case["nodes"])), int(str(case["gpus_per_node"]))
    params = case.get("params")
    pairs = params if isinstance(params, list) else []
    return {
        **{key: value for key, value in case.items() if key != "params"},
        "placement": f"{nodes}x{gpus}",
        "world_size": nodes * gpus,
        "global_batch_size": global_batch(case),
        **{f"params.{key}": value for key, value in pairs},
    }


def _trial(trial: CaseTrial) -> dict[str, object]:
    """What results.json must say of a trial."""
    found: dict[str, object] = {
        "trial": trial.name,
        "repeat": trial.plan.get("repeat"),
        "attempt": trial.outcome.get("attempt", 0),
        "state": trial.state,
    }
    if trial.state in ("valid", "invalid"):
        found |= {"nodes": trial.nodes, "sha256": trial.sha256}
        found |= {"log": f"logs/{trial.plan.get('log')}", "provenance": dict(trial.provenance)}
    if trial.state == "valid":
        found |= {
            "throughput": trial.derived.throughput,
            "rate_mean": trial.derived.rate_mean,
            "latency_s": trial.derived.latency_s,
            "memory_mib": trial.derived.memory_mib,
            "transport": None if trial.transport == "-" else trial.transport,
            "lines": trial.derived.lines,
            "problems": [],
        }
    elif trial.state not in ("invalid",):
        found |= {"throughput": None}
    return found


def _middle(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return median(known) if known else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
