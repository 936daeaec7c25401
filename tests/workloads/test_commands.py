"""What each workload starts for a case, and what it refuses.

The command lines in the snapshot are those of the scripts that each workload names as its source,
word for word; DLPerf's own are for 10.11.0.2 to 10.11.0.5.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator import errors, workloads
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Placement, Seat
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload

NAMES = (
    *("all_reduce", "ngc_pytorch_rn50", "ngc_tensorflow_rn50"),
    *("oneflow_bert", "oneflow_gpt", "oneflow_rn50", "reference_rn50"),
)
DATA = ("imagenet", "imagenet_tfrecord", "dali_idx", "imagenet_ofrecord", "wiki_ofrecord", "gpt")
FOLDERS = {name: f"/ssd/{name}" for name in DATA}
METHODS = {
    "all_reduce": Method(repeats=1, iterations=25, window=(6, 25)),
    "ngc_pytorch_rn50": Method(repeats=5, iterations=121, window=(20, 120)),
    "ngc_tensorflow_rn50": Method(repeats=5, iterations=120, window=(21, 120), rule="rates"),
    "oneflow_bert": Method(repeats=5, iterations=140, window=(19, 119)),
    "oneflow_gpt": Method(repeats=5, iterations=100, window=(60, 100)),
    "oneflow_rn50": Method(repeats=5, iterations=120, window=(20, 120)),
    "reference_rn50": Method(repeats=5, iterations=121, window=(20, 120)),
}
BENCHMARK = Method(repeats=5, iterations=500, rule="reported")


def case(
    placement: str = "1x8", batch: int = 128, precision: str = "fp32", /, **params: Scalar
) -> Case:
    """Return a case; parameters that are fields of a case are set there."""
    nodes, gpus = map(int, placement.split("x"))
    axes = ("accumulation_steps", "tensor_parallel", "pipeline_parallel")
    split = {name: int(params.pop(name, 1)) for name in axes}
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=batch,
        precision=precision,
        device=str(params.pop("device", "cuda")),
        **split,
        params=tuple(sorted(params.items())),
    )


def place(of: Case) -> Placement:
    """Place a case on DLPerf's nodes."""
    gpus = tuple(range(of.gpus_per_node)) if of.device == "cuda" else ()
    seats = tuple(
        Seat(f"vs00{n}", f"10.11.0.{n + 1}", gpus, "ib0", ("mlx5_0",), FOLDERS)
        for n in range(1, of.nodes + 1)
    )
    return Placement(seats, of.gpus_per_node, port=12345, code="/code", python="/venv/bin/python")


def shape(**more: Scalar) -> dict[str, Scalar]:
    """Return a shape of GPT that divides as it should."""
    return {"num_layers": 16, "hidden_size": 1536, "num_attention_heads": 16, **more}


CASES: dict[str, tuple[Case, ...]] = {
    "all_reduce": (
        case("2x8", 1, size_mib=256),
        case("2x8", 1, size_mib=8192),
        case("2x1", 1, size_mib=8192, device="cpu"),
    ),
    "ngc_pytorch_rn50": (
        case("1x1"),
        case("4x8", 128, "amp"),
        case("2x4", 256, "amp", loss_scale="dynamic"),
        case("1x8", 256, "amp", loss_scale=128),
        case("1x8", 125, "amp", loss_scale=0.5),
        case("1x8", 128, "amp", loss_scale=16777217.0),
        case(loss_scale=128),
        case(data_backend="syntetic"),
    ),
    "reference_rn50": (
        case("1x8", 128, "amp"),
        case("1x8", 128, "amp", loss_scale=1048576.0),
        case("2x8", 128, "bf16", loss_scale=128),
        case("1x8", 128, "bf16", device="cpu", loss_scale=128),
        case(allow_tf32=True, loss_scale=128, memory_format="nchw", num_classes=10),
        case("1x2", 4, "amp", device="cpu", threads=2, image_size=64, loss_scale=128),
        case("2x2", 4, device="cpu", threads=4, accumulation_steps=2),
    ),
    "ngc_tensorflow_rn50": (
        case("1x1"),
        case("4x8", 128, "amp", xla=True),
        case("1x8", 128, "amp", loss_scale=0.5),
        case("1x8", 224, "fp32", xla=True, loss_scale=1048576),
        case(dali=False),
        case("1x8", 208, "amp", mode="training_benchmark", xla=True),
        case("1x1", 160, mode="training_benchmark"),
        case(mode="training_benchmark", dali=True, warmup_steps=50),
        case(mode="training_benchmark", data="synthetic", xla=True),
    ),
    "oneflow_rn50": (
        case("4x8"),
        case("1x1", 256, "amp", release="0.2.0"),
        case("1x8", release="0.1.9", data="synthetic", print_every=10),
    ),
    "oneflow_bert": (
        case("2x8", 96, release="0.1.9"),
        case("2x8", 160, "amp", release="0.2.0", data_part_num=1),
    ),
    "oneflow_gpt": (
        case(
            *("4x8", 8, "amp"),
            **shape(
                num_layers=24,
                hidden_size=2304,
                num_attention_heads=24,
                group="PP",
                accumulation_steps=32,
                tensor_parallel=4,
                pipeline_parallel=4,
            ),
        ),
        case("1x8", 2, **shape(group="2D", rdma=False)),
    ),
}


