"""Workloads: which there are, and the command lines and environments that they give."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator import errors, workloads
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Mount, Placement, Seat
from orchestrator.model.text import Scalar
from orchestrator.workloads import Workload, ngc_pytorch_rn50, reference_rn50
from tests import TESTS

NGC, REFERENCE = ngc_pytorch_rn50.WORKLOAD, reference_rn50.WORKLOAD
METHOD = Method(repeats=5, iterations=121, window=(20, 120))


def case(precision: str = "amp", device: str = "cuda", **params: Scalar) -> Case:
    """One node, eight GPUs, batch 128."""
    return Case(
        nodes=1,
        gpus_per_node=8,
        micro_batch_size=128,
        precision=precision,
        device=device,
        params=tuple(sorted(params.items())),
    )


def placement(nodes: int, gpus: tuple[int, ...] = (0, 1)) -> Placement:
    """So many nodes with an InfiniBand adapter each."""
    data = {"imagenet": "/data/image"}
    seats = tuple(
        Seat(f"n{n}", f"10.0.0.{n}", gpus, "ib0", ("mlx5_0", "mlx5_1"), data)
        for n in range(1, nodes + 1)
    )
    return Placement(seats, len(gpus), port=22333, code="/code", python="/venv/bin/python")


def program(workload: Workload, of: Case) -> tuple[str, ...]:
    """The program's own words."""
    return workload.command(of, METHOD, placement(1)).program


def environment(workload: Workload, of: Case, where: Placement) -> Mapping[str, str]:
    """What the leader's task gets."""
    return workload.env(of, where, where.seats[0])


def test_workloads_are_known_by_their_modules() -> None:
    """A module is a workload if it has no underscore; nothing is registered anywhere."""
    files = Path(workloads.__file__).parent.glob("[a-z]*.py")
    assert workloads.names() == tuple(sorted(file.stem for file in files))
    assert "ngc_pytorch_rn50" in workloads.names()
    for name in workloads.names():
        found = workloads.find(name)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize("name", ["resnet", "_oneflow", "", "../cli", "ngc_pytorch_rn50.py"])
def test_what_is_no_workload_is_not_found(name: str) -> None:
    """Neither a misspelt name nor a module that only shares a format."""
    assert workloads.find(name) is None


