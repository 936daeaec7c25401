"""The sides of a comparison, read from results.json, and the pairs of their cases."""

import hashlib
import json
import statistics
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from orchestrator.model.facts import JSON
from orchestrator.model.problem import Problem
from orchestrator.model.text import Scalar
from orchestrator.report import labels

ABSENT = "(none)"
# Fields that follow from other fields.
_DERIVED = frozenset({"placement", "world_size", "global_batch_size", "data_parallel"})


class Marked(BaseModel, frozen=True):
    """A part of results.json that may have marks; other fields are ignored."""

    marks: tuple[Problem, ...] = ()


class WrittenTrial(Marked, frozen=True):
    trial: str
    state: str
    throughput: Annotated[FiniteFloat, Field(gt=0)] | None = None
    nodes: tuple[str, ...] = ()
    transport: str | None = None
    sha256: str | None = None
    provenance: dict[str, str] = {}


class SideCase(Marked, frozen=True):
    """A case and its trials, in the order of their repeats."""

    case: dict[str, Scalar]
    name: str | None = None
    trials: tuple[WrittenTrial, ...] = ()

    @property
    def every_mark(self) -> tuple[Problem, ...]:
        """Return the case's marks, and marks of valid trials with other codes."""
        by_code = {mark.code: mark for trial in self.valid for mark in trial.marks}
        own = {mark.code for mark in self.marks}
        return (*self.marks, *(mark for code, mark in by_code.items() if code not in own))

    @property
    def valid(self) -> tuple[WrittenTrial, ...]:
        return tuple(trial for trial in self.trials if trial.state == "valid" and trial.throughput)

    @property
    def values(self) -> tuple[float, ...]:
        """Return the throughputs of valid trials, in samples per second."""
        return tuple(trial.throughput for trial in self.valid if trial.throughput)

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for trial in self.valid for node in trial.nodes)

    @property
    def provenance(self) -> Mapping[str, str]:
        """Return the provenance of the first valid trial, which all of them share."""
        return next((trial.provenance for trial in self.valid), {})


class Side(Marked, frozen=True):
    """One side of a comparison: a results.json, with the user's name for it as label."""

    label: str = ""
    version: Literal[1]
    source: str
    experiment: str = ""
    workload: str = ""
    unit: str
    cluster: str = ""
    image: str = ""
    image_digest: str = ""
    window: tuple[int, int] | None = None
    rule: str | None = None
    method: dict[str, object] | None = None
    gpus: tuple[str, ...] = ()
    shared_machine: bool = False
    topologies: dict[str, str] = {}
    canary: Marked | None = None
    environment: dict[str, dict[str, str]] = {}
    cases: tuple[SideCase, ...]

    @property
    def every_mark(self) -> tuple[Problem, ...]:
        return (*self.marks, *(self.canary.marks if self.canary else ()))

    @property
    def settings(self) -> dict[str, str]:
        topologies = sorted(set(self.topologies.values()))  # whatever their nodes are called
        digest = hashlib.sha256("\0".join(topologies).encode()).hexdigest()[:12]
        return {
            "playbook": self.experiment,
            "workload": self.workload,
            "image": self.image,
            "image digest": self.image_digest,
            "cluster": self.cluster,
            "rule": self.rule or "",
            "window": "-".join(map(str, self.window or ())),
            "GPU models": ", ".join(self.gpus),
            "nodes are one machine": "yes" if self.shared_machine else "no",
            "topology digest": digest if topologies else "",
            **{
                f"method.{name}": json.dumps(value)
                for name, value in (self.method or {}).items()
                if name not in ("window", "rule") and value is not None
            },
        }

    def name_case(self, case: SideCase) -> str:
        """Return placement, precision and batch of a case, and what else differs on this side."""
        varying = labels.differing(case.case, [other.case for other in self.cases])
        plain = [str(case.case.get(name, "?")) for name in ("placement", "precision")]
        return " ".join((*plain, f"b{case.case.get('micro_batch_size', '?')}", *varying))


def measured(document: JSON, label: str) -> Side:
    """Return the side in a results.json.

    Raises:
        ValueError: it is no results.json of this version.
    """
    try:
        side = Side.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    return side.model_copy(update={"label": label})


class Pairs(NamedTuple):
    """The cases of both sides.

    ``varied`` has the parameters with one value on each side, and not the same one. They are the
    subject of the comparison, so cases are paired regardless of them.
    """

    both: tuple[tuple[SideCase, SideCase], ...]
    only_first: tuple[SideCase, ...]
    only_second: tuple[SideCase, ...]
    varied: Mapping[str, tuple[str, str]]


def pair_cases(first: Side, second: Side) -> Pairs:
    """Pair the cases of two sides, in the order of the first."""
    varied = {}
    for name in dict.fromkeys(name for it in (*first.cases, *second.cases) for name in it.case):
        here, there = (
            {str(it.case.get(name, ABSENT)) for it in of.cases} for of in (first, second)
        )
        if name.startswith("params.") and len(here) == len(there) == 1 and here != there:
            varied[name] = (here.pop(), there.pop())
    ignored = _DERIVED | varied.keys()

    def key(case: SideCase) -> frozenset[tuple[str, Scalar]]:
        return frozenset((name, value) for name, value in case.case.items() if name not in ignored)

    theirs = {key(case): case for case in second.cases}
    both, only_first = [], []
    for case in first.cases:
        other = theirs.pop(key(case), None)
        if other is None:
            only_first.append(case)
        else:
            both.append((case, other))
    return Pairs(tuple(both), tuple(only_first), tuple(theirs.values()), varied)
