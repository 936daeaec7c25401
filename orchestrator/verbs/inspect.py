"""inspect: a recorded output as our parsers read it, as JSON."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, BinaryIO

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import WORKLOADS, Window, window
from orchestrator.collecting import logs
from orchestrator.collecting.logs import Reading
from orchestrator.measuring import validity
from orchestrator.model.facts import JSON, DriverFacts, InfinibandFacts
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.model.log import global_batch_size as batch_by_header
from orchestrator.model.problem import Problem
from orchestrator.model.site import Topology
from orchestrator.probes import gpu, infiniband, topology

MOST_TEXT_BYTES = 64 << 20
Facts = Topology | InfinibandFacts | DriverFacts
FileOrDash = Annotated[str, typer.Argument(metavar="FILE|-")]


def _add(name: str, sample: str, parse: Callable[[str], Facts]) -> None:
    """Add the command that prints the fields of one kind of recorded output."""

    @command(f"inspect {name}", f"inspect {name} {sample}", json_only=True)
    def inspect(face: Face, file: FileOrDash) -> int:
        with _open(file) as content:
            raw = content.read(MOST_TEXT_BYTES)
        try:
            fact = parse(raw.decode(errors="replace"))
        except errors.LogError as error:
            raise _unreadable(error, file) from error
        shown = asdict(fact)
        if isinstance(fact, InfinibandFacts):
            hcas: dict[str, dict[str, Any]] = {}
            for port in shown.pop("ports"):
                own = {key: port.pop(key) for key in ("name", "type", "firmware", "node_guid")}
                hcas.setdefault(own["name"], {**own, "ports": []})["ports"].append(port)
            shown = {"hcas": list(hcas.values()), **shown}
        face.voice.document(shown)
        return 3 if fact.problems else 0


_add("topology", "topo.txt", topology.parse)
_add("ibstat", "ibstat.txt", infiniband.parse)
_add("gpu", "nvidia-smi.xml", gpu.parse)


@command("inspect log", "inspect log train.log --workload ngc_pytorch_rn50", json_only=True)
def inspect_log(
    face: Face,
    file: FileOrDash,
    workload: Annotated[str, typer.Option(help="What wrote the log.", autocompletion=WORKLOADS)],
    between: Window = None,
    rule: Annotated[Rule | None, typer.Option(help="How throughput is taken from it.")] = None,
    global_batch_size: Annotated[int | None, typer.Option(min=1, metavar="N")] = None,
) -> int:
    reading = Reading(workload, window(between), rule)
    reader = reading.resolved()
    with _open(file) as content:
        log = reader.read(logs.chunks(content), reading.window)
    if log.steps == 0 and not log.config:
        nothing = errors.LogError(
            f"no line that {reader.name} prints", code="NO-STEPS", fix="look at the file"
        )
        raise _unreadable(nothing, file)
    value, more = _measure(log, global_batch_size)
    problems = tuple(dict.fromkeys((*log.problems, *more)))
    # A batch size that was given has what the number needs of a header.
    answered = "" if global_batch_size is None else "NO-HEADER"
    if any(validity.keeps_out(it, log.rule) for it in problems if it.code != answered):
        value = None
    printed: dict[str, JSON] = {"latency_s": log.latency_s, "memory_mib": log.memory_mib}
    document: dict[str, JSON] = {
        "workload": reader.name,
        "runs": log.runs,
        "steps": log.steps,
        "first_iteration": log.first_iteration,
        "last_iteration": log.last_iteration,
        "config": dict(log.config),
        "window": list(log.window) if log.window else None,
        "throughput": value,
        "unit": reader.unit,
        "rate": asdict(log.rate) if log.rate else None,
        "reported": dict(log.reported),
        **{name: value for name, value in printed.items() if value is not None},
        "problems": [asdict(problem) for problem in problems],
    }
    face.voice.document(document)
    return 3 if problems else 0


def _measure(log: TrainingLog, given: int | None) -> tuple[float | None, list[Problem]]:
    in_header = batch_by_header(log.config)
    if given is not None and in_header is not None and given != in_header:
        words = f"the header says global batch size {in_header}, --global-batch-size {given}"
        return None, [Problem("BATCH-MISMATCH", f"{words}; needed one of them")]
    batch = given if in_header is None else in_header
    # A log without a clock gives no number by any batch, and says so already.
    timed = all(problem.code != "NO-CLOCK" for problem in log.problems)
    needs_batch = log.rule in ("clock", "latency") and log.runs == 1 and log.steps > 0
    if batch is None and needs_batch and timed:
        words = "the log has no header that says the global batch size"
        return None, [Problem("NO-BATCH", f"{words}; needed --global-batch-size")]
    return validity.value(log, batch)


@contextmanager
def _open(file: str) -> Iterator[BinaryIO]:
    """Open a file, or standard input for ``-``; an error while it is read names it too."""
    try:
        with open(0 if file == "-" else file, "rb") as content:
            yield content
    except OSError as error:
        raise errors.UsageError(
            f"{file}: {error.strerror}", code="READ", fix="give a file, or - for standard input"
        ) from error


def _unreadable(error: errors.LogError, file: str) -> errors.LogError:
    again = errors.LogError(f"{file}: {error.cause}", code=error.code, fix=error.fix)
    again.exit_code = 2
    return again
