"""Reports on a folder of logs that no sweep made: cases by DLPerf's naming, else by header."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from orchestrator import __version__, errors
from orchestrator.collecting import package
from orchestrator.collecting.logs import Reading, read, read_all
from orchestrator.disk import on_disk, walk
from orchestrator.measuring import medians, published, validity
from orchestrator.measuring.validity import measure_log, value
from orchestrator.model.case import AXES, Case
from orchestrator.model.log import TrainingLog, global_batch_size
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog, Report, Writer
from orchestrator.model.result import Measurement
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload

_TOKEN = re.compile(r"([1-9][0-9]*)n([1-9][0-9]*)[gd]")
_NAME = re.compile(
    r"(\w+?)_b([1-9][0-9]*)_(fp32|fp16|bf16|amp)([^_]*)_([1-9][0-9]*)\.log", re.ASCII
)
_REPEAT = re.compile(r".*_([1-9][0-9]{0,3})")


def report_on(folder: Path, reading: Reading) -> Report:
    """Read every log below a folder and return the report on them; logs of a case are its trials.

    Raises:
        UsageError: NO-LOGS, NO-WORKLOAD, NO-RULE.
        LocalError: LOG-RIGHTS.
    """
    workload, source = reading.resolved(), escape_path(folder)
    paths, above = _find_logs(folder), folder if folder.is_dir() else folder.parent
    read_one = partial(_read_or_problem, workload=workload, window=reading.window)
    logs = [*zip(paths, read_all(paths, read_one), strict=True)]
    cases: list[tuple[Case, Measurement]] = []
    lone: list[LoneLog] = []
    for (path, log), case_of_log in zip(logs, _find_cases(folder, logs, workload), strict=True):
        name = escape_path(path.relative_to(above))
        if case_of_log is None:
            throughput, more = value(log, global_batch_size(log.config))
            problems = tuple(dict.fromkeys((*log.problems, *more)))
            lone.append(LoneLog(name, log, throughput, problems))
            continue
        case, repeat = case_of_log
        measurement = measure_log(log, case, None, trial=name, repeat=repeat, path=name)
        # Header values that are not in the case; trials of one median must share them.
        in_case = {**case.document(), **case.given}
        provenance = {key: str(it) for key, it in log.config.items() if key not in in_case}
        cases.append((case, replace(measurement, provenance=provenance)))
    by_case: dict[Case, list[Measurement]] = {}
    trials = validity.same_evidence([trial for _, trial in cases])
    for (case, _), trial in zip(cases, trials, strict=True):
        by_case.setdefault(case, []).append(trial)
    results = [
        medians.result(case, sorted(group, key=lambda trial: trial.repeat))
        for case, group in by_case.items()
    ]
    results.sort(key=lambda result: (result.case.precision, result.case.micro_batch_size))
    rules = {(log.rule, log.window) for _, log in logs}
    # Where there are several, each log's reader chose by what the log is.
    rule, window = next(iter(rules)) if len(rules) == 1 else (None, None)
    draft = Report(
        source=source,
        title=workload.title,
        workload=workload.name,
        unit=workload.unit,
        window=window,
        results=medians.compared(results),
        lone=tuple(sorted(lone, key=lambda it: (int(it.log.config.get("world_size", 0)), it.path))),
        rule=rule,
        began_ns=tuple(log.origin_ns for _, log in logs),
        commands=(reading.command(source),),
        writer=Writer(__version__, package.digest(workload.name)),
    )
    return published.complete_report(draft, workload, package.published_results())


def _find_cases(
    folder: Path, logs: Sequence[tuple[Path, TrainingLog]], workload: Workload
) -> list[tuple[Case, int] | None]:
    """Return the case and repeat of each log; None where name and header lack a part of it.

    One case in two folders counts as two campaigns: each folder then has its own medians, while the
    folders that DLPerf's scripts make per precision belong together.
    """
    shared_headers = _share_headers(logs, workload)
    cases: list[tuple[Case, int] | None] = []
    campaigns: dict[Case, set[Path]] = {}
    for path, log in logs:
        header = {**shared_headers[_series(path)], **log.config}
        cases.append(read_case(path.absolute(), header, workload))
        if found := cases[-1]:
            campaigns.setdefault(found[0], set()).add(path.absolute().parent.parent)
    if all(len(folders) == 1 for folders in campaigns.values()):
        return cases
    for place, ((path, _), found) in enumerate(zip(logs, cases, strict=True)):
        if found:
            campaign = escape_path(os.path.relpath(path.parent.parent, folder))
            params = (*found[0].params, ("folder", campaign))
            cases[place] = replace(found[0], params=params), found[1]
    return cases


def read_case(
    path: Path, header: Mapping[str, Scalar], workload: Workload
) -> tuple[Case, int] | None:
    """Return case and repeat by a log's name and header, None if both lack part of the case.

    A log of another name is the repeat at the end of the name, else 1.

    Args:
        path: absolute, such as ``.../2n8g/r50_b128_fp32_1.log``.
    """
    token, name = _TOKEN.fullmatch(path.parent.name), _NAME.fullmatch(path.name)
    from_name = workload.told_by_name(path.stem)
    header = {**header, **from_name}  # a header that contradicts the name is a mismatch
    label = ""
    if token and name:
        nodes, gpus, batch = int(token[1]), int(token[2]), int(name[2])
        precision, repeat = "amp" if name[3] == "fp16" else name[3], int(name[5])
        label = (name[1] if name[1] != workload.log_prefix else "") + ("" if from_name else name[4])
    else:
        match [
            header.get(key) for key in ("nodes", "gpus_per_node", "micro_batch_size", "precision")
        ]:
            case [int(nodes), int(gpus), int(batch), str(precision)]:
                of_name = _REPEAT.fullmatch(path.stem)
                repeat = int(of_name[1]) if of_name else 1
            case _:
                return None
    params = {name: header[name] for name in workload.params.model_fields if name in header}
    if precision != "amp":
        params.pop("loss_scale", None)
    if label:  # logs with different names must not share a median
        params["named"] = label.strip("-")
    axes = {
        axis: value for axis in AXES if isinstance(value := header.get(axis), int) and value > 0
    }
    case = Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=batch,
        precision=precision,
        device=str(header.get("device", "cuda")),
        params=tuple(params.items()),
        **axes,
    )
    return case, repeat


def _find_logs(folder: Path) -> list[Path]:
    with on_disk(folder, "LOG-RIGHTS", "make it readable for this user"):
        if not folder.exists():
            raise errors.UsageError(
                f"there is no {folder}", code="NO-LOGS", fix="give a folder or a file of logs"
            )
        if folder.is_file():
            return [folder]
    root = Path(os.path.realpath(folder))
    paths_found: dict[tuple[Path, str], Path] = {}
    for path, _, problem in walk(folder, "LOG-RIGHTS", outside=True):
        # A link that leads nowhere is a log that is missing: it is named, not passed over.
        if path.suffix in (".log", ".txt") and not (problem and os.path.exists(path)):
            place = Path(os.path.realpath(path.parent))
            # A folder that a link such as `latest` repeats counts once, by its own name.
            if place == root / path.parent.relative_to(folder):
                paths_found[place, path.name] = path
            paths_found.setdefault((place, path.name), path)
    if not paths_found:
        raise errors.UsageError(
            f"no log in {folder}", code="NO-LOGS", fix="give a folder that holds *.log or *.txt"
        )
    return sorted(paths_found.values())


def _read_or_problem(path: Path, workload: Workload, window: tuple[int, int] | None) -> TrainingLog:
    """Read a log; one that cannot be read becomes an empty log with that problem."""
    try:
        return read(path, workload, window)
    except errors.LogError as error:
        nothing = workload.read((), window)
        return replace(nothing, sha256="", problems=(Problem(error.code, error.cause),))


def _series(path: Path) -> tuple[Path, str]:
    """Return the folder and the part of the name that all repeats of a case share."""
    return path.parent, path.name.rpartition("_")[0]


def _share_headers(
    logs: Sequence[tuple[Path, TrainingLog]], workload: Workload
) -> Mapping[tuple[Path, str], Mapping[str, Scalar]]:
    """Return the header values that the logs of each series agree on.

    So a log that was cut before its header stays a trial of its case.
    """
    by_series: dict[tuple[Path, str], dict[str, set[Scalar]]] = {}
    for path, log in logs:
        series = by_series.setdefault(_series(path), {})
        for key in (*AXES, "device", *workload.params.model_fields):
            if key in log.config:
                series.setdefault(key, set()).add(log.config[key])
    return {
        series: {key: value for key, (value, *more) in values.items() if not more}
        for series, values in by_series.items()
    }


def escape_path(path: Path | str) -> str:
    """Escape the bytes of a path that are no UTF-8, so that every report can contain it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