def describe(workload: Workload, of: Case) -> Iterator[str]:
    """Yield what the leader starts, its environment and mounts, and the names of the case."""
    where = place(of)
    seat = where.seats[0]
    given = " ".join(f"{name}={value}" for name, value in of.params)
    yield f"{of.placement} b{of.micro_batch_size} {of.precision} {of.device} {given}".rstrip()
    method = METHODS[workload.name] if of.given.get("mode") != "training_benchmark" else BENCHMARK
    tasks = workload.launcher(workload.command(of, method, where), where)
    yield f"    {shlex.join(tasks[0].argv)}"
    for name, value in sorted(workload.env(of, where, seat).items()):
        yield f"    env {name}={value}"
    for mount in workload.mount(of, seat):
        yield f"    mounts {mount.source} at {mount.target}, read-only {mount.read_only}"
    assert {mount.target for mount in workload.mount(of, seat)} <= {*workload.data(of).values()}
    fixed = ", fixed" if workload.fixed_port(of) else ""
    yield f"    port {workload.port(of)}{fixed}; last iteration {workload.last_iteration(120)}"
    if workload.stem:
        yield f"    log {workload.stem(of)}"
    if workload.case_name:
        yield f"    case {workload.case_name(of)}"
    found = workload.published(of) if workload.published else None
    if found:
        frameworks, precisions = ", ".join(found.frameworks), ", ".join(found.precision)
        batch = f", {found.batch}" if found.batch else ""
        yield f"    published as {found.model} by {frameworks or 'nobody'} in {precisions}{batch}"


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_starts_its_program_as_its_source_does(name: str, snapshot: object) -> None:
    workload = workloads.require(name)
    assert workload.name == name
    assert "\n".join(line for of in CASES[name] for line in describe(workload, of)) == snapshot
    for of in CASES[name]:
        where = place(of)
        tasks = workload.launcher(workload.command(of, METHODS[name], where), where)
        assert len(tasks) == of.nodes
        if name.startswith("oneflow"):
            assert len({task.argv for task in tasks}) == 1


def test_a_module_is_a_workload_and_is_found_by_its_name() -> None:
    files = Path(workloads.__file__).parent.glob("[a-z]*.py")
    assert workloads.names() == NAMES == tuple(sorted(file.stem for file in files))
    for name in ("resnet", "_oneflow", "", "../cli", "ngc_pytorch_rn50.py"):
        assert workloads.find(name) is None
    with pytest.raises(errors.UsageError, match="there is no workload 'oneflow_gtp'") as caught:
        workloads.require("oneflow_gtp")
    assert caught.value.code == "NO-WORKLOAD"
    assert caught.value.fix == f"needed one of {', '.join(NAMES)}"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(
            (name, {"loss_scale": scale})
            for name in ("ngc_pytorch_rn50", "reference_rn50")
            for scale in (0, -128, "static", True, float("nan"), None)
        ),
        *(("ngc_tensorflow_rn50", {"loss_scale": scale}) for scale in (0, "dynamic")),
        ("ngc_tensorflow_rn50", {"mode": "evaluate"}),
        ("ngc_tensorflow_rn50", {"xla": 1}),
        ("ngc_tensorflow_rn50", {"dali": "yes"}),
        ("ngc_tensorflow_rn50", {"warmup_steps": -1}),
        ("ngc_tensorflow_rn50", {"data": "imagenet"}),
        ("ngc_tensorflow_rn50", {"batch": 128}),
    ],
)
def test_a_parameter_that_the_program_does_not_have_is_refused(
    name: str, given: dict[str, object]
) -> None:
    with pytest.raises(ValidationError):
        workloads.require(name).params.model_validate(given)


def over(iterations: int, first: int, last: int) -> Method:
    return Method(repeats=1, iterations=iterations, window=(first, last))


def reported(iterations: int) -> Method:
    return Method(repeats=1, iterations=iterations, rule="reported")


BENCH: dict[str, Scalar] = {"mode": "training_benchmark"}


