"""Sides of comparisons, made as sweeps make them: by results.json of reports on typed values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator import report
from orchestrator.comparing import sides
from orchestrator.comparing.sides import Side, SideCase, WrittenTrial
from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from orchestrator.model.result import Result
from tests.reported import LOG, results, sweep

DRIVER = {"image": "sha256:1", "tasks": "t1", "driver": "440.33"}
TRIALS = (100.0, 100.1, 99.9, 100.05, 99.95, 100.02, 99.98)
SLOWER = tuple(value * 0.95 for value in TRIALS)


@dataclass(frozen=True)
class Told:
    """A sweep: its trials by placement, and what else its report contains."""

    values: Mapping[str, Sequence[float | None]]
    source: str = "sweep-a"
    provenance: Mapping[str, str] = field(default_factory=lambda: DRIVER)
    nodes: tuple[str, ...] = ("vs001", "vs002")
    params: tuple[tuple[str, str], ...] = ()
    marks: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    report: Mapping[str, object] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, JSON]:
        """Return the results.json of the sweep."""
        found = tuple(self._placed(one) for one in results(self.values, params=self.params))
        said = sweep(found, source=self.source, **self.report)
        return report.document(said)

    def _placed(self, one: Result) -> Result:
        trials = tuple(
            replace(
                trial,
                provenance=self.provenance,
                nodes=self.nodes,
                path="log",
                log=replace(LOG, sha256=f"{self.source} {trial.trial}"),
            )
            for trial in one.trials
        )
        return replace(one, trials=trials, marks=self.marks.get(one.case.placement, one.marks))


def side(values: Mapping[str, Sequence[float | None]], label: str = "A", **more: object) -> Side:
    """Return the side of such a sweep."""
    told = Told(values, source=f"sweep-{label}", **more)  # type: ignore[arg-type] # passed on
    return sides.measured(told.document, label)


def case(values: Sequence[float], logs: str = "") -> SideCase:
    """Return a case with these valid trials.

    Args:
        logs: beginning of the digests of their logs; empty: they have none.
    """
    trials = tuple(
        WrittenTrial(
            trial=str(place),
            state="valid",
            throughput=value,
            nodes=("n1",),
            sha256=f"{logs}{place}" if logs else None,
        )
        for place, value in enumerate(values)
    )
    return SideCase(case={}, trials=trials)
