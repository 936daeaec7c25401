"""Whole reports: some by name, which have everything together, and others drawn by a seed."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from orchestrator.measuring import medians, settling
from orchestrator.model.experiment import Method, Repeats
from orchestrator.model.log import Moment, reduce_rates
from orchestrator.model.problem import Problem
from orchestrator.model.report import Layout, LogSource, LoneLog, Report
from orchestrator.model.result import NOT_NEEDED, NodeSpeed, Result, Watched
from orchestrator.model.site import Finding
from orchestrator.model.telemetry import Energy, HeldClocks, MachineState
from orchestrator.probes import topology
from orchestrator.report import node_facts
from tests import SAMPLES
from tests.report.throttled import throttled
from tests.reported import (
    LOG,
    PUBLISHED,
    SEED_AMP,
    folder,
    logged,
    results,
    sweep,
    trial,
    unrun,
)

GAP = Problem("GAP", "line 90: the median is 0.4 s")
CHANGED = Problem("LOG-CHANGED", "its sha256 is not the one that was taken when it ran")
THROTTLED = Problem(
    "THROTTLED",
    "node vs002: the clocks of GPU 0 were held down by sw_thermal_slowdown in 14 of 52 moments",
)
LONG = "paddleperf_2023-08-08_ec8b8cc_V100-LOG__pytorch_gpu8_amp_bs256.txt"
FP32 = {"1x1": (367.2, 368.1), "4x8": (11100.0, 11180.5)}
STATE = MachineState(
    node="vs001",
    span="window",
    seconds=31.5,
    moments=31,
    sm_mhz=1530.0,
    memory_mhz=877.0,
    power_w=287.4,
    temperature_c=61.0,
    utilisation_pct=99.0,
    memory_mib=15200.0,
    limits=("sw_power_cap",),
    slowed_s=0.0,
    others_cpus=0.3,
    steal=0.001,
    load=4.2,
)
CPU_ONLY = MachineState(node="vs002", span="run", seconds=9.0, moments=9, others_cpus=0.1, load=1.0)


def traced(found: Result) -> Result:
    """Add rates over 100 iterations that rise to the throughput; those of trial 2 dip once."""
    trials = []
    for one in found.trials:
        value = one.throughput or 0.0
        rates = [value * min(1.0, 0.3 + n / 6) * (0.7 if n == 60 else 1) for n in range(1, 101)]
        trace = reduce_rates(1, 1, rates)
        if one.repeat == 2:
            pairs = enumerate(zip(rates[::2], rates[1::2], strict=True))
            trace = tuple((2 * n + 1, 2 * n + 2, min(it), *it) for n, it in pairs)
        trials.append(logged(one, trace=trace if value else (), window=(25, 95)))
    return replace(found, trials=tuple(trials))


def changed(found: Result, repeat: int, **fields: object) -> Result:
    """Return the case with other fields in one of its trials, measured again."""
    trials = [*found.trials]
    trials[repeat - 1] = replace(trials[repeat - 1], **fields)  # type: ignore[arg-type] # passed on
    return medians.result(found.case, trials)


def held(found: Result, repeat: int, *clocks: HeldClocks) -> Result:
    """Return the case with one trial whose nodes' clocks were held down."""
    marks = (*found.trials[repeat - 1].marks, THROTTLED)
    return changed(found, repeat, held=clocks, marks=marks)


def whole() -> Report:
    """Return two series, published results, marks, damaged and failed trials, lone logs."""
    amp = {**SEED_AMP, "2x8": (11991.9, 12003.4, None, 11950.2, 17000.0)}
    found = [traced(result) for result in results(amp)]
    found[3] = changed(found[3], 1, state="invalid", problems=(CHANGED,))
    found[3] = changed(found[3], 2, marks=(GAP,))
    found[2] = changed(found[2], 5, state="invalid", problems=(CHANGED,))
    found += [traced(result) for result in results(FP32, precision="fp32", micro_batch_size=128)]
    text = (SAMPLES / "topo" / "ucxpy_dgx1v_8gpu_4mlx5.txt").read_text()
    wiring = topology.parse(text)
    drawn_wiring = node_facts.matrix(wiring.links, wiring.cpu_affinity)
    facts = {"GPUs": "Tesla V100-SXM2-16GB x 8", "HCA mlx5_0:1": "100 Gb/s InfiniBand"}
    found[0] = changed(found[0], 1, machines=(STATE,))
    found[3] = held(found[3], 2, throttled("vs002", 63, range(20, 34)))
    drifts = (Problem("DRIFT", "4.0 %"),)
    return sweep(
        medians.compared(found),
        node_speeds=(NodeSpeed("vs001", 4, 1.0), NodeSpeed("vs_2", 4, 0.91, is_slow=True)),
        marks=(Problem("SLOW-NODE", "vs_2 is 9.0 % slower than the others"),),
        canary=Watched(found[0].case, ("start", "end"), found[0].trials[:2], 0.04, 0.03, drifts),
        environment={f"vs00{n}": {"hostname": f"VS00{n}", **facts} for n in range(1, 5)},
        topologies={f"vs00{n}": drawn_wiring for n in range(1, 5)},
        published={found[3].case: (PUBLISHED,)},
        lone=(LoneLog(LONG, LOG, 6098.37, ()), LoneLog("b.txt", LOG, None, (GAP,))),
        created="2026-09-15T10:11:12Z",
        commands=("dlperf-orch sweep rn50-amp --inventory v100x4",),
        written_by="0.0.9",
        findings=(Finding("warning", "GOVERNOR", "vs002", "powersave", "performance", "set it"),),
        ran_s=3725.0,
    )


