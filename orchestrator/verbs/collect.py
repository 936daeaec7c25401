"""collect: logs to medians, speedups, tables and reports; offline and repeatable."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import errors, measure, report, workloads
from orchestrator.console import Voice
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.facts import JSON
from orchestrator.model.log import TrainingLog
from orchestrator.model.plan import Plan, TrialPlan
from orchestrator.model.problem import Problem
from orchestrator.model.report import LoneLog, Report
from orchestrator.model.result import Evidence, Measurement, Result
from orchestrator.model.site import Site
from orchestrator.model.text import Scalar
from orchestrator.store import Store, Sweep, dumps, write
from orchestrator.workloads import Workload

PLAN = TypeAdapter(Plan)
CHUNK_BYTES = 1 << 20
_TOKEN = re.compile(r"([1-9][0-9]*)n([1-9][0-9]*)g")
_NAME = re.compile(r"([A-Za-z0-9]+)_b([1-9][0-9]*)_(fp32|fp16|amp)([^_]*)_([1-9][0-9]*)\.log")
# What belongs to a case and only a header tells; the names of logs do not hold it.
_HEADER_ONLY = ("accumulation_steps", "device", "loss_scale")


def collect_sweep(store: Store, sweep_id: str | None, voice: Voice) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code."""
    sweeps = store.sweeps()
    if sweep_id is None and not sweeps:
        raise errors.UsageError(
            f"no sweep in {store.root}", code="NO-SWEEP", fix="run `dlperf-orch sweep PLAYBOOK`"
        )
    sweep = store.sweep(sweep_id) if sweep_id else sweeps[0]
    return present(sweep, measured(sweep), voice)


def collect_logs(
    folder: Path, workload: str, window: tuple[int, int] | None, out: Path | None, voice: Voice
) -> int:
    """Measure a folder of logs that no sweep of ours made; exit code."""
    how = workloads.find(workload)
    if how is None:
        raise errors.UsageError(
            f"there is no workload {workload!r}",
            code="NO-WORKLOAD",
            fix=f"needed one of {', '.join(workloads.names())}",
        )
    found = _folder(folder, how, window or how.window)
    voice.results(found)
    _say_reasons(found, voice)
    if out is not None:
        _write_reports(out, found)
        voice.result(f"Report: {out / 'report.md'}")
    code = 3 if found.incomplete else 0
    voice.document({"exit_code": code, **report.document(found)})
    return code


def present(sweep: Sweep, found: Report, voice: Voice, wanted: frozenset[str] | None = None) -> int:
    """Write a sweep's reports, show its table and where they are; exit code.

    Args:
        wanted: names of the trials that the exit code is about; None for all.
    """
    _write_reports(sweep.folder, found)
    if found.shared_machine:
        voice.result(report.SHARED_MACHINE)
    voice.results(found)
    _say_reasons(found, voice)
    voice.result(f"Report: {sweep.folder / 'report.md'}")
    trials = [trial for result in found.results for trial in result.trials]
    asked = [trial for trial in trials if wanted is None or trial.trial in wanted]
    code = 3 if any(trial.state != "valid" for trial in asked) else 0
    voice.document({"exit_code": code, "sweep": sweep.id, **report.document(found)})
    return code


def read(path: Path, workload: Workload, window: tuple[int, int]) -> TrainingLog:
    """What a log says.

    Raises:
        LogError: the file cannot be read at all.
    """
    try:
        with open(path, "rb") as file:
            return workload.read(iter(lambda: file.read(CHUNK_BYTES), b""), window)
    except OSError as error:
        raise errors.LogError(f"{path}: {error.strerror}", code="READ") from error


