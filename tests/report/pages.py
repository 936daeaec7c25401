"""Reports that have everything, for tests of pages and figures."""

from dataclasses import replace

from orchestrator.measuring import medians
from orchestrator.model.log import reduce_rates
from orchestrator.model.problem import Problem
from orchestrator.model.report import LogSource, LoneLog, Report
from orchestrator.model.result import NodeSpeed, Result, Watched
from orchestrator.model.site import Finding
from orchestrator.model.telemetry import HeldClocks
from orchestrator.probes import topology
from orchestrator.report import node_facts
from tests import SAMPLES
from tests.report.test_machines import STATE
from tests.report.throttled import throttled
from tests.reported import LOG, PUBLISHED, SEED_AMP, logged, results, sweep

GAP = Problem("GAP", "line 90: the median is 0.4 s")
CHANGED = Problem("LOG-CHANGED", "its sha256 is not the one that was taken when it ran")
THROTTLED = Problem(
    "THROTTLED",
    "node vs002: the clocks of GPU 0 were held down by sw_thermal_slowdown in 14 of 52 moments",
)
LONG = "paddleperf_2023-08-08_ec8b8cc_V100-LOG__pytorch_gpu8_amp_bs256.txt"
FP32 = {"1x1": (367.2, 368.1), "4x8": (11100.0, 11180.5)}


def traced(found: Result) -> Result:
    """With rates over 100 iterations that rise to what was measured; the second trial dips."""
    trials = []
    for trial in found.trials:
        value = trial.throughput or 0.0
        rates = [value * min(1.0, 0.3 + n / 6) * (0.7 if n == 60 else 1) for n in range(1, 101)]
        trace = reduce_rates(1, 1, rates)
        if trial.repeat == 2:
            pairs = enumerate(zip(rates[::2], rates[1::2], strict=True))
            trace = tuple((2 * n + 1, 2 * n + 2, min(it), *it) for n, it in pairs)
        trials.append(logged(trial, trace=trace if value else (), window=(25, 95)))
    return replace(found, trials=tuple(trials))


def held(found: Result, repeat: int, *clocks: HeldClocks) -> Result:
    """With nodes whose clocks were held down beside one trial, and the mark that it gave."""
    trials = [*found.trials]
    trial = trials[repeat - 1]
    trials[repeat - 1] = replace(trial, held=clocks, marks=(*trial.marks, THROTTLED))
    return medians.result(found.case, trials)


def whole() -> Report:
    """Two series, published results, marks, a damaged log, a failed trial, logs of no case."""
    amp = {**SEED_AMP, "2x8": (11991.9, 12003.4, None, 11950.2, 17000.0)}
    found = [traced(result) for result in results(amp)]
    trials = list(found[3].trials)
    trials[0] = replace(trials[0], state="invalid", problems=(CHANGED,))
    trials[1] = replace(trials[1], marks=(GAP,))
    found[3] = medians.result(found[3].case, trials)
    trials = list(found[2].trials)
    trials[4] = replace(trials[4], state="invalid", problems=(CHANGED,))
    found[2] = medians.result(found[2].case, trials)
    found += [traced(result) for result in results(FP32, precision="fp32", micro_batch_size=128)]
    text = (SAMPLES / "topo" / "ucxpy_dgx1v_8gpu_4mlx5.txt").read_text()
    wiring = topology.parse(text)
    drawn = node_facts.matrix(wiring.links, wiring.cpu_affinity)
    facts = {"GPUs": "Tesla V100-SXM2-16GB x 8", "HCA mlx5_0:1": "100 Gb/s InfiniBand"}
    first = replace(found[0].trials[0], machines=(STATE,))
    found[0] = replace(found[0], trials=(first, *found[0].trials[1:]))
    found[3] = held(found[3], 2, throttled("vs002", 63, range(20, 34)))
    places, canaries = ("start", "end"), found[0].trials[:2]
    drifts = (Problem("DRIFT", "4.0 %"),)
    return sweep(
        medians.compared(found),
        node_speeds=(NodeSpeed("vs001", 4, 1.0), NodeSpeed("vs002", 4, 0.91, is_slow=True)),
        marks=(Problem("SLOW-NODE", "vs002 is 9.0 % slower than the others"),),
        canary=Watched(found[0].case, places, canaries, 0.04, 0.03, drifts),
        environment={f"vs00{n}": {"hostname": f"VS00{n}", **facts} for n in range(1, 5)},
        topologies={f"vs00{n}": drawn for n in range(1, 5)},
        published={found[3].case: (PUBLISHED,)},
        lone=(LoneLog(LONG, LOG, 6098.37, ()), LoneLog("b.txt", LOG, None, (GAP,))),
        created="2026-09-15T10:11:12Z",
        commands=("dlperf-orch sweep rn50-amp --inventory v100x4",),
        written_by="0.0.9",
        findings=(Finding("warning", "GOVERNOR", "vs002", "powersave", "performance", "set it"),),
    )


def sources(found: Report) -> dict[str, LogSource]:
    """Of each log two lines."""
    logs = [trial.path for result in found.results for trial in result.trials]
    lines = ((40, "DLL 2020 - Epoch: 0 Iteration: 25"), (140, "DLL 2020 - Iteration: 125"))
    return {path: LogSource(path, lines) for path in logs if path}
