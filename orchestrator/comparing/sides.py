"""The sides of a comparison, read from results.json, and the pairs of their cases."""

import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from orchestrator.model.facts import JSON
from orchestrator.model.text import Scalar

VERSION = 1
ABSENT = "(none)"
# Fields that follow from other fields.
_DERIVED = frozenset({"placement", "world_size", "global_batch_size", "data_parallel"})
Throughput = Annotated[FiniteFloat, Field(gt=0)]


class _Part(BaseModel):
    """A part of results.json; other fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Mark(_Part):
    """A mark of a trial or case that counts."""

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
    """A trial in results.json."""

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
        """The case's marks, and marks of valid trials with other codes."""
        by_code = {mark.code: mark for trial in self.valid for mark in trial.marks}
        own = {mark.code for mark in self.marks}
        return (*self.marks, *(mark for code, mark in by_code.items() if code not in own))

    @property
    def size(self) -> tuple[int, int]:
        """Ranks and nodes, by which cases are ordered; 0 if the file lacks them."""
        ranks, nodes = (self.case.get(key) for key in ("world_size", "nodes"))
        return (ranks if isinstance(ranks, int) else 0, nodes if isinstance(nodes, int) else 0)

    @property
    def valid(self) -> tuple[WrittenTrial, ...]:
        """The valid trials."""
        return tuple(trial for trial in self.trials if trial.state == "valid" and trial.throughput)

    @property
    def values(self) -> tuple[float, ...]:
        """The throughputs of valid trials, in samples per second."""
        return tuple(trial.throughput for trial in self.valid if trial.throughput)

    @property
    def median(self) -> float | None:
        """The median of ``values``; None without any."""
        return statistics.median(self.values) if self.values else None

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes of all valid trials."""
        return frozenset(node for trial in self.valid for node in trial.nodes)

    @property
    def provenance(self) -> Mapping[str, str]:
        """The provenance of the first valid trial, which all of them share."""
        return next((trial.provenance for trial in self.valid), {})


class _Marked(_Part):
    marks: tuple[Mark, ...] = ()


class _Results(_Marked):
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
    canary: _Marked | None = None
    environment: dict[str, dict[str, str]] = {}
    cases: tuple[SideCase, ...]


_RESULTS = TypeAdapter(_Results)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison.

    Args:
        label: as the user named it.
        origin: the id of a sweep, a file, or who published.
        settings: of all cases, by name: image, its digest, window and so on.
        environment: facts of its nodes, by node name.
        is_published: True if each case has one published value and no trials.
        marks: of the whole side, such as DRIFT.
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
    """Return the side in a results.json.

    Raises:
        ValueError: it is no results.json of this version.
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
    """Return the sha256 of the different topologies, regardless of node names."""
    texts = sorted(set(topologies.values()))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12] if texts else ""


def published(of: Side, framework: str, label: str) -> Side:
    """Return the published results of a side's cases, by frameworks that match a glob pattern.

    Each case gets its first match; a result of its image's version comes first.
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


@dataclass(frozen=True, slots=True)
class Pair:
    """A case that both sides have."""

    first: SideCase
    second: SideCase


@dataclass(frozen=True, slots=True)
class Pairs:
    """The cases of both sides.

    Args:
        varied: parameters that have one value on each side, and not the same one. They are the
            subject of the comparison, so cases are paired regardless of them.
    """

    both: tuple[Pair, ...]
    only_first: tuple[SideCase, ...]
    only_second: tuple[SideCase, ...]
    varied: Mapping[str, tuple[str, str]]


def pair_cases(first: Side, second: Side) -> Pairs:
    """Pair the cases of two sides, in the order of the first."""
    varied = _varied(first.cases, second.cases)
    theirs = {_key(case, varied): case for case in second.cases}
    both, only_first = [], []
    for case in first.cases:
        other = theirs.pop(_key(case, varied), None)
        if other is None:
            only_first.append(case)
        else:
            both.append(Pair(case, other))
    return Pairs(tuple(both), tuple(only_first), tuple(theirs.values()), varied)


def _key(case: SideCase, varied: Mapping[str, object]) -> frozenset[tuple[str, Scalar]]:
    ignored = _DERIVED | varied.keys()
    return frozenset((name, value) for name, value in case.case.items() if name not in ignored)


def _varied(first: Sequence[SideCase], second: Sequence[SideCase]) -> Mapping[str, tuple[str, str]]:
    names = dict.fromkeys(name for case in (*first, *second) for name in case.case)
    varied = {}
    for name in names:
        here, there = _values(first, name), _values(second, name)
        if name.startswith("params.") and len(here) == len(there) == 1 and here != there:
            varied[name] = (*here, *there)
    return varied


def _values(cases: Sequence[SideCase], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(case.case.get(name, ABSENT)) for case in cases))
