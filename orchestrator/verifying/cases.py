"""Medians, intervals, speedups and marks of cases, from their derived trials."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from statistics import median

from orchestrator import nodeset
from orchestrator.verifying import intervals, scatter
from orchestrator.verifying.damages import Reason
from orchestrator.verifying.differences import at, number, text
from orchestrator.verifying.machines import Machines
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.trials import DerivedTrial

WIDE_SPREAD = 0.10
PLAUSIBLE_EFFICIENCY = 1.05
CHANGED = frozenset({"LOG-CHANGED", "MISSING", "OUTCOME-CHANGED"})
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
    machines: Machines = field(default_factory=Machines)
    marks: list[Mark] = field(default_factory=list)

    def exclude(self, reason: Reason) -> None:
        """Make it invalid if it is valid, by this reason."""
        self.derived.reasons.append(reason)
        self.state = "invalid" if self.state == "valid" else self.state

    @property
    def has_changed(self) -> bool:
        """Whether what it stands on is gone, or is not what it was after the run."""
        return not CHANGED.isdisjoint(code for code, _ in self.derived.reasons)

    @property
    def beside(self) -> list[str]:
        """Trials that ran on other nodes meanwhile, as its outcome says."""
        found = self.outcome.get("beside")
        return [text(name) for name in found] if isinstance(found, list) else []

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
    marks: list[Mark] = field(default_factory=list)
    settled: bool | None = None

    @property
    def valid(self) -> list[CaseTrial]:
        """The trials that count."""
        return [trial for trial in self.trials if trial.state == "valid"]

    @property
    def median(self) -> float | None:
        """Of its valid trials."""
        return median(self.values) if self.values else None

    @property
    def in_order(self) -> list[float]:
        """Throughputs of the valid trials."""
        found = [trial.derived.throughput for trial in self.valid]
        return [value for value in found if value is not None]

    @property
    def values(self) -> list[float]:
        """The same, sorted."""
        return sorted(self.in_order)

    @property
    def planned(self) -> int:
        """How many trials it should have; one that has settled needs no more than it has."""
        return sum(trial.state != "not-needed" for trial in self.trials)

    @property
    def energies(self) -> list[tuple[float, float, str]]:
        """Of the valid trials, where they are known."""
        return [trial.machines.energy for trial in self.valid if trial.machines.energy]

    @property
    def transport(self) -> str:
        """What its valid trials ran over, else any of them; ``-`` where nothing tells it."""
        judged = [it for it in self.valid or self.trials if it.state in ("valid", "invalid")]
        known = dict.fromkeys(trial.transport for trial in judged if trial.transport != "-")
        return " or ".join(known) or "-"

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


_PLACEMENT = ("nodes", "gpus_per_node")


def grouped(trials: Sequence[CaseTrial], often: object = None) -> list[DerivedCase]:
    """The cases in the order of the plan, with numbers, speedups and marks.

    Args:
        often: ``method.repeats`` of the plan.
    """
    cases: dict[str, DerivedCase] = {}
    for trial in trials:
        case = trial.plan["case"]
        assert isinstance(case, Mapping)
        cases.setdefault(str(case), DerivedCase(case, [])).trials.append(trial)
    found = list(cases.values())
    for case in found:
        case.numbers = _numbers(case)
        for place, mark in scatter.outliers(case.in_order).items():
            case.valid[place].marks.append(mark)
        case.marks += [*_marks(case), *_settled(case, often)]
    for case in found:
        _speed_up(case, found)
    return found


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
        "mean": fsum(values) / len(values),
        "min": values[0],
        "max": values[-1],
        "spread": (values[-1] - values[0]) / middle if several else None,
        "interval": intervals.of_median(values) if several else None,
    }


def _speed_up(case: DerivedCase, cases: Sequence[DerivedCase]) -> None:
    alone = [it for it in cases if it.ranks == 1 and it.values and it.settings == case.settings]
    middle = case.median
    if middle is None or not alone or alone[-1].median is None:
        return
    here, there = case.valid[0].provenance, alone[-1].valid[0].provenance
    differs = [
        f"{key} is {here[key]}, in the 1x1 case {there[key]}"
        for key in ALIKE
        if key in here and key in there and here[key] != there[key]
    ]
    if differs:
        case.marks.append(Mark("BASELINE-DIFFERS", tuple(differs)))
        return
    case.speedup = middle / alone[-1].median
    if case is not alone[-1]:
        case.speedup_interval = intervals.between(case.values, alone[-1].values)
    case.efficiency = case.speedup / case.ranks
    if case.efficiency > PLAUSIBLE_EFFICIENCY:
        facts = (f"efficiency {case.efficiency:.3f}", f"{case.ranks} ranks", "1x1")
        case.marks.append(Mark("IMPLAUSIBLE", facts))


def _marks(case: DerivedCase) -> Iterator[Mark]:
    """Those of all trials together; how often one of its trials is marked is told by these."""
    spread = case.numbers.get("spread")
    if isinstance(spread, float) and spread > WIDE_SPREAD:
        yield Mark("WIDE-SPREAD", (f"{spread:.1%}",))
    sets = dict.fromkeys(nodeset.fold(sorted(it.nodes)) for it in case.valid if it.nodes)
    if len(sets) > 1:
        yield Mark("NODE-SETS", tuple(sets))
    packed = [trial for trial in case.valid if trial.beside]
    if packed:
        tokens = {name.partition("-")[0] for trial in packed for name in trial.beside}
        yield Mark("BESIDE", (f"{len(packed)} trial", ", ".join(sorted(tokens))))


def _settled(case: DerivedCase, often: object) -> Iterator[Mark]:
    """Whether its interval is as narrow as was asked for, if anything was."""
    if not isinstance(often, Mapping):
        return
    wide, until = width(case), text(often.get("until_interval"))
    case.settled = wide is not None and wide <= share(until)
    case.settled = case.settled and len(case.values) >= (number(often.get("min")) or 0)
    if case.settled or any(trial.state == "planned" for trial in case.trials):
        return
    shown = () if wide is None else (f"{wide:.2%}",)
    yield Mark("UNSETTLED", (f"{len(case.values)} valid trial", *shown, until))


def share(percent: str) -> float:
    """Of 1, where it is written in percent."""
    return float(percent.removesuffix("%") or 0) / 100
