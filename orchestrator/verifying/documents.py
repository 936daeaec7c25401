"""What results.json must say, as it follows from derived cases."""

from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from statistics import median

from orchestrator.verifying.cases import CaseTrial, DerivedCase
from orchestrator.verifying.differences import at, number
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.nodes import NodeSpeeds
from orchestrator.verifying.trials import global_batch

LEAST_DRIFT = 0.02
FIT = 1e-9
ENDS = ("low", "high")
LEARNT_FROM = 3
"""Valid trials of a case from which on its own spread says what a canary may drift."""


def of_case(case: DerivedCase, written: object = None) -> dict[str, object]:
    """Return what must be written of a case, but for its marks."""
    sources = sorted({source for _, _, source in case.energies})
    return {
        "case": _described(case),
        "trials_valid": len(case.values),
        "trials_planned": case.planned,
        "settled": case.settled,
        **case.numbers,
        "speedup": case.speedup,
        "speedup_interval": _as_close(case.speedup_interval, at(written, "speedup_interval")),
        "efficiency": case.efficiency,
        "latency_s": _middle(trial.derived.latency_s for trial in case.valid),
        "memory_mib": max(_known(trial.derived.memory_mib for trial in case.valid), default=None),
        "energy_per_sample_j": _middle(joules for _, joules, _ in case.energies),
        "energy_source": " ".join(sources) or None,
        "transport": None if case.transport == "-" else case.transport,
        "trials": [_of_trial(trial) for trial in case.trials],
    }


def of_canary(
    trials: Sequence[CaseTrial], cases: Sequence[DerivedCase]
) -> tuple[dict[str, object], list[Mark]]:
    """What must be said of a canary, and DRIFT where it drifted."""
    valid = [
        (trial.plan.get("canary"), trial.derived.throughput)
        for trial in trials
        if trial.state == "valid"
    ]
    found = sorted(value for _, value in valid if value is not None)
    drift = (found[-1] - found[0]) / median(found) if len(found) > 1 else None
    bound = max(LEAST_DRIFT, _own_spread(trials[0].plan.get("case"), cases))
    marks = []
    if drift is not None and drift > bound:
        seen = (f"{value:.2f} at the {place}" for place, value in valid)
        marks.append(Mark("DRIFT", (f"{drift:.1%}", *seen, f"at most {bound:.1%}")))
    documents = [{"place": trial.plan.get("canary"), **_of_trial(trial)} for trial in trials]
    case = trials[0].plan["case"]
    assert isinstance(case, Mapping)
    own = _described(DerivedCase(case, []))
    return {"case": own, "drift": drift, "bound": bound, "trials": documents}, marks


def _own_spread(case: object, cases: Sequence[DerivedCase]) -> float:
    """Of the canary's own case, where it has enough trials to tell."""
    spreads = (
        number(own.numbers.get("spread"))
        for own in cases
        if own.case == case and len(own.values) >= LEARNT_FROM
    )
    return next(filter(None, spreads), 0.0)


def of_nodes(found: NodeSpeeds) -> list[dict[str, object]]:
    """Return what must be written of the speeds of nodes."""
    return [
        {"node": node, "trials": count, "speed": speed}
        for node, (count, speed) in found.speeds.items()
    ]


def _as_close(interval: dict[str, object] | None, written: object) -> dict[str, object] | None:
    """Return the interval with the ends that are written, where these agree to nine digits.

    Student's t is computed in two ways, and the last digits differ.
    """
    if interval is None:
        return None
    ends = {end: (number(interval[end]) or 0.0, number(at(written, end)) or 0.0) for end in ENDS}
    close = {end: said for end, (own, said) in ends.items() if isclose(own, said, rel_tol=FIT)}
    return {**interval, **close}


def _described(case: DerivedCase) -> dict[str, object]:
    """A case, its parameters among its other settings, with what follows from them."""
    own = dict(case.case)
    params = own.pop("params", None)
    return {
        **own,
        "placement": f"{own['nodes']}x{own['gpus_per_node']}",
        "world_size": case.ranks,
        "global_batch_size": global_batch(own),
        **{f"params.{key}": value for key, value in (params if isinstance(params, list) else [])},
    }


def _of_trial(trial: CaseTrial) -> dict[str, object]:
    found: dict[str, object] = {
        "trial": trial.name,
        "repeat": trial.plan.get("repeat"),
        "attempt": 0 if trial.state == "not-needed" else trial.outcome.get("attempt", 0),
        "state": trial.state,
    }
    if trial.state == "invalid" and trial.sha256 is None:
        found |= {"nodes": [], "sha256": None, "log": None}
    elif trial.state in ("valid", "invalid"):
        found |= {"nodes": trial.nodes, "sha256": trial.sha256, "beside": trial.beside}
        found |= {"log": f"logs/{trial.plan.get('log')}", "provenance": dict(trial.provenance)}
    if trial.state == "valid":
        joules, per_sample, source = trial.machines.energy or (None, None, None)
        found |= {
            "throughput": trial.derived.throughput,
            "rate_mean": trial.derived.rate_mean,
            "latency_s": trial.derived.latency_s,
            "memory_mib": trial.derived.memory_mib,
            "transport": None if trial.transport == "-" else trial.transport,
            "lines": trial.derived.lines,
            "problems": [],
            "machines": trial.machines.states,
            "energy_j": joules,
            "energy_per_sample_j": per_sample,
            "energy_source": source,
        }
    elif trial.state != "invalid":
        found |= {"throughput": None}
    return found


def _middle(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return median(known) if known else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
