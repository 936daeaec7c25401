"""What the pages of a report are compared with, by what they call it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.verifying.cases import DerivedCase
from orchestrator.verifying.columns import Document
from orchestrator.verifying.differences import at, items, number, text

Key = tuple[str, int]
"""What a page calls a case, and the number of a trial."""


@dataclass(frozen=True, slots=True)
class Report:
    """What tables are compared with.

    Args:
        cases: with ``labels``, what pages may call them.
        series: the same, those together that differ in their placement only.
        traces: by label and repeat, the mean rate from one iteration to another.
        held: rows of the figure of throttling.
    """

    cases: Sequence[Document]
    series: Sequence[Sequence[Document]]
    canary: Sequence[Document]
    speeds: Sequence[Document]
    traces: Mapping[Key, Mapping[tuple[int, ...], float]]
    held: Sequence[Document]


def trials(cases: Iterable[Document]) -> Iterator[Document]:
    """All of these, with ``from_median`` and what is said of their case."""
    for case in cases:
        middle = number(case.get("median"))
        for trial in items(case.get("trials")):
            value = number(trial.get("throughput"))
            far = (value / middle - 1) * 100 if value is not None and middle else None
            own = {key: case.get(key) for key in ("case", "labels")}
            yield {**own, **trial, "from_median": far}


def report(
    documents: Sequence[Document],
    derived: Sequence[DerivedCase],
    canary: Sequence[Document],
    speeds: Sequence[Document],
) -> Report:
    """What follows from cases and their documents."""
    groups: dict[str, list[Document]] = {}
    labelled: list[Document] = []
    held: list[Document] = []
    traces, single = {}, len({case.settings for case in derived}) == 1
    for document, case in zip(documents, derived, strict=True):
        labels = _labels(document, documents, single)
        labelled.append({**document, "labels": labels})
        groups.setdefault(case.settings, []).append(labelled[-1])
        for trial in case.trials:
            repeat = int(number(trial.plan.get("repeat")) or 0)
            if trial.state == "valid":
                traces[labels[0], repeat] = trial.derived.trace
            names = [f"{labels[0]}, trial {repeat}", f"{labels[0]}\uff0c试验 {repeat}"]
            held += [{**row, "labels": names} for row in trial.machines.held]
    values = (number(trial.get("throughput")) for trial in canary)
    first = next(filter(None, values), None)
    with_first = [{**trial, "to_first": _far(trial, first)} for trial in canary]
    return Report(labelled, list(groups.values()), with_first, speeds, traces, held)


def _far(trial: Document, first: float | None) -> float | None:
    value = number(trial.get("throughput"))
    return (value / first - 1) * 100 if value and first else None


def _labels(case: Document, cases: Sequence[Document], single: bool) -> list[str]:
    """What pages call a case: its name, else its placement with whatever is not the same in all."""
    facts = [it.get("case") for it in cases]
    own = case.get("case")
    placement, precision, batch = (
        str(at(own, key)) for key in ("placement", "precision", "micro_batch_size")
    )
    names = ("device", "accumulation_steps", "tensor_parallel", "pipeline_parallel")
    params = [key for key in own if key.startswith("params.")] if isinstance(own, Mapping) else []
    differing = [
        f"{key.removeprefix('params.')}={at(own, key)}"
        for key in (*names, *params)
        if any(at(other, key) != at(own, key) for other in facts)
    ]
    settings = f"{precision.upper()}({', '.join((f'BS={batch}', *differing))})"
    label = placement if single else f"{placement} {settings}"
    token = f"{at(own, 'nodes')}n{at(own, 'gpus_per_node')}g"
    return [text(case.get("name")) or label, placement, token]
