"""One side of a comparison, as its results.json has it."""

import hashlib
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from orchestrator.model.facts import JSON
from orchestrator.model.text import Scalar

VERSION = 1
Throughput = Annotated[FiniteFloat, Field(gt=0)]


class _Part(BaseModel):
    """A part of results.json, of which only some fields are read."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Mark(_Part):
    """A code and its message about a trial or case that counts."""

    code: str
    message: str = ""


class PublishedRow(_Part):
    """A result that somebody published for a case."""

    suite: str = ""
    framework: str
    throughput: Throughput
    source: str = ""
    hardware: str = ""


class WrittenTrial(_Part):
    """A trial as results.json has it."""

    trial: str
    state: str
    throughput: Throughput | None = None
    nodes: tuple[str, ...] = ()
    transport: str | None = None
    sha256: str | None = None
    provenance: dict[str, str] = {}
    marks: tuple[Mark, ...] = ()


class SideCase(_Part):
    """A case and its trials, in the order of their repeats."""

    case: dict[str, Scalar]
    name: str | None = None
    trials: tuple[WrittenTrial, ...] = ()
    published: tuple[PublishedRow, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def every_mark(self) -> tuple[Mark, ...]:
        """Its own marks, and those of trials that count where it has no mark of their code."""
        by_code = {mark.code: mark for trial in self.valid for mark in trial.marks}
        own = {mark.code for mark in self.marks}
        return (*self.marks, *(mark for code, mark in by_code.items() if code not in own))

    @property
    def size(self) -> tuple[int, int]:
        """Ranks and nodes, by which cases are ordered; 0 where the file does not name them."""
        ranks, nodes = (self.case.get(key) for key in ("world_size", "nodes"))
        return (ranks if isinstance(ranks, int) else 0, nodes if isinstance(nodes, int) else 0)

    @property
    def valid(self) -> tuple[WrittenTrial, ...]:
        """The trials that count."""
        return tuple(trial for trial in self.trials if trial.state == "valid" and trial.throughput)

    @property
    def values(self) -> tuple[float, ...]:
        """Their throughputs, in samples per second."""
        return tuple(trial.throughput for trial in self.valid if trial.throughput)

    @property
    def median(self) -> float | None:
        """Of these; None without a trial that counts."""
        return statistics.median(self.values) if self.values else None

    @property
    def nodes(self) -> frozenset[str]:
        """Every node that a trial which counts ran on."""
        return frozenset(node for trial in self.valid for node in trial.nodes)

    @property
    def provenance(self) -> Mapping[str, str]:
        """Of the first trial that counts; all of them share it."""
        return next((trial.provenance for trial in self.valid), {})


class _Canary(_Part):
    marks: tuple[Mark, ...] = ()


class _Results(_Part):
    version: int
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
    canary: _Canary | None = None
    marks: tuple[Mark, ...] = ()
    environment: dict[str, dict[str, str]] = {}
    cases: tuple[SideCase, ...]


_RESULTS = TypeAdapter(_Results)


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared with another.

    Args:
        label: as the user named it.
        origin: what it was taken from: the id of a sweep, a file, or who published.
        settings: what holds for all of it, by name: image, its digest, window and so on.
        environment: facts of its nodes, by node name.
        is_published: its cases have one value each, and no trials.
        marks: of all of it, such as DRIFT.
    """

    label: str
    origin: str
    unit: str
    cases: tuple[SideCase, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_published: bool = False
    marks: tuple[Mark, ...] = ()


def measured(document: JSON, label: str) -> Side:
    """The side in a results.json.

    Raises:
        ValueError: why it is none.
    """
    try:
        results = _RESULTS.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    if results.version != VERSION:
        raise ValueError(f"it has version {results.version}; needed {VERSION}")
    settings = {
        "playbook": results.experiment,
        "workload": results.workload,
        "image": results.image,
        "image digest": results.image_digest,
        "cluster": results.cluster,
        "rule": results.rule or "",
        "window": "-".join(map(str, results.window or ())),
        "GPU models": ", ".join(results.gpus),
        "nodes are one machine": "yes" if results.shared_machine else "no",
        "topology digest": _digest(results.topologies),
        **{
            f"method.{name}": json.dumps(value)
            for name, value in (results.method or {}).items()
            if name not in ("window", "rule") and value is not None
        },
    }
    canary = results.canary.marks if results.canary else ()
    return Side(
        label=label,
        origin=results.source,
        unit=results.unit,
        cases=tuple(sorted(results.cases, key=lambda case: case.size)),
        settings=settings,
        environment=results.environment,
        marks=(*results.marks, *canary),
    )


def _digest(topologies: Mapping[str, str]) -> str:
    """Return the sha256 of the different topologies, whatever their nodes are called."""
    texts = sorted(set(topologies.values()))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12] if texts else ""


def published(of: Side, framework: str, label: str) -> Side:
    """The published results of another side's cases, of frameworks that fit a glob pattern.

    Each case has the first that fits, which is that of its image's version where there is one.
    """
    cases = tuple(found for case in of.cases if (found := _published_case(case, framework)))
    rows = [case.published[0] for case in cases]
    origin = ", ".join(dict.fromkeys(f"{row.suite} {row.framework}" for row in rows))
    return Side(label, origin, of.unit, cases, is_published=True)


def _published_case(case: SideCase, framework: str) -> SideCase | None:
    for row in case.published:
        if fnmatchcase(row.framework, framework):
            trial = WrittenTrial(trial=row.framework, state="valid", throughput=row.throughput)
            return SideCase(case=case.case, name=case.name, trials=(trial,), published=(row,))
    return None
