"""NVIDIA's TensorFlow ResNet-50: the command lines of its two procedures, and what it cannot do."""

import fnmatch
from dataclasses import replace

import pytest
from pydantic import ValidationError

from orchestrator import logs, workloads
from orchestrator.measuring import validity
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Mount, Placement, Seat
from orchestrator.model.text import Scalar
from orchestrator.workloads import ngc_tensorflow_rn50
from tests import SAMPLES

REAL = SAMPLES / "real-upstream"
WORKLOAD = ngc_tensorflow_rn50.WORKLOAD
TRAIN = Method(repeats=5, iterations=120, window=(21, 120), rule="rates")
BENCHMARK = Method(repeats=5, iterations=500, rule="reported")
DATA = {"imagenet_tfrecord": "/ssd/tfrecords", "dali_idx": "/ssd/idx", "imagenet": "/ssd/image"}


def case(
    precision: str = "fp32",
    nodes: int = 1,
    gpus: int = 8,
    micro_batch_size: int = 128,
    **params: Scalar,
) -> Case:
    """One node, eight GPUs, batch 128 in FP32, unless said otherwise."""
    return Case(
        nodes=nodes,
        gpus_per_node=gpus,
        micro_batch_size=micro_batch_size,
        precision=precision,
        device="cuda",
        params=tuple(sorted(params.items())),
    )


def placement(of: Case) -> Placement:
    """DLPerf's nodes."""
    seats = tuple(
        Seat(f"vs{n}", f"10.11.0.{n + 1}", tuple(range(of.gpus_per_node)), "ib0", ("mlx5_0",), DATA)
        for n in range(1, of.nodes + 1)
    )
    return Placement(
        seats, of.gpus_per_node, port=12345, code="/workspace/rn50v15_tf", python="python3"
    )


def started(of: Case, method: Method) -> str:
    """What the leader starts."""
    where = placement(of)
    return " ".join(WORKLOAD.launcher(WORKLOAD.command(of, method, where), where)[0].argv)


def test_it_is_found_by_its_name() -> None:
    """Its module is the registry."""
    assert workloads.find("ngc_tensorflow_rn50") is WORKLOAD
    assert workloads.find("_oneflow") is None


def test_one_gpu_trains_by_dlperfs_command_line() -> None:
    """single_node_train.sh with USE_DALI, word for word but for where results lie."""
    assert started(case(gpus=1), TRAIN) == (
        "python3 /workspace/rn50v15_tf/main.py --arch=resnet50 --mode=train --iter_unit=batch"
        " --num_iter=120 --batch_size=128 --warmup_steps=10000 --use_cosine_lr"
        " --label_smoothing 0.1 --lr_init=0.001 --lr_warmup_epochs=8 --momentum=0.875"
        " --weight_decay=3.0517578125e-05 --precision=fp32 --data_dir=/data/tfrecords --use_dali"
        " --data_idx_dir=/data/dali_idx --results_dir=./results --weight_init=fan_in"
        " --display_every=1 --gpu_memory_fraction=0.98"
    )


def test_four_nodes_train_by_dlperfs_command_line() -> None:
    """multi_node_train.sh for amp with USE_XLA; its ranks are mpirun's."""
    line = started(case("amp", nodes=4, xla=True), TRAIN)
    assert line.startswith("mpirun --allow-run-as-root")
    assert " -np 32 -H 10.11.0.2:8,10.11.0.3:8,10.11.0.4:8,10.11.0.5:8 " in line
    assert line.endswith(
        "python3 /workspace/rn50v15_tf/main.py --arch=resnet50 --mode=train --iter_unit=batch"
        " --num_iter=120 --batch_size=128 --warmup_steps=0 --use_cosine_lr"
        " --label_smoothing 0.1 --lr_init=0.256 --lr_warmup_epochs=8 --momentum=0.875"
        " --weight_decay=3.0517578125e-05 --precision=fp32 --use_tf_amp"
        " --use_static_loss_scaling --loss_scale=128 --data_dir=/data/tfrecords --use_dali"
        " --data_idx_dir=/data/dali_idx --use_xla --results_dir=./results --weight_init=fan_in"
        " --display_every=1 --gpu_memory_fraction=0.98"
    )


def test_benchmark_runs_by_training_perfs_command_line() -> None:
    """Bound to sockets, without DALI, every other argument as the program has it."""
    of = case("amp", micro_batch_size=208, mode="training_benchmark", xla=True)
    assert started(of, BENCHMARK) == (
        "mpiexec --allow-run-as-root --bind-to socket -np 8 python3 /workspace/rn50v15_tf/main.py"
        " --mode=training_benchmark --warmup_steps 200 --num_iter 500 --iter_unit batch"
        " --batch_size 208 --data_dir=/data/tfrecords/ --results_dir=./results --use_tf_amp"
        " --use_static_loss_scaling --loss_scale=128 --use_xla"
    )
    assert started(case(gpus=1, micro_batch_size=160, mode="training_benchmark"), BENCHMARK) == (
        "python3 /workspace/rn50v15_tf/main.py"
        " --mode=training_benchmark --warmup_steps 200 --num_iter 500 --iter_unit batch"
        " --batch_size 160 --data_dir=/data/tfrecords/ --results_dir=./results"
    )


