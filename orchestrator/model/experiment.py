"""The experiment: which workload, which cases, and how they are measured."""

from collections.abc import Collection
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from orchestrator.model.log import Rule
from orchestrator.model.text import (
    Count,
    EnvName,
    EnvValue,
    ImageChoice,
    Matching,
    Name,
    Noun,
    PlacementText,
    Scalar,
    Seconds,
    Words,
)

_PERCENT = r"(?!0*\.?0*%)[0-9]{1,2}(\.[0-9]{1,3})?%"
Percent = Annotated[str, Matching(_PERCENT, "more than 0 % and less than 100 %, such as 1%")]
Times = Annotated[int, Field(ge=1, le=1000)]
Place = Literal["start", "middle", "end"]


class Repeats(Noun):
    """Trials of a case until its interval is narrow."""

    min: Times
    """Trials of each case, however near to each other they are."""
    max: Times
    """Trials of a case whose interval stays wider; it is marked UNSETTLED then."""
    until_interval: Percent
    """A case needs no further trial once the interval of its median is at most so wide, as a share
    of the median."""

    @property
    def share(self) -> float:
        return float(self.until_interval.removesuffix("%")) / 100

    @field_validator("max")
    @classmethod
    def _at_least_min(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("min", 0):
            raise ValueError(f"{value} with min: {info.data['min']}; needed at least as many")
        return value


class Canary(Noun):
    """One case that is measured again and again while a sweep goes on, outside of the medians."""

    case: str | None = None
    """A placement or a case's name, maybe with `*`, of which the smallest match is measured.
    Default: the smallest case, single-node if there is one."""
    at: tuple[Place, ...] = Field(default=("start", "middle", "end"), min_length=1)
    """Before the first trial, after half of those that run for certain, after the last."""


def _kind(value: object) -> str:
    return "mapping" if isinstance(value, dict | Noun) else "plain"


RepeatPolicy = Annotated[
    Annotated[Times, Tag("plain")] | Annotated[Repeats, Tag("mapping")], Discriminator(_kind)
]
CanaryChoice = Annotated[
    Annotated[bool, Tag("plain")] | Annotated[Canary, Tag("mapping")], Discriminator(_kind)
]


Precision = Literal["fp32", "amp", "bf16"]
Device = Literal["cpu", "cuda"]
Ranks = Annotated[int, Field(ge=1, le=65536)]
Pack = Literal["none", "one-node", "disjoint"]


def _rises(window: tuple[int, int]) -> tuple[int, int]:
    first, last = window
    if not 1 <= first < last:
        needed = "needed two iterations from 1 on, the first before the last"
        raise ValueError(f"[{first}, {last}]; {needed}")
    return window


Window = Annotated[tuple[int, int], AfterValidator(_rises)]


class Method(Noun):
    """The rules by which a case is measured."""

    repeats: RepeatPolicy
    """Trials of each case; the median over the valid ones is reported. Or how few and how many, and
    when a case needs no more."""
    iterations: int = Field(ge=3, le=10_000_000)
    """Number of iterations that the program is started with; NVIDIA's --prof N logs one less."""
    window: Window | None = None
    """First and last iteration, by the log's own numbers, between which is measured; needed unless
    `rule: reported`."""
    rule: Rule | None = None
    """The rule that computes throughput from a log, by default the workload's own: its clock over
    the window, the harmonic mean of the rates printed in the window (`rates`; `arithmetic` as in
    DLPerf's script for TensorFlow), the program's own report at its end, or the mean latency of a
    step in the window."""
    time_limit_s: Seconds = 3600.0
    """Seconds after which a trial is ended, whatever it does."""
    stall_limit_s: Seconds = 600.0
    """Seconds without a new line of log after which a trial is ended."""
    canary: CanaryChoice = False
    """Measure one case at the sweep's start, middle and end too, to show a drift of the machines;
    or a choice of the case and of its places."""
    pack: Pack = "none"
    """Trials that may run side by side, each on nodes of its own: none; those of a single node,
    which do not share the fabric; or any (`disjoint`)."""

    @property
    def most(self) -> int:
        return self.repeats if isinstance(self.repeats, int) else self.repeats.max

    @property
    def least(self) -> int:
        return self.repeats if isinstance(self.repeats, int) else self.repeats.min

    @property
    def watch(self) -> Canary | None:
        return (Canary() if self.canary else None) if isinstance(self.canary, bool) else self.canary

    def with_most(self, trials: int) -> "Method":
        """Return a copy with at most so many trials of a case; settled cases still need fewer."""
        often: int | Repeats = trials
        if isinstance(self.repeats, Repeats):
            least = min(self.repeats.min, trials)
            often = self.repeats.model_copy(update={"min": least, "max": trials})
        return self.model_copy(update={"repeats": often})


class Axes(Noun):
    """The values of each axis of a grid; the cases are their cartesian product."""

    placement: tuple[PlacementText, ...] = Field(min_length=1)
    """Nodes x GPUs per node, such as 4x8."""
    precision: tuple[Precision, ...] = Field(min_length=1)
    """amp is automatic mixed precision in float16 with a loss scale, bf16 that in bfloat16."""
    micro_batch_size: tuple[Count, ...] = Field(min_length=1)
    """Samples of each replica in one forward pass."""
    params: dict[str, Annotated[tuple[Scalar, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Parameters of the workload that are axes too."""
    accumulation_steps: tuple[Count, ...] = Field(default=(1,), min_length=1)
    """Forward passes of each replica in one optimizer step."""
    tensor_parallel: tuple[Ranks, ...] = Field(default=(1,), min_length=1)
    """Ranks that share each layer of a replica."""
    pipeline_parallel: tuple[Ranks, ...] = Field(default=(1,), min_length=1)
    """Stages of layers that a replica is cut into."""

    @field_validator("*")
    @classmethod
    def _differ(cls, axis: Collection[Any]) -> Collection[Any]:
        for values in axis.values() if isinstance(axis, dict) else [axis]:
            if len(set(values)) < len(values):
                raise ValueError(f"got {[*values]}; needed each value once")
        return axis


class Exclusion(Noun):
    """Cases to leave out: those that agree with every value given here."""

    placement: PlacementText | None = None
    """Nodes x GPUs per node, such as 4x8."""
    precision: Precision | None = None
    """amp is automatic mixed precision in float16 with a loss scale, bf16 that in bfloat16."""
    micro_batch_size: Count | None = None
    """Samples of each replica in one forward pass."""
    params: dict[str, Scalar] = Field(default_factory=dict)
    """Parameters of the workload."""
    accumulation_steps: Count | None = None
    """Forward passes of each replica in one optimizer step."""
    tensor_parallel: Ranks | None = None
    """Ranks that share each layer of a replica."""
    pipeline_parallel: Ranks | None = None
    """Stages of layers that a replica is cut into."""


class CaseEntry(Exclusion):
    """One case, written out."""

    placement: PlacementText
    precision: Precision
    micro_batch_size: Count
    params: dict[str, Scalar] = Field(default_factory=dict)
    """Parameters of the workload for this case, over those for all cases."""
    accumulation_steps: Count = 1
    tensor_parallel: Ranks = 1
    pipeline_parallel: Ranks = 1
    data_parallel: Ranks | None = None
    """Replicas; otherwise derived, and checked where it is written."""


class Experiment(Noun):
    """The validated playbook."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["grid"]}, {"required": ["cases"]}]}
    )

    description: Words | None = None
    """A description of the measurement in one line, the heading of the reports."""
    workload: Name
    """A workload that this program knows: `dlperf-orch list workloads`."""
    image: ImageChoice
    """An image definition, here or shipped: `dlperf-orch list images`; NAME@TAG takes its base with
    another tag."""
    inventory: Name | None = None
    """The inventory to use when none is named."""
    device: Device | None = None
    """The device of the ranks; local nodes need it, others use cuda by default."""
    method: Method
    """The rules by which each case is measured."""
    grid: Axes | None = None
    """Cases as the product of axes; or write `cases`."""
    cases: tuple[CaseEntry, ...] | None = Field(default=None, min_length=1)
    """Cases one by one; or write `grid`."""
    exclude: tuple[Exclusion, ...] = ()
    """Cases to leave out: those that agree with every value of an entry."""
    params: dict[str, Scalar] = Field(default_factory=dict)
    """Parameters of the workload that hold for all cases."""
    env: dict[EnvName, EnvValue] = Field(default_factory=dict)
    """Environment variables of every task; they are shown in plans and reports."""

    @field_validator("method")
    @classmethod
    def _either_window_or_report(cls, method: Method) -> Method:
        if method.window is None and method.rule != "reported":
            raise ValueError("no window; needed `window: [FIRST, LAST]`")
        if method.window is not None and method.rule == "reported":
            raise ValueError(
                f"window: {[*method.window]} with `rule: reported`, which takes what the program"
                " reports of the whole run; needed one of them"
            )
        return method

    @model_validator(mode="after")
    def _either_grid_or_cases(self) -> Self:
        if (self.grid is None) == (self.cases is None):
            both = "both `grid` and `cases`" if self.grid else "neither `grid` nor `cases`"
            raise ValueError(f"{both}; needed exactly one of them")
        return self
