"""results.csv and DLPerf's result files, compared with derived cases."""

import csv
import json
from collections.abc import Mapping, Sequence
from statistics import median

from orchestrator.verifying.cases import DerivedCase
from orchestrator.verifying.columns import states
from orchestrator.verifying.differences import at, codes, items, number, text
from orchestrator.verifying.records import Folder

CSV = "results.csv"
_ENDS = ("low", "high", "coverage")


def check(place: Folder, written: Mapping[str, object], cases: Sequence[DerivedCase]) -> None:
    """Compare the files for programs that lie beside results.json."""
    _check_csv(place, items(written.get("cases")))
    exports = written.get("exports")
    for name in exports if isinstance(exports, list) else []:
        if isinstance(name, str) and "/" not in name:
            _check_export(place, name, written, cases)


def _check_csv(place: Folder, documents: Sequence[Mapping[str, object]]) -> None:
    try:
        content = (place.path / CSV).read_text(encoding="utf-8")
        rows = list(csv.DictReader(content.splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        place.findings.differs(CSV, "", f"cannot be read: {error}", "a table")
        return
    if len(rows) != len(documents):
        place.findings.differs(CSV, "", f"{len(rows)} rows", f"{len(documents)} cases")
        return
    for count, (row, document) in enumerate(zip(rows, documents, strict=True), 2):
        for key, value in _columns(document).items():
            cell = row.get(key)
            derived = "" if value is None else value
            as_number = _as_number(cell) if isinstance(derived, int | float) else cell
            place.findings.same(CSV, f"line {count}, {key}", as_number, derived)


def _columns(case: Mapping[str, object]) -> dict[str, object]:
    own, published = case.get("case"), [*items(case.get("published")), {}][0]
    same = ("speedup", "efficiency", "spread", "latency_s", "memory_mib", "tflops_per_gpu")
    sizes = ("device", "precision", "global_batch_size", "accumulation_steps")
    return {
        "node_num": at(own, "nodes"),
        "gpu_num_per_node": at(own, "gpus_per_node"),
        "batch_size_per_device": at(own, "micro_batch_size"),
        **{key: at(own, key) for key in (*sizes, "tensor_parallel", "pipeline_parallel")},
        **{f"{key}_samples_per_s": case.get(key) for key in ("median", "mean", "min", "max")},
        **{key: case.get(key) for key in (*same, "energy_per_sample_j", "energy_source")},
        **{f"interval_{end}": at(case, "interval", end) for end in _ENDS},
        **{f"speedup_{end}": at(case, "speedup_interval", end) for end in _ENDS},
        "trials_valid": case.get("trials_valid"),
        "trials": len(items(case.get("trials"))),
        "marks": " ".join(codes(case.get("marks"))),
        "transport": case.get("transport"),
        "difference": _difference(case, published),
        "name": case.get("name"),
        "others_cpus": _others_cpus(case),
        "params": _params(own),
        "published_samples_per_s": published.get("throughput"),
        **{f"published_{key}": published.get(key) for key in ("framework", "source", "hardware")},
    }


def _params(case: object) -> str:
    pairs = case.items() if isinstance(case, Mapping) else ()
    return " ".join(f"{key[7:]}={it}" for key, it in pairs if key.startswith("params."))


def _others_cpus(case: Mapping[str, object]) -> float | str:
    known = [it for state in states(case) if (it := number(state.get("others_cpus"))) is not None]
    return median(known) if known else "not observed"


def _difference(case: Mapping[str, object], published: Mapping[str, object]) -> float | None:
    """From the published result that a report compares with first."""
    value, middle = number(published.get("throughput")), number(case.get("median"))
    return middle / value - 1 if value and middle else None


def _as_number(cell: object) -> object:
    try:
        return float(cell) if isinstance(cell, str) else cell
    except ValueError:
        return cell


def _check_export(
    place: Folder, name: str, written: Mapping[str, object], cases: Sequence[DerivedCase]
) -> None:
    """Each entry of a result file must be that of a case with that placement or name."""
    try:
        document = json.loads((place.path / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        place.findings.differs(name, "", f"cannot be read: {error}", "a document")
        return
    entries = [it for it in document.values() if isinstance(it, dict)]
    named = written.get("cases")
    names = [text(at(case, "name")) for case in named] if isinstance(named, list) else []
    for key, entry in (pair for group in entries for pair in group.items()):
        own = [
            case
            for count, case in enumerate(cases)
            if key in (case.token, *names[count : count + 1]) and case.values
        ]
        fitting = [case for case in own if entry == _exported(case)]
        if not fitting:
            derived = json.dumps([_exported(case) for case in own])
            place.findings.differs(name, key, json.dumps(entry), derived)
    count = sum(map(len, entries))
    place.findings.numbers += 3 * count


def _exported(case: DerivedCase) -> dict[str, object]:
    mean, middle = case.numbers.get("mean"), case.median
    return {
        "average_speed": round(mean, 2) if isinstance(mean, float) else None,
        "batch_size_per_device": case.case.get("micro_batch_size"),
        "median_speed": None if middle is None else round(middle, 2),
        "speedup": None if case.speedup is None else round(case.speedup, 2),
    }