def test_results_never_outlive_their_attempt() -> None:
    """The scripts' folders hold checkpoints, from which the next run would go on."""
    for of, method in ((case(), TRAIN), (case(mode="training_benchmark"), BENCHMARK)):
        assert " --results_dir=./results" in started(of, method)


def test_benchmark_may_be_told_otherwise() -> None:
    """Over DALI, with another warm-up, and on data that it makes itself."""
    dali = started(case(mode="training_benchmark", dali=True, warmup_steps=50), BENCHMARK)
    assert "--warmup_steps 50 " in dali
    assert dali.endswith("--results_dir=./results --use_dali --data_idx_dir=/data/dali_idx")
    synthetic = started(case(mode="training_benchmark", data="synthetic"), BENCHMARK)
    assert "data_dir" not in synthetic
    assert "--use_dali" not in started(case(dali=False), TRAIN)


@pytest.mark.parametrize(
    ("scale", "printed"), [(128, "128"), (128.0, "128"), (0.5, "0.5"), (1048576, "1048576")]
)
def test_loss_scale_reaches_the_program_digit_by_digit(scale: Scalar, printed: str) -> None:
    """And only with AMP."""
    assert f" --loss_scale={printed} " in started(case("amp", loss_scale=scale), TRAIN)
    assert "scale" not in started(case("fp32", loss_scale=scale), TRAIN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "evaluate"),
        ("xla", 1),
        ("dali", "yes"),
        ("loss_scale", 0),
        ("loss_scale", "dynamic"),
        ("warmup_steps", -1),
        ("data", "imagenet"),
        ("batch", 128),
    ],
)
def test_parameter_that_the_program_does_not_have_is_refused(name: str, value: Scalar) -> None:
    """Before it is in a command line."""
    with pytest.raises(ValidationError):
        WORKLOAD.params.model_validate({name: value})


def test_data_is_mounted_where_the_scripts_look_and_cannot_be_written() -> None:
    """Images and, for DALI, the index; nothing for data that is made by the program."""
    images = Mount("/ssd/tfrecords", "/data/tfrecords", read_only=True)
    index = Mount("/ssd/idx", "/data/dali_idx", read_only=True)
    made = case(mode="training_benchmark", data="synthetic")
    for of, names, expected in (
        (case(), ("imagenet_tfrecord", "dali_idx"), (images, index)),
        (case(mode="training_benchmark"), ("imagenet_tfrecord",), (images,)),
        (case(dali=False), ("imagenet_tfrecord",), (images,)),
        (made, (), ()),
    ):
        assert tuple(WORKLOAD.data(of)) == names
        assert WORKLOAD.mount(of, placement(of).seats[0]) == expected


@pytest.mark.parametrize(
    ("of", "method"),
    [
        (case(), TRAIN),
        (case("amp", micro_batch_size=208, xla=True, mode="train", loss_scale=128), TRAIN),
        (case(mode="training_benchmark", warmup_steps=200), BENCHMARK),
        (case(mode="training_benchmark"), Method(repeats=1, iterations=500, window=(200, 499))),
        (case(mode="training_benchmark", data="synthetic"), BENCHMARK),
        (case(dali=True), Method(repeats=1, iterations=140, window=(21, 119))),
    ],
)
def test_what_the_program_can_do_is_not_refused(of: Case, method: Method) -> None:
    """Both procedures, and what lies between them."""
    assert tuple(WORKLOAD.unsupported(of, method)) == ()


@pytest.mark.parametrize(
    ("of", "method", "seen"),
    [
        (case(data="synthetic"), TRAIN, "data: synthetic in mode train"),
        (
            case(mode="training_benchmark", data="synthetic", dali=True),
            BENCHMARK,
            "dali: true with data: synthetic",
        ),
        (case(warmup_steps=200), TRAIN, "warmup_steps in mode train"),
        (
            case(mode="training_benchmark"),
            Method(repeats=1, iterations=200, rule="reported"),
            "iterations: 200 in mode training_benchmark, which leaves out the first 200",
        ),
        (
            case(),
            Method(repeats=1, iterations=20, rule="rates"),
            "iterations: 20 in mode train, which leaves out the first 20",
        ),
        (
            case(),
            Method(repeats=1, iterations=120, window=(19, 119)),
            "window: [19, 119] in mode train with iterations: 120; needed a window from 21 to 120",
        ),
        (
            case(mode="training_benchmark"),
            Method(repeats=1, iterations=500, window=(200, 500)),
            "iterations: 500; needed a window from 200 to 499",
        ),
    ],
)
def test_what_the_program_cannot_do_is_refused(of: Case, method: Method, seen: str) -> None:
    """Each conflict in one sentence that says what was needed."""
    (said,) = WORKLOAD.unsupported(of, method)
    assert seen in said
    assert "; needed" in said or "; this program" in said