def measured(sweep: Sweep) -> Report:
    """Everything that a sweep's folder gives, measured from its raw logs.

    Raises:
        StoreError: the folder is damaged.
    """
    record = sweep.record()
    try:
        plan = PLAN.validate_python(record["plan"], strict=False)
        site = TypeAdapter(Site).validate_python(record["site"], strict=False)
    except (KeyError, ValueError) as error:
        raise errors.StoreError(
            f"{sweep.folder}/sweep.json does not read: {str(error).splitlines()[0]}",
            code="STORE-DAMAGED",
            fix="start anew with sweep --new; the logs are untouched",
        ) from error
    workload = workloads.find(plan.workload)
    if workload is None:
        raise errors.StoreError(
            f"sweep {sweep.id} is of workload {plan.workload}, which is not installed",
            code="NO-WORKLOAD",
        )
    trials = measure.same_evidence([_trial(sweep, plan, trial, workload) for trial in plan.trials])
    by_case: dict[Case, list[Measurement]] = {}
    for trial, measurement in zip(plan.trials, trials, strict=True):
        by_case.setdefault(trial.case, []).append(measurement)
    results = measure.compared([measure.result(*item) for item in by_case.items()])
    return _report(sweep, plan, site, workload, results)


def _report(
    sweep: Sweep, plan: Plan, site: Site, workload: Workload, results: tuple[Result, ...]
) -> Report:
    planned = max((trial.repeat for trial in plan.trials), default=0)
    return Report(
        source=sweep.id,
        title=workload.title,
        experiment=plan.experiment,
        workload=plan.workload,
        unit=workload.unit,
        window=plan.method.window,
        method=plan.method.model_copy(update={"repeats": planned}),
        trials_planned=planned,
        cluster=plan.cluster,
        image=plan.image,
        image_digest=plan.image_digest,
        shared_machine=site.shared_machine,
        environment=_environment(site),
        results=results,
        lone=(),
    )


def _trial(sweep: Sweep, plan: Plan, trial: TrialPlan, workload: Workload) -> Measurement:
    outcome = sweep.outcome(trial.log)
    if outcome is None:
        missing = Problem("MISSING", "it has not been run")
        return Measurement(
            trial.name, trial.repeat, 0, "planned", None, None, (missing,), (), None, {}
        )
    path = sweep.log(trial.log)
    if outcome.get("state") not in ("valid", "invalid") or not path.exists():
        return _unmeasured(trial, outcome)
    log = read(path, workload, plan.method.window)
    provenance = outcome.get("provenance")
    found = judged(log, trial, plan.method, str(path.relative_to(sweep.folder)))
    if log.sha256 != outcome.get("sha256"):
        changed = Problem("LOG-CHANGED", "its sha256 is not the one of its outcome")
        found = _also(found, changed)
    return Measurement(
        trial=trial.name,
        repeat=trial.repeat,
        attempt=_whole(outcome.get("attempt")),
        state=found.state,
        throughput=found.throughput,
        rate=found.rate,
        problems=found.problems,
        marks=found.marks,
        evidence=found.evidence,
        provenance={k: str(v) for k, v in provenance.items()}
        if isinstance(provenance, Mapping)
        else {},
    )


def judged(log: TrainingLog, trial: TrialPlan, method: Method, path: str) -> Measurement:
    """A trial's log, measured and judged against its case."""
    return _judged(log, trial.case, method, method.window, (trial.name, trial.repeat, path))


def _judged(
    log: TrainingLog,
    case: Case,
    method: Method | None,
    window: tuple[int, int],
    who: tuple[str, int, str],
) -> Measurement:
    name, repeat, path = who
    marks = tuple(each for each in log.problems if each.code in measure.MARKS)
    problems = [each for each in log.problems if each.code not in measure.MARKS]
    problems += measure.mismatches(log, case, method)
    value, more = _value(log, case.global_batch_size, window)
    asked = case.micro_batch_size * case.world_size * case.accumulation_steps
    if measure.global_batch_size(log) not in (None, asked):
        value, more = None, []  # the mismatch is a problem already, and no batch can be trusted
    problems += more
    lines = (log.start.line, log.end.line) if log.start and log.end else None
    return Measurement(
        trial=name,
        repeat=repeat,
        attempt=0,
        state="invalid" if problems else "valid",
        throughput=value,
        rate=log.rate.mean if log.rate else None,
        problems=tuple(problems),
        marks=marks,
        evidence=Evidence(path, lines, log.sha256, log.digest),
        provenance={},
    )


def _value(
    log: TrainingLog, batch: int | None, window: tuple[int, int]
) -> tuple[float | None, list[Problem]]:
    """Throughput over the window, or why there is none; no second word where one was said."""
    if log.runs > 1 or log.steps == 0:
        return None, []
    if batch is None:
        return None, [Problem("NO-BATCH", "neither header nor name says the global batch size")]
    try:
        value = measure.throughput(log, batch, window)
    except errors.LogError as error:
        return None, [Problem(error.code, error.cause)]
    mismatch = measure.rate_problem(log, value)
    return value, [mismatch] if mismatch else []