@pytest.mark.parametrize(
    ("name", "of", "method", "refused"),
    [
        ("reference_rn50", case(allow_tf32=True), over(120, 20, 119), ""),
        (
            *("reference_rn50", case(device="cpu", allow_tf32=True), over(120, 20, 119)),
            "params.allow_tf32 on cpu; needed `device: cuda`, or leave it out",
        ),
        ("all_reduce", case("2x8", 1), over(25, 6, 25), ""),
        (
            *("all_reduce", case("1x1", 1), over(25, 6, 25)),
            "1x1, which is one rank; needed two or more",
        ),
        (
            *("all_reduce", case("2x8", 8), over(25, 6, 25)),
            "micro_batch_size 8; needed 1, one buffer",
        ),
        ("oneflow_rn50", case(), over(120, 20, 120), ""),
        ("oneflow_rn50", case(), reported(100), ""),
        ("oneflow_bert", case(), reported(100), ""),
        (
            *("oneflow_rn50", case("1x8", 128, "amp"), over(120, 20, 120)),
            "precision amp with OneFlow 0.1.9; needed fp32, or release 0.2.0",
        ),
        (
            *("oneflow_rn50", case(), over(120, 25, 120)),
            "window [25, 120]; the program prints every 20 iterations from 20 on, needed such as"
            " [20, 120]",
        ),
        (
            *("oneflow_bert", case(), over(140, 20, 120)),
            "window [20, 120]; the program prints every 20 iterations from 19 on, needed such as"
            " [19, 119]",
        ),
        ("oneflow_gpt", case(**shape()), reported(100), ""),
        (
            *("oneflow_gpt", case(**shape(num_attention_heads=7)), over(100, 60, 100)),
            "hidden_size 1536 over num_attention_heads 7; needed a multiple",
        ),
        (
            "oneflow_gpt",
            case(**shape(num_attention_heads=12, tensor_parallel=8)),
            over(100, 60, 100),
            "num_attention_heads 12 over tensor_parallel 8; needed a multiple",
        ),
        (
            "oneflow_gpt",
            case(**shape(num_layers=15, pipeline_parallel=4)),
            over(100, 60, 100),
            "num_layers 15 over pipeline_parallel 4; needed a multiple",
        ),
        (
            *("oneflow_gpt", case(**shape()), over(100, 55, 100)),
            "window [55, 100]; the table has a row every 10 iterations",
        ),
        ("ngc_tensorflow_rn50", case(), over(120, 21, 120), ""),
        (
            "ngc_tensorflow_rn50",
            case(dali=True, mode="train", loss_scale=128),
            over(140, 21, 119),
            "",
        ),
        ("ngc_tensorflow_rn50", case(**BENCH, warmup_steps=200), BENCHMARK, ""),
        ("ngc_tensorflow_rn50", case(**BENCH), over(500, 200, 499), ""),
        ("ngc_tensorflow_rn50", case(**BENCH, data="synthetic"), BENCHMARK, ""),
        ("ngc_tensorflow_rn50", case(), reported(45), ""),
        (
            *("ngc_tensorflow_rn50", case(data="synthetic"), over(120, 21, 120)),
            "data: synthetic in mode train; needed mode: training_benchmark, or tfrecord",
        ),
        (
            *("ngc_tensorflow_rn50", case(**BENCH, data="synthetic", dali=True), BENCHMARK),
            "dali: true with data: synthetic, which nothing reads; needed one of them",
        ),
        (
            *("ngc_tensorflow_rn50", case(warmup_steps=200), over(120, 21, 120)),
            "warmup_steps in mode train, which has its own;"
            " needed mode: training_benchmark, or no warmup_steps",
        ),
        (
            *("ngc_tensorflow_rn50", case(**BENCH), reported(200)),
            "iterations: 200 in mode training_benchmark, which leaves out the first 200; needed"
            " more",
        ),
        (
            *("ngc_tensorflow_rn50", case(), reported(20)),
            "iterations: 20 in mode train, which leaves out the first 20; needed more",
        ),
        (
            *("ngc_tensorflow_rn50", case(), over(120, 19, 119)),
            "window: [19, 119] in mode train with iterations: 120; needed a window from 21 to 120",
        ),
        (
            *("ngc_tensorflow_rn50", case(**BENCH), over(500, 200, 500)),
            "window: [200, 500] in mode training_benchmark with iterations: 500; needed a window"
            " from 200 to 499",
        ),
    ],
)
def test_what_a_program_cannot_do_is_refused(
    name: str, of: Case, method: Method, refused: str
) -> None:
    """Before anything starts, with what was seen and what was needed; empty if all is possible."""
    found = list(workloads.require(name).unsupported(of, method))
    assert found == ([refused] if refused else [])


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("r50_b224_amp_3", {}),
        ("r50_b224_amp-xla_3", {"xla": True}),
        ("r50_b128_fp32-benchmark_1", {"mode": "training_benchmark"}),
        ("r50_b128_amp-xla-benchmark_1", {"xla": True, "mode": "training_benchmark"}),
        ("r50_b128_amp-xla-mine_1", {}),
        ("tf_gpu32_amp_bs256", {}),
    ],
)
def test_our_own_names_of_logs_are_read_back(log: str, told: dict[str, object]) -> None:
    """Other names tell nothing, and remain a label."""
    assert workloads.require("ngc_tensorflow_rn50").told_by_name(log) == told
