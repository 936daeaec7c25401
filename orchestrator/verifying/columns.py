"""What each column of a report's tables must say, by its head."""

import re
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from orchestrator.verifying import heads
from orchestrator.verifying.differences import Findings, at, codes, items, number, text
from orchestrator.verifying.pages import Row

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
Value = str | frozenset[str] | Sequence[float | None]
"""A text, one of several texts, or numbers."""
Document = Mapping[str, object]
"""What results.json must say of a case or a trial."""
Rule = Callable[[str, Document], Value | None]
"""What the cell in a column must say of something; None where that is not derived."""
_OF_CASE: Mapping[str, tuple[str, ...]] = {
    "nodes": ("case", "nodes"),
    "gpus_per_node": ("case", "gpus_per_node"),
    "gpus": ("case", "world_size"),
    "batch": ("case", "micro_batch_size"),
    "throughput": ("median",),
    "speedup": ("speedup",),
    "efficiency": ("efficiency",),
    "spread": ("spread",),
    "latency": ("latency_s",),
    "memory": ("memory_mib",),
    "tflops": ("tflops_per_gpu",),
    "energy": ("energy_per_sample_j",),
    "ideal": ("ideal",),
}
_OF_MACHINES = (
    *("sm_mhz", "memory_mhz", "power_w", "temperature_c", "utilisation_pct"),
    *("others_cpus", "load", "steal"),
)
_SCALES = {"efficiency": 100, "spread": 100, "steal": 100, "latency": 1000}


def fits(cell: str, value: Value) -> bool:
    """Whether a cell says a text, or exactly these numbers, as they are rounded in it."""
    if isinstance(value, str):
        return cell == value
    if isinstance(value, frozenset):
        return cell in value
    known = [it for it in value if it is not None]
    if len(known) < len(value):  # not to be told
        return cell in ("", "-", "not observed", "未观测") or cell.startswith("n/a")
    shown = _NUMBER.findall(cell)
    return len(shown) == len(known) and all(map(_rounds, known, shown))


def _rounds(value: float, shown: str) -> bool:
    """Whether a number is rounded so; zeros at its end may be left out."""
    decimals = len(shown.partition(".")[2])
    again = f"{value:z.{decimals}f}"
    return again == f"{float(shown):z.{decimals}f}"


def of_case(key: str, case: Document) -> Value | None:
    """What a cell about a case must say; None where that is not derived."""
    if key in _OF_CASE:
        return _scaled(key, number(at(case, *_OF_CASE[key])))
    if key in _OF_MACHINES:
        known = [it for state in states(case) if (it := number(state.get(key))) is not None]
        return _scaled(key, median(known) if known else None)
    found = _OTHERS.get(key)
    return found(case) if found else None


def of_trial(key: str, trial: Document) -> Value | None:
    """What a cell about a trial must say; None where that is not derived."""
    if key in ("throughput", "to_first", "trial"):
        return [number(trial.get("repeat" if key == "trial" else key))]
    if key in ("nodes", "gpus_per_node", "batch", "case", "latency", "memory"):
        return of_case(key, trial)
    if key == "codes":
        return " ".join(dict.fromkeys([*codes(trial.get("problems")), *codes(trial.get("marks"))]))
    if key == "sha256":
        return text(trial.get("sha256"))[:12]
    if key in ("log", "evidence"):
        return text(trial.get("log"))
    if key == "transport":
        return text(trial.get("transport")) or "-"
    return text(trial.get(key)) if key in ("state", "place") else None


def of_dot(key: str, trial: Document) -> Value | None:
    """What a cell about a point in the figure of all trials must say."""
    if key == "trial":
        return text(trial.get("trial"))
    if key == "from_median":
        return [number(trial.get("from_median"))]
    return of_trial(key, trial) if key in ("state", "throughput") else None


def of_speed(key: str, node: Document) -> Value | None:
    """What a cell about the speed of a node must say."""
    if key == "node":
        return text(node.get("node"))
    return [number(node.get(key))] if key in ("trials", "speed") else None


def of_held(key: str, row: Document) -> Value | None:
    """What a cell about clocks that were held down must say."""
    return _names(row) if key == "case" else text(row.get(key))


def of_point(key: str, case: Document) -> Value | None:
    """What a cell about a point in the figure of scaling must say."""
    if key == "published":
        return [number(row.get("throughput")) for row in items(case.get(key))[:1]] or ""
    return of_case(key, case)


def of_published(key: str, case: Document) -> Value | None:
    """What a cell in the table of published results must say, by results.json or by ours."""
    row = items(case.get("published"))[0]
    if key in ("batch", "precision", "source"):
        return text(row.get(key))
    return of_case(key, case) if key in ("case", "throughput", "difference", "published") else None


def check_row(findings: Findings, file: str, row: Row, document: Document, rule: Rule) -> None:
    """Compare each cell of a table's row with what follows for it."""
    for head, cell in zip(row.head, row.cells, strict=False):
        name = heads.key(head)
        value = rule(name, document)
        if value is None:
            continue
        findings.numbers += 1
        if not fits(heads.plain(name, cell), value):
            findings.differs(file, f"line {row.line}, {head}", cell, words(value))


def words(value: Value) -> str:
    """What a cell must say, in words."""
    if isinstance(value, str | frozenset):
        return value if isinstance(value, str) else " or ".join(sorted(value))
    return ", ".join("nothing" if it is None else f"{it:.6g}" for it in value)


def _scaled(key: str, value: float | None) -> list[float | None]:
    return [None if value is None else value * _SCALES.get(key, 1)]


def states(case: Document) -> list[Document]:
    """Of the machines, over all valid trials; also of those that ended before anything was seen."""
    valid = [trial for trial in items(case.get("trials")) if trial.get("state") == "valid"]
    return [state for trial in valid for state in items(trial.get("machines"))]


def _interval(found: object) -> list[float | None]:
    low, high, coverage = (number(at(found, end)) for end in ("low", "high", "coverage"))
    return [low, high, None if coverage is None else coverage * 100]


def _limits(case: Document) -> str | None:
    told = [state.get("limits") for state in states(case)]
    names = {str(name) for some in told if isinstance(some, list) for name in some}
    return ", ".join(sorted(names)) or None


def _difference(case: Document) -> list[float | None]:
    """From the published result that a report compares with first."""
    rows = items(case.get("published"))
    value, middle = number(rows[0].get("throughput")) if rows else None, number(case.get("median"))
    return [(middle / value - 1) * 100 if value and middle else None]


def _published(case: Document) -> str:
    """The published result that a report compares with first, as results.json has it."""
    rows = items(case.get("published"))
    if not rows:
        return ""
    by = filter(None, (text(rows[0].get("framework")), text(rows[0].get("hardware"))))
    return f"{rows[0].get('throughput')} ({', '.join(by)})"


def _names(case: Document) -> frozenset[str]:
    """What pages may call a case."""
    labels = case.get("labels")
    return frozenset(map(text, labels if isinstance(labels, list) else []))


_OTHERS: Mapping[str, Callable[[Document], Value | None]] = {
    "case": _names,
    "published": _published,
    "trials": lambda case: [number(case.get("trials_valid")), number(case.get("trials_planned"))],
    "interval": lambda case: _interval(case.get("interval")),
    "speedup_interval": lambda case: _interval(case.get("speedup_interval")),
    "transport": lambda case: text(case.get("transport")) or "-",
    "marks": lambda case: " ".join(dict.fromkeys(codes(case.get("marks")))),
    "difference": _difference,
    "moments": lambda case: [sum(number(it.get("moments")) or 0 for it in states(case))],
    "limits": _limits,
}