def _also(found: Measurement, problem: Problem) -> Measurement:
    return Measurement(
        found.trial,
        found.repeat,
        found.attempt,
        "invalid",
        found.throughput,
        found.rate,
        (*found.problems, problem),
        found.marks,
        found.evidence,
        found.provenance,
    )


def _unmeasured(trial: TrialPlan, outcome: Mapping[str, JSON]) -> Measurement:
    said = outcome.get("problems")
    problems = tuple(
        Problem(str(each.get("code")), str(each.get("message")))
        for each in (said if isinstance(said, list) else [])
        if isinstance(each, dict)
    )
    return Measurement(
        trial.name,
        trial.repeat,
        _whole(outcome.get("attempt")),
        str(outcome.get("state")),
        None,
        None,
        problems or (Problem("MISSING", "its log is gone"),),
        (),
        None,
        {},
    )


def _whole(value: JSON) -> int:
    return value if isinstance(value, int) else 0


def _environment(site: Site) -> dict[str, dict[str, str]]:
    rows = {}
    for name, facts in site.nodes.items():
        host = facts.host
        rows[name] = {
            "hostname": host.hostname,
            "system": host.system,
            "kernel": host.kernel,
            "CPU": f"{host.cpu_model}, {host.cpus} usable",
            "memory": f"{host.memory_mib} MiB",
        }
        if host.torch:
            rows[name]["torch"] = host.torch
        if facts.gpu:
            rows[name]["GPUs"] = ", ".join(facts.gpu.models)
            rows[name]["driver"] = f"{facts.gpu.driver}, CUDA {facts.gpu.cuda}"
    return rows


def _write_reports(folder: Path, found: Report) -> None:
    write(folder / "results.json", dumps(report.document(found)).encode())
    write(folder / "results.csv", report.csv_text(found).encode())
    write(folder / "report.md", report.markdown(found).encode())


def _say_reasons(found: Report, voice: Voice) -> None:
    trials = [trial for result in found.results for trial in result.trials]
    for trial in trials:
        for problem in (*trial.problems, *trial.marks):
            if trial.state != "planned":
                voice.line(f"{trial.trial}: {trial.state}: {problem.code}: {problem.message}")
    missing = sum(trial.state == "planned" for trial in trials)
    if missing:
        voice.line(f"{missing} of {len(trials)} planned trials have not been run")
    for lone in found.lone:
        for problem in lone.problems:
            voice.line(f"{lone.path}: {problem.code}: {problem.message}")


def _folder(folder: Path, workload: Workload, window: tuple[int, int]) -> Report:
    logs = [(path, _read_or_say(path, workload, window)) for path in _log_files(folder)]
    if not logs:
        raise errors.UsageError(
            f"no log in {folder}", code="NO-LOGS", fix="give a folder that holds *.log or *.txt"
        )
    alike = _said_alike(logs)
    cases: list[tuple[Case, Measurement]] = []
    lone: list[LoneLog] = []
    for path, log in logs:
        name = str(path.relative_to(folder)) if folder.is_dir() else path.name
        named = _named(path, {**alike[_series(path)], **log.config}, workload)
        if named is None:
            lone.append(_lone(name, log, window))
            continue
        case, repeat = named
        found = _judged(log, case, None, window, (name, repeat, name))
        cases.append((case, replace(found, provenance=_header_provenance(log, case))))
    return _folder_report(folder, workload, window, cases, lone)


