"""Numbers in results.json, derived from raw logs and from each other."""

from collections.abc import Mapping
from math import fsum, isclose
from statistics import median

from orchestrator.verifying import intervals, readings
from orchestrator.verifying.findings import MOST, TOLERANCE, at, items, number, text
from orchestrator.verifying.folder import Folder

RESULTS = "results.json"
Object = Mapping[str, object]


def check(place: Folder, record: Object) -> None:
    """Derive the throughput of every trial and every number of every case."""
    document = place.document(RESULTS)
    if document is None:
        return
    plan = {text(it.get("name")): it for it in items(at(record, "plan", "trials"))}
    cases = items(document.get("cases"))
    canary = document.get("canary")
    groups = [(f"cases[{index}]", case) for index, case in enumerate(cases)]
    if isinstance(canary, Mapping):
        groups.append(("canary", canary))
    shown = []
    for where, group in groups:
        for index, trial in enumerate(items(group.get("trials"))):
            name = text(trial.get("trial"))
            shown.append(name)
            if trial.get("state") == "valid" and name in plan:
                _check_trial(place, f"{where}.trials[{index}]", trial, plan[name])
    if sorted(shown) != sorted(plan):
        place.findings.differs(RESULTS, "trials", f"{len(shown)} trials", f"{len(plan)} planned")
    planned = [_planned(case, plan) for case in cases]
    for index, case in enumerate(cases):
        alone = [
            it
            for it, own in zip(cases, planned, strict=True)
            if _ranks(own) == 1 and _settings(own) == _settings(planned[index])
        ]
        derived = _of_case(case, alone[-1] if alone else None, _ranks(planned[index]))
        place.findings.same(RESULTS, f"cases[{index}]", case, derived)


def global_batch(case: Object) -> int:
    """Return the samples of an optimizer step: micro batch x replicas x accumulation."""
    ranks = _whole(case, "nodes") * _whole(case, "gpus_per_node")
    split = _whole(case, "tensor_parallel", 1) * _whole(case, "pipeline_parallel", 1)
    steps = _whole(case, "accumulation_steps", 1)
    return _whole(case, "micro_batch_size") * (ranks // max(split, 1)) * steps


def _check_trial(place: Folder, where: str, trial: Object, planned: Object) -> None:
    findings, log = place.findings, f"logs/{text(planned.get('log'))}"
    written = number(trial.get("throughput"))
    findings.same(RESULTS, f"{where}.log", trial.get("log"), log)
    findings.same(RESULTS, f"{where}.sha256", trial.get("sha256"), place.sha256(log))
    lines, window = _pair(trial.get("lines")), _pair(trial.get("window"))
    case = planned.get("case")
    if lines is None or written is None or not isinstance(case, Mapping):
        findings.leave("throughputs", f"{trial.get('trial')}: no lines are named")
        return
    rule, batch = text(trial.get("rule")), global_batch(case)
    try:
        derived = readings.derive(place.path / log, rule, window, lines, batch)
    except OSError as error:
        findings.differs(log, "", f"unreadable: {error.strerror}", "the log of a valid trial")
        return
    within = max(TOLERANCE, derived.tolerance)
    if any(isclose(written, value, rel_tol=within) for value in derived.values):
        findings.numbers += 1
    elif derived.likely:
        findings.differs(RESULTS, f"{where}.throughput", written, derived.likely[0])
    else:
        findings.leave("throughputs", f"{trial.get('trial')}: {derived.why_not}")


def _planned(case: Object, plan: Mapping[str, Object]) -> Object:
    """Return a case as the plan has it, by the name of its first trial."""
    first = next(iter(items(case.get("trials"))), {})
    own = at(plan, text(first.get("trial")), "case")
    return own if isinstance(own, Mapping) else {}


def _of_case(case: Object, alone: Object | None, ranks: int) -> dict[str, object]:
    """Derive the numbers of a case; ``alone`` is the case of one rank that it is compared with."""
    values = _values(case)
    if not values:
        keys = ("median", "mean", "min", "max", "spread", "interval", "speedup", "efficiency")
        return {"trials_valid": 0, **dict.fromkeys(keys)}
    middle, several = median(values), len(values) > 1
    derived: dict[str, object] = {
        "trials_valid": len(values),
        "median": middle,
        "mean": fsum(values) / len(values),
        "min": values[0],
        "max": values[-1],
        "spread": (values[-1] - values[0]) / middle if several else None,
        "interval": intervals.of_median(values) if several else None,
    }
    derived["published"] = [
        {"difference": middle / shown - 1}
        for it in items(case.get("published"))
        if (shown := number(it.get("throughput")))
    ]
    marks = {text(mark.get("code")) for mark in items(case.get("marks"))}
    base = _values(alone) if alone else []
    if not base or "BASELINE-DIFFERS" in marks:
        return {**derived, "speedup": None, "efficiency": None, "speedup_interval": None}
    speedup = middle / median(base)
    between = None if case is alone else intervals.between(values, base)
    return {
        **derived,
        "speedup": speedup,
        "efficiency": speedup / ranks,
        "speedup_interval": between,
    }


def _values(case: Object) -> list[float]:
    """Return the throughputs of a case's valid trials, ascending; a forged one may be 0."""
    valid = [it for it in items(case.get("trials")) if it.get("state") == "valid"]
    found = (number(trial.get("throughput")) for trial in valid)
    return sorted(value for value in found if value is not None and value > 1 / MOST)


def _ranks(planned: Object) -> int:
    return _whole(planned, "nodes") * _whole(planned, "gpus_per_node")


def _settings(planned: Object) -> str:
    """Return a text that is equal for cases that differ in their placement alone."""
    placement = ("nodes", "gpus_per_node")
    return str({key: value for key, value in planned.items() if key not in placement})


def _pair(value: object) -> tuple[int, int] | None:
    match value:
        case [int(first), int(last)]:
            return first, last
    return None


def _whole(case: Object, key: str, otherwise: int = 0) -> int:
    value = number(case.get(key))
    return otherwise if value is None else int(value)
