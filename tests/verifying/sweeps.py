"""Sweeps of recorded and published logs, as a controller leaves them, without any gang."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import Any

from orchestrator import workloads
from orchestrator.collecting import logs, nodes_seen, package, report_files
from orchestrator.collecting.sweep import measured
from orchestrator.measuring import validity
from orchestrator.model.attempt import Attempt, Outcome, TaskEnd
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Method, Repeats
from orchestrator.model.node import NodeEntry
from orchestrator.model.plan import Plan, Task, Trial
from orchestrator.model.problem import Problem
from orchestrator.model.site import Site
from orchestrator.model.sweep import Ended, Intent, SweepRecord
from orchestrator.report import Language
from orchestrator.state import contents
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from tests import SAMPLES
from tests.collecting import oneflow_logs
from tests.collecting.pytorch_logs import PUBLISHED, run_of
from tests.verifying.observers import Seen

PLACES = ("start", "middle", "end")
PROVENANCE = {"image": "sha256:00", "tasks": "t", "kernel": "5.10"}
AT = "2026-01-05T09:00:00.000+00:00"
NCCL = (SAMPLES / "nccl/ib_2.19.3_one_hca.txt").read_text()
TF = SAMPLES / "logs-tf-rn50"
GPT = SAMPLES / "logs-oneflow-gpt/of_gpt_4n8d_dp2_mp4_pp4_full_README.txt"


@dataclass(frozen=True)
class Recorded:
    """A workload's logs by case: each text is a trial's.

    Args:
        nodes: by trial, the single node that it ran on.
        seen: by trial, what was seen of each of its nodes.
        beside: by trial, those that ran meanwhile.
        kernels: by trial, that of its nodes where it is another one.
        canary: its case, with the logs of start, middle and end.
        before: by trial, the states in which attempts ended that left no log to measure; ``lost``
            of one without an outcome, ``open`` of one that has not ended.
    """

    workload: str
    method: Method
    logs: Mapping[Case, Sequence[str]]
    hcas: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    canary: Mapping[Case, Sequence[str]] = field(default_factory=dict)
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)


def case(token: str, batch: int, precision: str = "amp", **more: Any) -> Case:
    """A case on GPUs, such as ``4n8g``."""
    nodes, gpus = oneflow_logs.ranks(token)
    fields: dict[str, Any] = {
        "micro_batch_size": batch,
        "precision": precision,
        "device": "cuda",
        **more,
    }
    return Case(nodes=nodes, gpus_per_node=gpus, **fields)


def pytorch() -> Recorded:
    """Seed 003's AMP table; the last 4-node log was cut in its window."""
    found = {}
    for place, rates in PUBLISHED.items():
        token = place.rpartition("/")[2]
        texts = [run_of(token, repeat, rate).log() for repeat, rate in enumerate(rates, 1)]
        if token[0] != "1":
            texts = [NCCL + text for text in texts]
        found[case(token, 256)] = texts
    cut = found[case("4n8g", 256)]
    cut[4] = cut[4][: len(cut[4]) // 2]
    method = Method(repeats=5, iterations=151, window=(25, 125))
    return Recorded("ngc_pytorch_rn50", method, found, "=mlx5_0")


def oneflow() -> Recorded:
    """Seed 000's ResNet-50: 7 trials of 4 placements."""
    found = {
        case(token, 128, "fp32"): [
            oneflow_logs.rn50(token, rate, 1.6e9 + 1000 * number)
            for number, rate in enumerate(rates)
        ]
        for token, rates in oneflow_logs.SEED_000.items()
    }
    method = Method(repeats=7, iterations=120, window=(20, 120))
    return Recorded("oneflow_rn50", method, found)


def bert() -> Recorded:
    """OneFlow's BERT by the mean of its printed rates."""
    found = {
        case(token, 96, "fp32"): [
            oneflow_logs.bert(token, rate, 1.6e9 + 1000 * number)
            for number, rate in enumerate((150.5, 151.25, 149.125), 1)
        ]
        for token in ("1n1g", "1n8g")
    }
    method = Method(repeats=3, iterations=140, window=(19, 119), rule="rates")
    return Recorded("oneflow_bert", method, found)


def gpt() -> Recorded:
    """The GPT log that DLPerf prints."""
    split: dict[str, Any] = {"tensor_parallel": 4, "pipeline_parallel": 4, "accumulation_steps": 32}
    sizes = (("num_layers", 24), ("hidden_size", 2304), ("num_attention_heads", 24))
    one = case("4n8g", 8, params=sizes, **split)
    return Recorded("oneflow_gpt", Method(repeats=1, iterations=100), {one: [GPT.read_text()]})


def tensorflow() -> Recorded:
    """PaddlePaddle/Perf's benchmarks, by what the program itself reports."""
    params = (("mode", "training_benchmark"), ("xla", True), ("dali", False))
    texts = {
        case("1n1g", 128, "fp32", params=params): "2020-12-18_be362d9_tf_gpu1_fp32_bs128",
        case("1n8g", 256, "amp", params=params): "2020-12-18_be362d9_tf_gpu8_amp_bs256",
    }
    found = {it: [(TF / f"paddleperf_{name}.txt").read_text()] for it, name in texts.items()}
    method = Method(repeats=1, iterations=500, rule="reported")
    return Recorded("ngc_tensorflow_rn50", method, found)


def made(store: Store, recorded: Recorded) -> Sweep:
    """A sweep with these logs, its records written by the program's own functions."""
    workload = workloads.find(recorded.workload)
    assert workload is not None
    trials = [
        Trial(
            name=f"{it.token}-r50_b{it.micro_batch_size}_{it.precision}_{repeat}",
            repeat=repeat,
            case=it,
            log=f"{it.token}/r50_b{it.micro_batch_size}_{it.precision}_{repeat}.log",
            ordinal=0,
            name_of_case=workload.case_name(it) if workload.case_name else "",
        )
        for it, texts in recorded.logs.items()
        for repeat in range(1, len(texts) + 1)
    ]
    texts = [text for group in recorded.logs.values() for text in group]
    for it, measured_texts in recorded.canary.items():
        trials += [_canary(it, place, count) for count, place in enumerate(PLACES, 1)]
        texts += measured_texts
    method, name = recorded.method, recorded.workload
    digest = f"sha256:{'0' * 64}"
    nodes = tuple(NodeEntry(name=f"vs{n}", address=f"10.11.0.{n}") for n in range(1, 5))
    sweep = store.new_sweep(
        SweepRecord(
            experiment=name,
            cluster="v100x4",
            identity="",
            inputs={},
            inventory=Cluster(name="v100x4", nodes=nodes),
            plan=Plan(name, name, "image", digest, "v100x4", method, tuple(trials)),
            site=Site(2, "v100x4", "", "v100x4.yaml", "", {}, ()),
        )
    )
    for trial, text in zip(trials, texts, strict=True):
        before = recorded.before.get(trial.name, ())
        for number, state in enumerate(before, 1):
            _fail(sweep, _begun(sweep, trial, number, recorded), trial, state, recorded)
        if text:
            _run(sweep, trial, _begun(sweep, trial, len(before) + 1, recorded), text, recorded)
    return sweep


def _canary(it: Case, place: str, repeat: int) -> Trial:
    name = f"canary-{it.token}-r50_b{it.micro_batch_size}_{it.precision}_{repeat}"
    log = f"canary/{it.token}/r50_b{it.micro_batch_size}_{it.precision}_{repeat}.log"
    return Trial(name=name, repeat=repeat, case=it, log=log, ordinal=0, canary=place)


def _begun(sweep: Sweep, trial: Trial, number: int, recorded: Recorded) -> Attempt:
    """The next attempt at a trial, as it is written down before it starts."""
    env = {"NCCL_IB_HCA": recorded.hcas} if recorded.hcas else {}
    tasks = tuple(
        Task(
            recorded.nodes.get(trial.name, f"vs{rank + 1}"),
            rank,
            ("python", "main.py"),
            env,
            (),
            (*range(trial.case.gpus_per_node),),
        )
        for rank in range(trial.case.nodes)
    )
    folders = {it.node: "/x" for it in tasks}
    attempt = Attempt(sweep.id, trial.name, number, folders, 22333, tasks)
    sweep.append(Intent(at=AT, trial=trial.name, attempt=number, port=22333, log=trial.log))
    sweep.keep_attempt(attempt, {})
    return attempt


def _fail(sweep: Sweep, attempt: Attempt, trial: Trial, state: str, recorded: Recorded) -> None:
    """Leave what an attempt leaves whose log is not measured."""
    if state == "open":
        return
    ended = Ended(at=AT, trial=trial.name, attempt=attempt.number, state="infra-lost", code="LOST")
    if state == "lost":
        sweep.append(ended)
        return
    problem = Problem("EXIT", "vs1: rank 0 exited with 1: d\u00e9j\u00e0 vu")
    outcome = Outcome(
        trial=trial.name,
        attempt=attempt.number,
        state=state,
        problems=(problem,),
        throughput=None,
        sha256=None,
        lines=None,
        transport=None,
        provenance=PROVENANCE,
        port=attempt.port,
        start_skew_s=None,
        tasks=(),
        attempt_sha256=_seal(sweep, attempt),
        code=package.digest(recorded.workload),
    )
    sha256 = sweep.keep_outcome(trial.log, outcome)
    ended = replace(ended, state=state, code=problem.code, message=problem.message)
    sweep.append(replace(ended, outcome=sha256))


def _run(sweep: Sweep, trial: Trial, attempt: Attempt, text: str, recorded: Recorded) -> None:
    """Leave what an attempt leaves that ended well: raw logs, outcome and event."""
    folder, ends = sweep.attempt_folder(trial.name, attempt.number), []
    for task in attempt.tasks:
        raw = folder / f"r{task.node_rank}.log"
        (folder / f"r{task.node_rank}.exit").write_text("0 exited\n")
        raw.write_bytes((text if task.node_rank == 0 else NCCL + f"{trial.name}\n").encode())
        digest = hashlib.sha256(raw.read_bytes()).hexdigest()
        size, went_at = raw.stat().st_size, 1.0
        if seen := recorded.seen.get(trial.name):
            (folder / f"r{task.node_rank}.state").write_text(seen.state())
            (folder / f"r{task.node_rank}.gpus").write_text(seen.gpus())
            went_at = seen.went_at
        ends.append(TaskEnd(task.node, task.node_rank, 0, "exited", size, digest, went_at))
    sweep.keep_log(trial.log, folder / "r0.log")
    _conclude(sweep, trial, attempt, recorded, tuple(ends))


def _conclude(
    sweep: Sweep, trial: Trial, attempt: Attempt, recorded: Recorded, ends: tuple[TaskEnd, ...]
) -> None:
    workload = workloads.find(recorded.workload)
    assert workload is not None
    path = sweep.log(trial.log)
    folder = sweep.attempt_folder(trial.name, attempt.number)
    found = validity.measure_log(
        logs.read(path, workload, recorded.method.window),
        trial.case,
        recorded.method,
        trial=trial.name,
        repeat=trial.repeat,
        path=f"logs/{trial.log}",
    )
    if len(attempt.tasks) > 1:
        found = nodes_seen.add_transport(found, attempt, folder, workload)
    assert found.log is not None
    outcome = Outcome(
        trial=trial.name,
        attempt=attempt.number,
        state=found.state,
        problems=found.problems,
        throughput=found.throughput,
        sha256=found.log.sha256,
        lines=found.log.evidence,
        transport=found.transport,
        provenance={**PROVENANCE, "kernel": recorded.kernels.get(trial.name, "5.10")},
        port=22333,
        start_skew_s=0.0,
        tasks=ends,
        observed=nodes_seen.digests(folder, ends) if trial.name in recorded.seen else {},
        beside=tuple(recorded.beside.get(trial.name, ())),
        attempt_sha256=_seal(sweep, attempt),
        code=package.digest(recorded.workload),
    )
    marks = nodes_seen.list_marks(nodes_seen.add_state(found, folder, outcome))
    outcome = replace(outcome, marks=marks)
    sha256 = sweep.keep_outcome(trial.log, outcome)
    first = found.problems[0] if found.problems else None
    ended = Ended(
        at=AT,
        trial=trial.name,
        attempt=attempt.number,
        state=found.state,
        code=first.code if first else "",
        message=first.message if first else "",
        sha256=outcome.sha256,
        outcome=sha256,
    )
    sweep.append(ended)


def _seal(sweep: Sweep, attempt: Attempt) -> str:
    return contents.sha256(sweep.attempt_folder(attempt.trial, attempt.number) / "attempt.json")


def collected(
    store: Store, recorded: Recorded, language: Language = "en", *, strict: bool = False
) -> Sweep:
    """Such a sweep with its reports and checksums."""
    sweep = made(store, recorded)
    report_files.reports(sweep.folder, measured(sweep, strict=strict), language)
    contents.keep_sums(sweep)
    return sweep


def collected_again(sweep: Sweep, language: Language) -> Sweep:
    """Write its reports once more, in this language."""
    report_files.reports(sweep.folder, measured(sweep), language)
    contents.keep_sums(sweep)
    return sweep


def copied(sweep: Sweep, into: Path) -> Sweep:
    """The same sweep at another place, to be changed there."""
    return Sweep(Path(shutil.copytree(sweep.folder, into / sweep.id)))


def settled() -> Recorded:
    """OneFlow's ResNet-50 on one GPU until its interval is narrow; two trials were not needed."""
    texts = list(oneflow().logs[case("1n1g", 128, "fp32")])
    repeats = Repeats(min=3, max=7, until_interval="1%")
    method = Method(repeats=repeats, iterations=120, window=(20, 120))
    return Recorded("oneflow_rn50", method, {case("1n1g", 128, "fp32"): [*texts[:5], "", ""]})


def marked() -> Recorded:
    """A sweep in which everything happened that marks what counts.

    One of four nodes is slower, one trial far from the others of its case, whose trials rise; the
    machines drift, throttle, and are loaded by others.
    """
    found: dict[Case, list[str]] = {case("1n1g", 256): [], case("1n2g", 256): []}
    nodes, seen, beside = {}, {}, {}
    for it, texts in found.items():
        for repeat in range(1, 9):
            name = f"{it.token}-r50_b256_amp_{repeat}"
            nodes[name] = f"vs{(repeat - 1) % 4 + 1}"
            rate = it.world_size * (800 + repeat / 4) * (0.94 if nodes[name] == "vs3" else 1)
            texts.append(run_of(it.token, repeat, rate).log())
            seen[name] = _seen(it.token, repeat)
            if repeat == 2:
                beside[name] = ["1n2g-r50_b256_amp_1"]
    rising = case("1n4g", 256)
    found[rising] = [
        run_of("1n4g", repeat, 3000 + repeat + (700 if repeat == 7 else 0)).log()
        for repeat in range(1, 8)
    ]
    canary = {case("1n1g", 256): [run_of("1n1g", 20 + n, 800 - 30 * n).log() for n in range(1, 4)]}
    method = Method(repeats=8, iterations=151, window=(25, 125))
    return Recorded("ngc_pytorch_rn50", method, found, "", nodes, seen, beside, canary)


def on_cpus() -> Recorded:
    """A sweep whose nodes were observed, and have no GPUs."""
    found: dict[Case, list[str]] = {case("1n1g", 256): [], case("1n2g", 256): []}
    seen = {}
    for it, texts in found.items():
        for repeat in range(1, 4):
            texts.append(run_of(it.token, repeat, it.world_size * (800 + repeat / 4)).log())
            name = f"{it.token}-r50_b256_amp_{repeat}"
            seen[name] = replace(_seen(it.token, repeat), driver=False, hot=None, counter=False)
    method = Method(repeats=3, iterations=151, window=(25, 125))
    return Recorded("ngc_pytorch_rn50", method, found, seen=seen)


def gang() -> Recorded:
    """Two trials of one gang over InfiniBand, beside one another; one saw heat."""
    it, names = case("2n8g", 256), [f"2n8g-r50_b256_amp_{repeat}" for repeat in (1, 2)]
    texts = [NCCL + run_of("2n8g", repeat, 12000.0 + repeat).log() for repeat in (1, 2)]
    seen = {name: _seen("2n8g", repeat) for repeat, name in enumerate(names, 1)}
    beside = dict(zip(names, ([name] for name in reversed(names)), strict=True))
    method = Method(repeats=2, iterations=151, window=(25, 125))
    return Recorded("ngc_pytorch_rn50", method, {it: texts}, "=mlx5_0", seen=seen, beside=beside)


def failed() -> Recorded:
    """A sweep of which no trial has a log that counts, nor one to look at."""
    it = case("1n1g", 256)
    before = {f"1n1g-r50_b256_amp_{repeat}": ["failed"] for repeat in (1, 2)}
    method = Method(repeats=2, iterations=151, window=(25, 125))
    return Recorded("ngc_pytorch_rn50", method, {it: ["", ""]}, before=before)


def _seen(token: str, repeat: int) -> Seen:
    """What was seen of the node of one trial: heat, others, an alien, steal, or a counter."""
    began = run_of(token, repeat, 800.0).began.replace(tzinfo=UTC).timestamp()
    seen = Seen(began - 4, 80, counter=repeat % 2 == 0)
    happened = {
        2: replace(seen, hot=30),
        3: replace(seen, others=1.5),
        4: replace(seen, alien=1.25),
        5: replace(seen, steal=0.05),
    }
    return happened.get(repeat, seen)


ALL = {
    **{"pytorch": pytorch, "oneflow": oneflow, "bert": bert, "gpt": gpt, "tensorflow": tensorflow},
    "marked": marked,
    "on_cpus": on_cpus,
    "gang": gang,
}