def test_installed_distribution_adds_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry point is all that it takes."""
    monkeypatch.syspath_prepend(TESTS / "toy")
    assert "toy" in workloads.names()
    found = workloads.find("toy")
    assert found is not None
    assert found.title == "A toy of the tests"
    own = found.mount(case("fp32"), placement(1).seats[0])
    assert own == (Mount("/data/image", "/data/imagenet", read_only=True),)
    assert workloads.find("reference_rn50") is REFERENCE


@pytest.mark.parametrize(
    ("gpus", "micro_batch_size", "rate"),
    [
        # DLPerf's script: LR=$(awk "BEGIN {print $BSZ * $NUM_GPUS / 1000}"); seed 003 prints 1.024
        # for 128 x 8 on 2 and on 4 nodes.
        (8, 128, "1.024"),
        (1, 128, "0.128"),
        (4, 256, "1.024"),
        (8, 256, "2.048"),
        (8, 125, "1"),
    ],
)
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_learning_rate_is_the_scripts_own(
    nodes: int, gpus: int, micro_batch_size: int, rate: str
) -> None:
    """Batch size times GPUs per node / 1000; the number of nodes is not in it."""
    of = Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=micro_batch_size,
        precision="fp32",
        device="cuda",
    )
    words = program(NGC, of)
    assert words[words.index("--lr") + 1] == rate


@pytest.mark.parametrize(
    ("scale", "flags"),
    [
        (None, ("--amp", "--dynamic-loss-scale")),
        ("dynamic", ("--amp", "--dynamic-loss-scale")),
        (128, ("--amp", "--static-loss-scale", "128")),
        (128.0, ("--amp", "--static-loss-scale", "128")),
        (0.5, ("--amp", "--static-loss-scale", "0.5")),
        (1048576, ("--amp", "--static-loss-scale", "1048576")),
        (16777217, ("--amp", "--static-loss-scale", "16777217")),
    ],
)
def test_loss_scale_reaches_the_program_digit_by_digit(
    scale: Scalar | None, flags: tuple[str, ...]
) -> None:
    """Dynamic unless a number is given, and that number exactly, however many digits it has."""
    of = case() if scale is None else case(loss_scale=scale)
    assert program(NGC, of)[-1 - len(flags) : -1] == flags
    assert program(REFERENCE, of)[-len(flags) :] == flags


@pytest.mark.parametrize("workload", [NGC, REFERENCE])
def test_fp32_has_no_flag_of_mixed_precision(workload: Workload) -> None:
    """Whatever the playbook says of a loss scale for its other cases."""
    words = program(workload, case("fp32", loss_scale=128))
    assert not {"--amp", "--dynamic-loss-scale", "--static-loss-scale"} & set(words)


@pytest.mark.parametrize("workload", [NGC, REFERENCE])
@pytest.mark.parametrize("scale", [0, -128, "static", True, float("nan"), None])
def test_loss_scale_is_dynamic_or_a_positive_number(
    workload: Workload, scale: Scalar | None
) -> None:
    """Anything else is refused before it is in a command line."""
    with pytest.raises(ValidationError):
        workload.params.model_validate({"loss_scale": scale})


def test_reference_program_is_told_everything_that_the_case_asks_for() -> None:
    """Threads are said on CPUs only, where bfloat16 needs no loss scale."""
    on_cpu = program(REFERENCE, case(device="cpu", threads=2, image_size=64, loss_scale=128))
    expected = (
        "/code/train.py --device cpu --arch resnet50 --image-size 64 --num-classes 1000"
        " --memory-format nhwc --threads 2 -b 128 --accumulation-steps 1 --prof 121 --amp"
    )
    assert " ".join(on_cpu) == expected
    assert "--threads" not in program(REFERENCE, case())
    command = REFERENCE.command(case(), METHOD, placement(1))
    assert command.agent == ("/venv/bin/python", "-m", "torch.distributed.run")


def test_bfloat16_has_a_flag_of_its_own_and_tf32_is_asked_for() -> None:
    """On GPUs and CPUs alike, and never with a loss scale; TF32 is of GPUs alone."""
    for device in ("cuda", "cpu"):
        words = program(REFERENCE, case("bf16", device, loss_scale=128))
        assert "--bf16" in words
        assert not {"--amp", "--static-loss-scale", "--allow-tf32"} & set(words)
    assert "--allow-tf32" in program(REFERENCE, case("fp32", allow_tf32=True))
    assert list(REFERENCE.unsupported(case("fp32", allow_tf32=True), METHOD)) == []
    (text,) = REFERENCE.unsupported(case("fp32", "cpu", allow_tf32=True), METHOD)
    assert "needed `device: cuda`" in text


def test_roce_is_told_to_gangs_of_several_nodes() -> None:
    """Where the inventory says it; one node has no fabric."""
    seats = tuple(
        Seat(f"n{n}", f"10.0.0.{n}", (0,), None, (), {}, gid_index=3, traffic_class=106)
        for n in (1, 2)
    )
    where = Placement(seats, 1, port=22333, code="/code", python="python3")
    found = environment(REFERENCE, case("fp32"), where)
    assert (found["NCCL_IB_GID_INDEX"], found["NCCL_IB_TC"]) == ("3", "106")
    alone = environment(REFERENCE, case("fp32"), Placement(seats[:1], 1, 22333, "/code", "python3"))
    assert "NCCL_IB_GID_INDEX" not in alone


@pytest.mark.parametrize("workload", [NGC, REFERENCE])
def test_single_node_sees_its_gpus_in_the_drivers_order(workload: Workload) -> None:
    """Without that order, CUDA counts the fastest GPU first and index 1 may be another one."""
    found = environment(workload, case("fp32"), placement(1, (3, 1)))
    assert found == {"CUDA_VISIBLE_DEVICES": "3,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize("workload", [NGC, REFERENCE])
def test_gang_of_several_nodes_is_told_its_network(workload: Workload) -> None:
    """NCCL names its transport in the log, and takes these adapters and no namesake of theirs."""
    assert environment(workload, case("fp32"), placement(2)) == {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NCCL_SOCKET_IFNAME": "=ib0",
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
    }


def test_gang_without_declared_network_leaves_it_to_nccl() -> None:
    """What the inventory does not say is not made up."""
    seats = tuple(Seat(f"n{n}", f"10.0.0.{n}", (0,), None, (), {}) for n in (1, 2))
    where = Placement(seats, 1, port=22333, code="/code", python="python3")
    found = environment(REFERENCE, case("fp32"), where)
    assert found == {
        "CUDA_VISIBLE_DEVICES": "0",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NCCL_DEBUG": "INFO",
    }


def test_ranks_on_cpus_see_no_gpu_and_meet_over_gloo() -> None:
    """Threads belong to the case, or the launcher would set them by itself."""
    found = environment(REFERENCE, case("fp32", "cpu", threads=4), placement(2, ()))
    assert found == {
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "ib0",
        "OMP_NUM_THREADS": "4",
    }
    assert "GLOO_SOCKET_IFNAME" not in environment(REFERENCE, case("fp32", "cpu"), placement(1, ()))


def test_training_data_is_mounted_where_the_scripts_look_and_cannot_be_written() -> None:
    """The node's imagenet at /data/image; the reference program makes its own data."""
    seat = placement(1).seats[0]
    assert NGC.mount(case("fp32"), seat) == (Mount("/data/image", "/data/image", read_only=True),)
    assert NGC.data(case("fp32")) == {"imagenet": "/data/image"}
    made_up = case("fp32", data_backend="syntetic")
    assert (NGC.mount(made_up, seat), NGC.data(made_up)) == ((), {})
    assert NGC.published
    assert NGC.published(made_up) is None
    assert NGC.published(case("fp32"))
    assert REFERENCE.mount(case("fp32"), seat) == ()
    assert REFERENCE.data(case("fp32")) == {}


def test_first_ports_are_the_scripts_own() -> None:
    """22333 for several nodes and 29500 for one, as in DLPerf's run_multi_nodes.sh."""
    several = [replace(case("fp32"), nodes=nodes) for nodes in (1, 2, 4)]
    assert [NGC.port(one) for one in several] == [29500, 22333, 22333]
    assert REFERENCE.port(several[0]) == 22333


def test_progress_is_read_from_the_last_whole_line() -> None:
    """Iteration and printed rate, in the seed's words."""
    line = b"DLL 2020-09-15 14:29:18.553769 - Epoch: 0 Iteration: 12  train.loss : 6.67351"
    line += b"  train.total_ips : 10393.54 img/s\n"
    for workload in (NGC, REFERENCE):
        assert workload.progress(line) == (12, 10393.54)


def test_a_workload_that_is_not_there_is_told_with_those_that_are() -> None:
    """A name of ours finds its record; another one is a usage error."""
    assert workloads.require("oneflow_gpt") is workloads.find("oneflow_gpt")
    with pytest.raises(errors.UsageError, match="there is no workload 'oneflow_gtp'") as caught:
        workloads.require("oneflow_gtp")
    assert caught.value.code == "NO-WORKLOAD"
    assert caught.value.fix == f"needed one of {', '.join(workloads.names())}"