def stopped() -> Report:
    """Return a sweep on one machine, with no digest, that was stopped: every warning and reason."""
    one, two = results({"1x1": (800.0, None, None, 802.0), "1x4": (4000.0,)})
    marked = replace(one.trials[0], marks=(GAP,), machines=(STATE, CPU_ONLY))
    marked = replace(marked, energy=Energy(9000.0, 0.3571, "counter"))
    one = replace(one, trials=(marked, one.trials[1], unrun(one.trials[2]), one.trials[3]))
    older = replace(PUBLISHED, framework="ngc-pytorch-2023", throughput=3809.5, source="Perf")
    alike = {"GPUs": "Tesla V100-SXM2-16GB x 8", "memory": "386000 MiB", "usable CPUs": "48"}
    facts = {f"vs00{n}": {"hostname": f"VS00{n}", **alike} for n in range(1, 5)}
    facts["vs003"] |= {"memory": "257000 MiB"}
    near = node_facts.matrix({"GPU0": {"GPU1": "NV2"}, "GPU1": {"GPU0": "NV2"}}, {})
    far = node_facts.matrix({"GPU0": {"GPU1": "SYS"}, "GPU1": {"GPU0": "SYS"}}, {})
    again = [trial(one.case, n, value) for n, value in enumerate((803.5, None, 780.25), 1)]
    return sweep(
        (one, two),
        canary=medians.judge_canary(one.case, ("start", "middle", "end"), again, one),
        shared_machine=True,
        image_digest="",
        environment=facts,
        topologies={"vs001": near, "vs002": far, "vs003": near, "vs004": ""},
        lone=(LoneLog("b.txt", LOG, None, (Problem("WINDOW", "why"),)),),
        published={two.case: (replace(PUBLISHED, throughput=4000.0001), older)},
        node_speeds=(NodeSpeed("vs001", 4, 1.0012), NodeSpeed("vs002", 4, 1.0)),
        rule="arithmetic",
    )


def named() -> Report:
    """Return cases with names of GPT's own; the last one failed, and another has none."""
    values = {"1x1": (4.92,), "1x8": (38.28, 38.2), "4x8": (39.03, 39.1), "2x8": (None,)}
    one, eight, two, four = results(values, params=(("group", "DP"),))
    known = {"latency_s": 13.117188, "memory_mib": 11958}
    four = replace(four, trials=tuple(logged(it, **known, rule="latency") for it in four.trials))
    names = {one.case: "DP_1x1x1", two.case: "MP_1x16x1", four.case: "2D_PP_2x4x4_512_2304x24"}
    return sweep(
        (one, eight, two, four),
        layout=Layout(kind="groups"),
        names=names,
        step_flops={one.case: 1e14, four.case: 8192e12},
        peak_tflops={four.case: 125.0},
        rule="latency",
        window=(60, 100),
        log_prefix="gpt",
    )


def of_logs() -> Report:
    """Return a folder of logs: a case without a 1x1, and logs of no case, one without a header."""
    bare = replace(LOG, config={}, rate=None, rule="reported", window=None)
    cut = Problem("WINDOW", "the window 25-130 needs iteration 130")
    lone = (LoneLog("gpu8.txt", LOG, 6098.37, ()), LoneLog("b.txt", bare, None, (cut,)))
    found = folder(*lone, found=results({"1x4": (3137.44, None)}))
    return replace(found, began_ns=(10**18, None, 10**18 + 10**12), published={})


UNTIL = Method(repeats=Repeats(min=3, max=5, until_interval="1%"), iterations=121, window=(20, 120))


def settled() -> Report:
    """Return a case of five planned trials that settled after three; trials ran side by side."""
    (case,) = results({"1x8": (6135.08, 6130.69, 6154.66, None, None)})
    trials = [one if one.throughput else replace(one, state=NOT_NEEDED) for one in case.trials]
    found = replace(case, trials=tuple(replace(one, problems=()) for one in trials))
    return replace(
        sweep((settling.mark_unsettled(found, UNTIL),), ran_s=59.9, rule="rates", gpus=("V100",)),
        method=UNTIL.model_copy(update={"pack": "disjoint"}),
        trials_planned=None,
        added_env={"B_LAST": "2", "A_FIRST": "x y"},
        published={case.case: (PUBLISHED,)},
    )


