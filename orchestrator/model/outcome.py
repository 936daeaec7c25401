"""The outcome of an attempt, as the file beside its log has it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.model.attempt import TaskEnd
from orchestrator.model.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an attempt; the fields of its measurement are None where none was made.

    Args:
        state: valid, invalid, failed, infra-lost or interrupted.
        problems: why it is not valid.
        throughput: samples per second of the gang.
        sha256: of the log that was measured.
        lines: the first and the last one of it that the throughput stands on, counted from 1.
        transport: what the gang ran over, such as ``IB mlx5_0``.
        provenance: must agree within a case before its trials share a median.
        start_skew_s: between the first and the last opened gate; None unless all opened.
        tasks: how each ended, with the sha256 of its raw log.
        observed: by file, the sha256 of what was seen of the nodes meanwhile: r0.state, r0.gpus.
        marks: of the state of its nodes; they do not keep it from being valid.
        beside: names of the trials that ran on other nodes meanwhile.
        attempt_sha256: of the bytes of attempt.json, which says what was started; empty if unknown.
        code: sha256 over the files of the program that judged it; empty if unknown.
    """

    trial: str
    attempt: int
    state: str
    problems: tuple[Problem, ...]
    throughput: float | None
    sha256: str | None
    lines: tuple[int, int] | None
    transport: str | None
    provenance: Mapping[str, str]
    port: int
    start_skew_s: float | None
    tasks: tuple[TaskEnd, ...]
    observed: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[Problem, ...] = ()
    beside: tuple[str, ...] = ()
    attempt_sha256: str = ""
    code: str = ""
