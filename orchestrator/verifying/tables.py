"""The numbers in results.csv, report.md and DLPerf's result files, compared with derived cases."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.verifying.cases import DerivedCase
from orchestrator.verifying.cases import document as case_document
from orchestrator.verifying.differences import Findings, at, text
from orchestrator.verifying.records import Folder

CSV, MARKDOWN = "results.csv", "report.md"
_COUNTED = re.compile(r"\d+/\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EVIDENCE = 6
"""Cells at the end of a trial's row: trial, state, transport, codes, log, sha256."""
_INTERVAL = re.compile(r"(-?\d+\.\d+)\D+(-?\d+\.\d+)\D+(\d+\.\d+) ?%")


def check(place: Folder, written: Mapping[str, object], cases: Sequence[DerivedCase]) -> None:
    """Compare all tables that lie beside results.json."""
    _check_csv(place, cases)
    _check_markdown(place, written, cases)
    exports = written.get("exports")
    for name in exports if isinstance(exports, list) else []:
        if isinstance(name, str) and "/" not in name:
            _check_export(place, name, written, cases)


def _check_csv(place: Folder, cases: Sequence[DerivedCase]) -> None:
    try:
        content = (place.path / CSV).read_text(encoding="utf-8")
        rows = list(csv.DictReader(content.splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        place.findings.differs(CSV, "", f"cannot be read: {error}", "a table")
        return
    if len(rows) != len(cases):
        place.findings.differs(CSV, "", f"{len(rows)} rows", f"{len(cases)} cases")
        return
    for count, (row, case) in enumerate(zip(rows, cases, strict=True), 2):
        for key, value in _columns(case).items():
            cell = row.get(key)
            derived = "" if value is None else value
            as_number = _as_number(cell) if isinstance(derived, int | float) else cell
            place.findings.same(CSV, f"line {count}, {key}", as_number, derived)


def _columns(case: DerivedCase) -> dict[str, object]:
    numbers, interval = case.numbers, case.numbers.get("interval")
    return {
        "node_num": case.case.get("nodes"),
        "gpu_num_per_node": case.case.get("gpus_per_node"),
        "batch_size_per_device": case.case.get("micro_batch_size"),
        "precision": case.case.get("precision"),
        "median_samples_per_s": numbers.get("median"),
        "mean_samples_per_s": numbers.get("mean"),
        "min_samples_per_s": numbers.get("min"),
        "max_samples_per_s": numbers.get("max"),
        "spread": numbers.get("spread"),
        "interval_low": at(interval, "low"),
        "interval_high": at(interval, "high"),
        "interval_coverage": at(interval, "coverage"),
        "speedup": case.speedup,
        "efficiency": case.efficiency,
        "trials_valid": len(case.values),
        "trials": len(case.trials),
        "speedup_low": at(case.speedup_interval, "low"),
        "speedup_high": at(case.speedup_interval, "high"),
        "speedup_coverage": at(case.speedup_interval, "coverage"),
    }


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


def _check_markdown(
    place: Folder, written: Mapping[str, object], cases: Sequence[DerivedCase]
) -> None:
    try:
        content = (place.path / MARKDOWN).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        place.findings.differs(MARKDOWN, "", f"cannot be read: {error}", "a report")
        return
    rows = list(_rows(content))
    _check_trials(place, rows, cases)
    _check_sureness(place, rows, cases)
    if written.get("workload") == "oneflow_gpt":
        _check_groups(place, rows, written, cases)
    else:
        _check_final(place, rows, cases)


def _rows(content: str) -> Iterator[tuple[int, list[str]]]:
    """Lines and cells of a table's rows, with escapes undone."""
    for count, line in enumerate(content.split("\n"), 1):
        if line.startswith("| ") and line.endswith(" |") and not line.startswith("| ---"):
            cells = re.split(r" (?<!\\)\| ", line[2:-2] + " ")
            yield count, [_plain(cell) for cell in cells]


def _plain(cell: str) -> str:
    text = re.sub(r"\\([\\`*_\[\]|])", r"\1", cell.strip())
    return text.replace("&lt;", "<").replace("&amp;", "&")


def _check_trials(
    place: Folder, rows: Sequence[tuple[int, list[str]]], cases: Sequence[DerivedCase]
) -> None:
    """Every trial with a log has a row, with its number, state and sha256."""
    logs = {
        cells[-2]: (count, cells)
        for count, cells in rows
        if len(cells) > _EVIDENCE and cells[-2].startswith("logs/")
    }
    for case in cases:
        for trial in case.trials:
            log = f"logs/{trial.plan.get('log')}"
            if trial.state not in ("valid", "invalid") or not trial.sha256:
                continue
            if log not in logs:
                place.findings.differs(MARKDOWN, log, "no row", "a row")
                continue
            count, cells = logs[log]
            line = f"line {count}"
            place.findings.same(MARKDOWN, f"{line}, sha256", cells[-1], trial.sha256[:12])
            _same_state(place.findings, line, cells[-5], trial.state)
            if trial.state == "valid":
                _rounded(place.findings, line, cells[-_EVIDENCE - 1], trial.derived.throughput)
                place.findings.same(MARKDOWN, f"{line}, transport", cells[-4], trial.transport)


def _same_state(findings: Findings, line: str, cell: str, state: str) -> None:
    """In English or in Chinese."""
    words = {"valid": ("valid", "有效"), "invalid": ("invalid", "无效")}
    if cell not in words[state]:
        findings.differs(MARKDOWN, f"{line}, state", cell, state)


def _check_final(
    place: Folder, rows: Sequence[tuple[int, list[str]]], cases: Sequence[DerivedCase]
) -> None:
    """The rows of final tables, in the order of their series."""
    found = [(count, cells) for count, cells in rows if _is_final(cells)]
    series: dict[str, list[DerivedCase]] = {}
    for case in cases:
        series.setdefault(case.settings, []).append(case)
    ordered = [case for group in series.values() for case in group]
    if len(found) != len(ordered):
        place.findings.differs(MARKDOWN, "", f"{len(found)} rows", f"{len(ordered)} cases")
        return
    for (count, cells), case in zip(found, ordered, strict=True):
        line, keys = f"line {count}", ("nodes", "gpus_per_node", "micro_batch_size")
        settings = [str(case.case.get(key)) for key in keys]
        place.findings.same(MARKDOWN, f"{line}, case", cells[:3], settings)
        _rounded(place.findings, line, cells[3], case.median)
        if case.speedup is not None or _NUMBER.fullmatch(cells[4]):
            _rounded(place.findings, line, cells[4], case.speedup)
        _percent(place.findings, line, cells[5], case.efficiency)
        _check_counted(place.findings, line, cells[6], case)
    _check_by_gpus(place, rows, list(series.values()))


def _is_final(cells: Sequence[str]) -> bool:
    """Whether a row is one of a final table: three sizes, and valid trials of all."""
    sizes = len(cells) >= 8 and all(cell.isdigit() for cell in cells[:3])
    return sizes and _COUNTED.fullmatch(cells[6]) is not None


def _check_groups(
    place: Folder,
    rows: Sequence[tuple[int, list[str]]],
    written: Mapping[str, object],
    cases: Sequence[DerivedCase],
) -> None:
    """The rows of the results by groups: latency, memory and throughput of cases."""
    named = written.get("cases")
    names = [text(at(it, "name")) for it in named] if isinstance(named, list) else []
    for case, name in zip(cases, names, strict=False):
        own = [
            (count, cells)
            for count, cells in rows
            if len(cells) >= 7
            and cells[1] == (name or case.token)
            and "logs/" not in cells[-2]
            and any(_COUNTED.fullmatch(cell) for cell in cells[5:])
        ]
        if len(own) != 1:
            place.findings.differs(MARKDOWN, name, f"{len(own)} rows", "1 row")
            continue
        ((count, cells),) = own
        line = f"line {count}"
        _rounded(place.findings, line, cells[4], case.median)
        counted = next(cell for cell in cells[5:] if _COUNTED.fullmatch(cell))
        _check_counted(place.findings, line, counted, case)


def _check_counted(findings: Findings, line: str, cell: str, case: DerivedCase) -> None:
    """Valid trials of a case."""
    findings.same(MARKDOWN, f"{line}, trials", cell.partition("/")[0], str(len(case.values)))


def _check_sureness(
    place: Folder, rows: Sequence[tuple[int, list[str]]], cases: Sequence[DerivedCase]
) -> None:
    """The rows of the table of spreads, in the order of the cases."""
    found = [(count, cells) for count, cells in rows if _is_sureness(cells)]
    if len(found) != len(cases):
        seen = f"{len(found)} rows of spreads"
        place.findings.differs(MARKDOWN, "", seen, f"{len(cases)} cases")
        return
    for (count, cells), case in zip(found, cases, strict=True):
        line, spread = f"line {count}", case.numbers.get("spread")
        _percent(place.findings, line, cells[1], spread if isinstance(spread, float) else None)
        _check_interval(place.findings, line, cells[2], case.numbers.get("interval"))
        transport = text(case_document(case).get("transport")) or "-"
        place.findings.same(MARKDOWN, f"{line}, transport", cells[3], transport)
        if len(cells) in (5, 7):
            _check_interval(place.findings, line, cells[4], case.speedup_interval)


def _is_sureness(cells: Sequence[str]) -> bool:
    """Whether a row has a spread and an interval behind a case."""
    if len(cells) not in (4, 5, 6, 7) or not re.fullmatch(r"-?\d+\.\d %|-?\d+\.\d%|n/a", cells[1]):
        return False
    return cells[2] == "n/a" or _INTERVAL.search(cells[2]) is not None


def _check_interval(findings: Findings, line: str, cell: str, interval: object) -> None:
    """Both ends of an interval, and what it covers."""
    if interval is None:
        return
    numbers = _INTERVAL.search(cell)
    ends = [at(interval, "low"), at(interval, "high"), _hundred(at(interval, "coverage"))]
    if numbers is None:
        findings.differs(MARKDOWN, f"{line}, interval", cell, ends)
        return
    for cell, value in zip(numbers.groups(), ends, strict=True):
        _rounded(findings, line, cell, value if isinstance(value, float) else None)


def _check_by_gpus(
    place: Folder, rows: Sequence[tuple[int, list[str]]], series: Sequence[Sequence[DerivedCase]]
) -> None:
    """The tables with a row per number of GPUs: throughputs, then speedups."""
    seen: dict[str, int] = {}
    for count, cells in rows:
        ranks = re.match(r"\d+", cells[0])
        if len(cells) != 1 + len(series) or not ranks or _is_other(cells):
            continue
        again = seen.get(cells[0], 0)
        seen[cells[0]] = again + 1
        for cell, group in zip(cells[1:], series, strict=True):
            placed = [it for it in group if f"({_placement(it)})" in cells[0]]
            own = placed or [it for it in group if str(it.ranks) == cells[0]]
            if _NUMBER.fullmatch(cell) and own:
                value = own[0].speedup if again else own[0].median
                _rounded(place.findings, f"line {count}", cell, value)
            elif _NUMBER.fullmatch(cell):
                place.findings.differs(MARKDOWN, f"line {count}", cell, "no such case")


def _placement(case: DerivedCase) -> str:
    return f"{case.case.get('nodes')}x{case.case.get('gpus_per_node')}"


def _rounded(findings: Findings, line: str, cell: str, value: float | None) -> None:
    """A number must be what rounding gives, to as many decimals as it is printed with."""
    findings.numbers += 1
    if value is None:
        if _NUMBER.fullmatch(cell):
            findings.differs(MARKDOWN, line, cell, None)
        return
    decimals = len(cell.partition(".")[2])
    if not _NUMBER.fullmatch(cell) or f"{value:.{decimals}f}" != cell:
        findings.differs(MARKDOWN, line, cell, f"{value:.4f}")


def _percent(findings: Findings, line: str, cell: str, value: float | None) -> None:
    number = cell.removesuffix("%").strip()
    if value is None and not _NUMBER.fullmatch(number):
        return
    _rounded(findings, line, number, _hundred(value))


def _hundred(share: object) -> float | None:
    return share * 100 if isinstance(share, float) else None


def _is_other(cells: Sequence[str]) -> bool:
    """Whether a row is of another table than those by numbers of GPUs."""
    return len(cells) >= 10 or _is_final(cells) or _is_sureness(cells)