def test_both_modes_report_a_result_of_their_own() -> None:
    """The real program ends a training, too, with the mean of the rates that it printed."""
    assert (
        list(WORKLOAD.unsupported(case(), Method(repeats=1, iterations=45, rule="reported"))) == []
    )
    content = (REAL / "tensorflow_fed7ba99_1n1g_train_r50_b1_fp32_1.log").read_bytes()
    log = logs.reader(logs.TENSORFLOW)([content], None)
    assert validity.compute_throughput(log, None, "reported") == 0.6804357877819132
    assert validity.rate_problem(replace(log, rule="reported"), 1) is None


def test_names_of_logs_tell_xla_and_mode() -> None:
    """DLPerf's runs with and without XLA had one name."""
    stem = WORKLOAD.stem
    assert stem
    assert stem(case("amp", micro_batch_size=224)) == "r50_b224_amp"
    assert stem(case("amp", micro_batch_size=224, xla=True)) == "r50_b224_amp-xla"
    assert stem(case(mode="training_benchmark")) == "r50_b128_fp32-benchmark"
    assert stem(case("amp", xla=True, mode="training_benchmark")) == "r50_b128_amp-xla-benchmark"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("r50_b224_amp_3", {}),
        ("r50_b224_amp-xla_3", {"xla": True}),
        ("r50_b128_fp32-benchmark_1", {"mode": "training_benchmark"}),
        ("r50_b128_amp-xla-benchmark_1", {"xla": True, "mode": "training_benchmark"}),
        ("r50_b128_amp-xla-mine_1", {}),
        ("tf_gpu32_amp_bs256", {}),
    ],
)
def test_our_own_names_of_logs_are_read_back(name: str, said: dict[str, object]) -> None:
    """What nobody of ours wrote there tells nothing, and stays a label of its own."""
    assert WORKLOAD.told_by_name(name) == said


def test_synthetic_data_is_compared_with_nothing() -> None:
    """What was published read images."""
    assert WORKLOAD.published
    synthetic = case(data="synthetic", xla=True, mode="training_benchmark")
    assert WORKLOAD.published(synthetic) is None


@pytest.mark.parametrize(
    ("of", "fits", "precision"),
    [
        (case(), {"ngc-tf1"}, "fp32"),
        (case("amp"), {"ngc-tf1"}, "amp"),
        (case("amp", xla=True), {"ngc-tf1"}, "amp-xla"),
        (case(xla=True), {"ngc-tf1"}, "fp32-xla"),
        (case(mode="training_benchmark"), set(), "fp32"),
        (
            case("amp", xla=True, mode="training_benchmark"),
            {"ngc-tf1-xla-2020.12", "ngc-tf1-xla-2022"},
            "amp",
        ),
    ],
)
def test_published_results_are_those_of_the_same_compiler(
    of: Case, fits: set[str], precision: str
) -> None:
    """A result with XLA is never set beside a case without it, nor one procedure's by another."""
    assert WORKLOAD.published
    called = WORKLOAD.published(of)
    assert called
    known = ("ngc-tf1", "ngc-tf1-xla-2020.12", "ngc-tf1-xla-2022", "tf2.3", "ngc-pytorch")
    found = {name for name in known for like in called.frameworks if fnmatch.fnmatch(name, like)}
    assert (found, called.precision, called.model) == (fits, (precision,), "resnet50v1.5")


def test_ports_and_iterations_are_the_scripts_own() -> None:
    """mpirun's sshd listens at 12345, and of 120 steps the last one shown is 120."""
    assert (WORKLOAD.port(case(nodes=4)), WORKLOAD.port(case(gpus=1))) == (12345, 12345)
    assert not WORKLOAD.fixed_port(case(nodes=4))
    assert WORKLOAD.last_iteration(120) == 120


def test_gang_is_told_its_network() -> None:
    """As every gang of ranks on GPUs."""
    of = case(nodes=2)
    found = WORKLOAD.env(of, placement(of), placement(of).seats[0])
    assert (found["NCCL_IB_HCA"], found["NCCL_DEBUG"]) == ("=mlx5_0", "INFO")


def test_log_of_another_case_is_told_by_its_header() -> None:
    """Mode, XLA and loss scale are compared as far as the playbook says them."""
    header = (
        b"DLL 2020-12-16 07:37:13.935804 - PARAMETER arch : resnet50  mode : training_benchmark "
        b" data_dir : /data/tfrecords/  data_idx_dir : None  batch_size : 128  num_iter : 500 "
        b" run_iter : -1  iter_unit : batch  warmup_steps : 200  display_every : 1  precision :"
        b" fp32  loss_scale : 128.0  use_static_loss_scaling : True  use_xla : True  use_dali :"
        b" False  use_tf_amp : True  name : False \nNum GPUs 8\n"
    )
    log = logs.reader(logs.TENSORFLOW)([header], None)
    same = case("amp", xla=True, mode="training_benchmark", warmup_steps=200, loss_scale=128)
    assert validity.mismatches(log, same, BENCHMARK) == ()
    other = case("amp", xla=False, mode="training_benchmark")
    (problem,) = validity.mismatches(log, other, BENCHMARK)
    assert problem.message == "xla is True in the log and False in the case"
    assert validity.mismatches(log, case("amp", mode="train"), BENCHMARK) != ()
