"""The content of a report, whatever file format it is written in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.log import Rule, TrainingLog
from orchestrator.model.problem import Problem
from orchestrator.model.result import NOT_NEEDED, Measurement, NodeSpeed, Result, Watched
from orchestrator.model.site import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Names and decimals of a workload's numbers in reports.

    Args:
        kind: placements: cases are named by placement. groups: by names of the benchmark's own.
        decimals: of throughput, when printed.
    """

    kind: Literal["placements", "groups"] = "placements"
    decimals: int = 2


PLAIN = Layout()


@dataclass(frozen=True, slots=True)
class LoneLog:
    """A log that belongs to no known case, measured by its own header."""

    path: str
    log: TrainingLog
    throughput: float | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class LogSource:
    """The path from a page to a log, empty if it is not there, and its lines of evidence."""

    path: str
    lines: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """A result that somebody published for one case.

    Args:
        suite: who measured it: dlperf, gpt (of DLPerf too) or paddleperf.
        framework: with version and variant, such as ``oneflow-0.2.0-clip``.
        batch: the micro batch size, or what was published instead, such as ``gbs=512``.
        throughput: the median, in samples per second of the whole gang.
        source: the document, and where it disagrees with itself or with another one.
        hardware: the GPUs, maybe the machine, such as ``A100-SXM4-80GB (DGX A100)``.
        interconnect: between nodes, such as ``IB 100 Gb/s``; empty if unknown.
    """

    suite: str
    framework: str
    model: str
    precision: str
    batch: str
    nodes: int
    gpus_per_node: int
    throughput: float
    unit: str
    source: str
    hardware: str = ""
    interconnect: str = ""

    @property
    def placement(self) -> str:
        """Return the placement, such as ``4x8``."""
        return f"{self.nodes}x{self.gpus_per_node}"

    @property
    def by(self) -> str:
        """Return the framework and the hardware, such as ``ngc-pytorch, V100-SXM2-16GB``."""
        return ", ".join(filter(None, (self.framework, self.hardware)))

    def difference(self, result: Result) -> float | None:
        """Return measured / published - 1; None without a measured number."""
        return None if result.median is None else result.median / self.throughput - 1


@dataclass(frozen=True, slots=True)
class Writer:
    """The program that wrote a report; the same one writes the same bytes again.

    Args:
        by: its version.
        code: sha256 over its files; the version alone covers many commits.
        strict: trials that the state of their nodes marks do not count.
    """

    by: str
    code: str
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One sweep or one folder of logs, measured; the latter lacks what only sweeps record.

    Args:
        source: the sweep's id, or the folder.
        window: None where the rule needs none, or each log's reader chooses.
        trials_planned: of a case; None also where cases differ in it.
        environment: rows of what was found on nodes, by node name.
        lone: logs that belong to no case, by world size.
        rule: how throughput was taken; None where that depends on what each log is.
        log_prefix: what DLPerf's log names and its result files call the model.
        names: what the benchmark calls a case, where it has names of its own.
        published: of a case, the result to compare with first.
        step_flops: floating-point operations of one optimizer step, where they were counted.
        peak_tflops: of one GPU at the precision of a case, where that is known.
        topologies: ``nvidia-smi topo -m`` in its own form, by node name.
        gpus: models of all GPUs of the nodes, as their drivers name them; empty if unknown.
        added_env: environment variables that playbook and inventory add.
        findings: of provisioning, over the nodes as the sweep began on them.
        began_ns: of each log of a folder, its ``origin_ns``.
        ran_s: how long at least one trial ran.
        commands: the command lines that made it, in order.
        written_by: the version of this tool that ran it.
        writer: None where no file is written of it.
        node_speeds: by name; empty if no nodes can be compared.
        marks: on the report as a whole.
    """

    source: str
    title: str
    experiment: str = ""
    workload: str
    unit: str
    window: tuple[int, int] | None = None
    method: Method | None = None
    trials_planned: int | None = None
    cluster: str = ""
    image: str = ""
    image_digest: str = ""
    shared_machine: bool = False
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    results: tuple[Result, ...]
    lone: tuple[LoneLog, ...] = ()
    rule: Rule | None = None
    layout: Layout = PLAIN
    log_prefix: str = ""
    names: Mapping[Case, str] = field(default_factory=dict)
    published: Mapping[Case, tuple[PublishedResult, ...]] = field(default_factory=dict)
    step_flops: Mapping[Case, float] = field(default_factory=dict)
    peak_tflops: Mapping[Case, float] = field(default_factory=dict)
    topologies: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    added_env: Mapping[str, str] = field(default_factory=dict)
    canary: Watched | None = None
    findings: tuple[Finding, ...] = ()
    created: str = ""
    began_ns: tuple[int | None, ...] = ()
    ran_s: float | None = None
    commands: tuple[str, ...] = ()
    written_by: str = ""
    writer: Writer | None = None

    @property
    def trials(self) -> tuple[Measurement, ...]:
        of_results = (trial for result in self.results for trial in result.trials)
        return (*of_results, *(self.canary.trials if self.canary else ()))

    node_speeds: tuple[NodeSpeed, ...] = ()
    marks: tuple[Problem, ...] = ()

    @property
    def incomplete(self) -> int:
        """Count the trials that are missing, failed, invalid, or have problems."""
        return sum(not trial.counts_or_rests for trial in self.trials) + sum(
            bool(lone.problems) for lone in self.lone
        )

    def planned(self, result: Result) -> int:
        """Return the number of trials that a case needs."""
        return self.trials_planned or sum(trial.state != NOT_NEEDED for trial in result.trials)

    def published_for(self, result: Result) -> tuple[PublishedResult, ...]:
        """Return the published results of a case, the one to compare with first."""
        return self.published.get(result.case, ())

    def tflops_per_gpu(self, result: Result) -> float | None:
        """Return TFLOP/s per GPU: step_flops x median / global batch size / world size / 1e12.

        None without a median, or where the operations of a step were not counted.
        """
        flops, statistics = self.step_flops.get(result.case), result.statistics
        if flops is None or statistics is None:
            return None
        steps_per_s = statistics.median / result.case.global_batch_size
        return flops * steps_per_s / result.case.world_size / 1e12