def _folder_report(
    folder: Path,
    workload: Workload,
    window: tuple[int, int],
    cases: list[tuple[Case, Measurement]],
    lone: list[LoneLog],
) -> Report:
    trials = measure.same_evidence([trial for _, trial in cases])
    by_case: dict[Case, list[Measurement]] = {}
    for (case, _), trial in zip(cases, trials, strict=True):
        by_case.setdefault(case, []).append(trial)
    results = [
        measure.result(case, sorted(group, key=lambda trial: trial.repeat))
        for case, group in by_case.items()
    ]
    results.sort(
        key=lambda each: (each.case.precision, each.case.micro_batch_size, each.case.world_size)
    )
    return Report(
        source=str(folder),
        title=workload.title,
        experiment="",
        workload=workload.name,
        unit=workload.unit,
        window=window,
        method=None,
        trials_planned=None,
        cluster="",
        image="",
        image_digest="",
        shared_machine=False,
        environment={},
        results=measure.compared(results),
        lone=tuple(sorted(lone, key=_by_world_size)),
    )


def _log_files(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
    for path in sorted(folder.rglob("*")):
        # A link that leads nowhere is a log that is missing: it is named, not passed over.
        if path.suffix in (".log", ".txt") and (path.is_file() or path.is_symlink()):
            yield path


def _read_or_say(path: Path, workload: Workload, window: tuple[int, int]) -> TrainingLog:
    """What a log says; one that cannot be read says nothing but that, and ends no other's."""
    try:
        return read(path, workload, window)
    except errors.LogError as error:
        nothing = workload.read((), window)
        return replace(nothing, sha256="", problems=(Problem(error.code, error.cause),))


def _series(path: Path) -> tuple[Path, str]:
    """What the names of a case's repeats have in common."""
    return path.parent, path.name.rpartition("_")[0]


def _said_alike(
    logs: Sequence[tuple[Path, TrainingLog]],
) -> Mapping[tuple[Path, str], Mapping[str, Scalar]]:
    """By series, what the headers of its logs agree on.

    So a log that was cut before its header stays a trial of the case that it was one of.
    """
    said: dict[tuple[Path, str], dict[str, set[Scalar]]] = {}
    for path, log in logs:
        series = said.setdefault(_series(path), {})
        for key in _HEADER_ONLY:
            if key in log.config:
                series.setdefault(key, set()).add(log.config[key])
    return {
        series: {key: value for key, (value, *more) in values.items() if not more}
        for series, values in said.items()
    }


def _named(path: Path, header: Mapping[str, Scalar], workload: Workload) -> tuple[Case, int] | None:
    """The case that DLPerf's naming says, with what a header alone can tell, and the repeat."""
    token, name = _TOKEN.fullmatch(path.absolute().parent.name), _NAME.fullmatch(path.name)
    if token is None or name is None:
        return None
    precision = "fp32" if name[3] == "fp32" else "amp"
    params: dict[str, Scalar] = {}
    if precision == "amp" and "loss_scale" in header:
        params["loss_scale"] = header["loss_scale"]
    label = (name[1] if name[1] != workload.log_prefix else "") + name[4]
    if label:  # what the name says beyond the case must not be lost in a median
        params["named"] = label.strip("-")
    steps = header.get("accumulation_steps", 1)
    case = Case(
        nodes=int(token[1]),
        gpus_per_node=int(token[2]),
        micro_batch_size=int(name[2]),
        precision=precision,
        device=str(header.get("device", "cuda")),
        accumulation_steps=steps if isinstance(steps, int) else 1,
        params=tuple(params.items()),
    )
    return case, int(name[5])


def _header_provenance(log: TrainingLog, case: Case) -> dict[str, str]:
    """What a header says beyond its case: it must agree before trials share a median."""
    known = {**case.document(), **case.given}
    return {key: str(value) for key, value in log.config.items() if key not in known}


def _lone(name: str, log: TrainingLog, window: tuple[int, int]) -> LoneLog:
    value, more = _value(log, measure.global_batch_size(log), window)
    problems = tuple(dict.fromkeys((*log.problems, *more)))
    return LoneLog(name, log, value, problems)


def _by_world_size(lone: LoneLog) -> tuple[int, str]:
    world = lone.log.config.get("world_size")
    return (world if isinstance(world, int) else 0, lone.path)


def selected(trials: Iterable[TrialPlan], pattern: str | None) -> tuple[TrialPlan, ...]:
    """The trials whose case or name fits a glob pattern, such as ``2x*`` or ``4n8g-*``."""
    return tuple(
        trial
        for trial in trials
        if pattern is None
        or fnmatch.fnmatchcase(trial.case.placement, pattern)
        or fnmatch.fnmatchcase(trial.name, pattern)
    )