def watched(*throughputs: float | None) -> Report:
    """Return cases of processes on CPUs, and a canary that gave these throughputs."""
    cases = results(SEED_AMP, device="cpu")
    places = ("start", "middle", "end")[: len(throughputs)]
    trials = [trial(cases[0].case, n, value) for n, value in enumerate(throughputs, 1)]
    found = medians.judge_canary(cases[0].case, places, trials, cases[0])
    return sweep(cases, canary=found, environment={"a": {"CPU": "EPYC"}}, rule="reported")


REPORTS: dict[str, Callable[[], Report]] = {
    "placements": whole,
    "stopped": stopped,
    "named": named,
    "logs": of_logs,
    "settled": settled,
    "processes": lambda: watched(802.9, 790.0, 780.0),
}


def sources(found: Report) -> dict[str, LogSource]:
    """Return two lines of each log."""
    logs = [one.path for result in found.results for one in result.trials]
    lines = ((40, "DLL 2020 - Epoch: 0 Iteration: 25"), (140, "DLL 2020 - Iteration: 125"))
    return {path: LogSource(path, lines) for path in logs if path}


def drawn_series(draw: random.Random) -> list[Result]:
    """Draw some cases of one series: medians, failures, marks, latencies, transports, machines."""
    places = draw.sample(["1x1", "1x4", "1x8", "2x4", "2x8", "4x8"], draw.randint(1, 5))
    batch, precision = draw.choice([64, 128, 256]), draw.choice(["fp32", "amp"])
    values = {
        place: [draw.choice([None, draw.uniform(0.5, 40_000)]) for _ in range(draw.randint(1, 7))]
        for place in places
    }
    params = draw.choice([(), (("loss_scale", "dynamic"),), (("group", "DP_2"),)])
    return [
        medians.result(one.case, [drawn_trial(draw, it) for it in one.trials])
        for one in results(values, micro_batch_size=batch, precision=precision, params=params)
    ]


def drawn_trial(draw: random.Random, found: Any) -> Any:
    """Return the trial with seconds, joules and much else, or with another way to fail."""
    return replace(
        logged(
            found,
            latency_s=draw.choice([None, draw.uniform(0.001, 20)]),
            memory_mib=draw.choice([None, draw.randint(100, 80_000)]),
            origin_ns=draw.choice([None, 1]),
            end=Moment(60, int(draw.uniform(5e8, 9e11)), 80),
        ),
        transport=draw.choice(["-", "IB mlx5_0", "Socket eth0"]),
        marks=draw.choice([(), (GAP,)]),
        machines=draw.choice([(), (STATE,)]),
        energy=draw.choice([None, Energy(9000.0, draw.uniform(0.01, 9), "power")]),
        nodes=draw.choice([(), ("vs001", "vs002")]),
        state="valid"
        if found.state == "valid"
        else draw.choice(["failed", "invalid", "infra-lost", "interrupted", NOT_NEEDED]),
    )


def drawn(seed: int) -> Report:
    """Draw a sweep or a folder of logs of any shape; a seed always gives the same."""
    draw = random.Random(seed)
    series = {one.case: one for _ in range(draw.randint(0, 3)) for one in drawn_series(draw)}
    found = medians.compared(list(series.values()))
    lone = tuple(
        LoneLog(f"{number}_x.txt", LOG, draw.choice([None, draw.uniform(1, 9999)]), ())
        for number in range(draw.choice([0, 0, 1, 3]) if found else 2)
    )
    cases = [one.case for one in found]
    known = draw.sample(cases, draw.randint(0, len(cases)))
    speeds = tuple(NodeSpeed(f"vs00{n}", n, draw.uniform(0.8, 1.1), n == 2) for n in (1, 2, 3))
    made = folder(*lone, found=found) if draw.random() < 0.3 else sweep(found, lone=lone)
    until = Method(repeats=Repeats(min=3, max=8, until_interval="5%"), iterations=151)
    watched_trials = found[0].trials[:2] if found else ()
    return replace(
        made,
        layout=Layout(kind=draw.choice(("placements", "groups")), decimals=draw.choice([0, 1, 2])),
        published={case: (PUBLISHED, replace(PUBLISHED, throughput=0.75)) for case in known},
        step_flops={case: draw.uniform(1e12, 1e15) for case in known},
        peak_tflops=dict.fromkeys(known[:2], 125.0),
        names={case: f"2D_PP_{n}x4x4_512_9x9" for n, case in enumerate(known[:2])},
        node_speeds=draw.choice([(), speeds]),
        method=draw.choice([None, made.method, until.model_copy(update={"pack": "disjoint"})]),
        ran_s=draw.choice([None, draw.uniform(1, 3000), draw.uniform(3600, 90_000)]),
        canary=Watched(
            cases[0], ("start", "end")[: len(watched_trials)], watched_trials, 0.04, 0.03, ()
        )
        if found and draw.random() < 0.5
        else None,
    )
