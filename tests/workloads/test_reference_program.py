"""The reference training program, run for real: alone, and by torchrun in gangs of processes."""

import importlib.util
import math
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from orchestrator import logs
from tests import ROOT, commands

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="needs torch: pip install '.[demo]'",
)

PROGRAM = ROOT / "images" / "reference-rn50" / "train.py"
SMALL = ("--device", "cpu", "--threads", "1", "--image-size", "32", "-b", "2", "--lr", "0.1")
CPU = ("--device", "cpu", "-b", "2", "--prof", "4")
CUDA = ("--device", "cuda", *CPU[2:])
STATIC = ("--static-loss-scale", "128")
TIMEOUT_S = 120

# NVIDIA's program, PaddlePaddle/Perf @ be362d9, pytorch_gpu1_fp32_bs128.txt.
NVIDIA = """\
DLL 2020-12-16 11:32:20.234886 - Epoch: 0 Iteration: 2  train.loss : 7.75022  train.total_ips : 367.41 img/s
DLL 2020-12-16 11:32:54.366212 - Epoch: 0  train.loss : 7.28801  train.total_ips : 364.26 img/s
DLL 2020-12-16 11:32:54.366303 - Epoch: 0  lr : 0.1  train.compute_ips : 365.22 img/s train.data_time : 0.00092 s train.compute_time : 0.38156 s
DLL 2020-12-16 11:32:54.606243 - Summary: train.loss : 7.28801  train.total_ips : 364.26 img/s
DLL 2020-12-16 11:32:54.606370 - Summary: lr : 0.1  train.compute_ips : 365.22 img/s train.data_time : 0.00092 s train.compute_time : 0.38156 s
"""  # noqa: E501 - lines as they were printed
STEP = re.compile(
    r"DLL (\S+ \S+) - Epoch: 0 Iteration: (\d+)"
    r"  train\.loss : (\S+)  train\.total_ips : (\S+) img/s"
)


def environment() -> dict[str, str]:
    """This process's environment without what a launcher or a user may have set for torch."""
    mine = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: value for name, value in os.environ.items() if name not in mine}
    return {**kept, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def run_alone(*options: str) -> subprocess.CompletedProcess[str]:
    """The program without torchrun, to its end."""
    return commands.run(
        [sys.executable, str(PROGRAM), *options], env=environment(), timeout_s=TIMEOUT_S
    )


@contextmanager
def gang(nodes: int, processes: int, *options: str) -> Iterator[list[subprocess.Popen[str]]]:
    """One torchrun agent a node, node_rank 0 first, all on this machine; none is left behind."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nnodes", str(nodes))
    place = ("--nproc_per_node", str(processes), "--master_addr", "127.0.0.1")
    program = (f"--master_port={port}", str(PROGRAM), *options)
    agents = [
        subprocess.Popen(
            (*torchrun, "--node_rank", str(node_rank), *place, *program),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for node_rank in range(nodes)
    ]
    try:
        yield agents
    finally:
        for agent in agents:
            agent.terminate()  # the agent then ends its workers
        for agent in agents:
            agent.communicate(timeout=TIMEOUT_S)


def read_header(log: str) -> dict[str, str]:
    """Return the items of the PARAMETER line."""
    (line,) = re.findall(r"(?m)^DLL \S+ \S+ - PARAMETER (.*) $", log)
    return dict(item.split(" : ", 1) for item in line.split("  "))


def read_steps(log: str) -> list[tuple[float, int, float, float]]:
    """Return time in seconds, iteration, loss and images/s of each step line."""
    return [
        (datetime.fromisoformat(stamp).timestamp(), int(number), float(loss), float(rate))
        for stamp, number, loss, rate in STEP.findall(log)
    ]


def check_steps(log: str, images: int) -> None:
    """Iterations 1 to 3, finite losses, and rates of so many images in the time between lines."""
    steps = read_steps(log)
    assert [iteration for _, iteration, _, _ in steps] == [1, 2, 3]
    assert all(math.isfinite(loss) for _, _, loss, _ in steps)
    for (before_s, *_), (after_s, _, _, rate) in pairwise(steps):
        assert rate == pytest.approx(images / (after_s - before_s), abs=0.006)


def hide_digits(log: str) -> list[str]:
    """Return the lines with each digit as 0, and one digit before a point."""
    return [re.sub(r"0+\.", "0.", re.sub(r"\d", "0", line)) for line in log.splitlines()]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """The program as a module; its folder's name is no name of a package."""
    spec = importlib.util.spec_from_file_location("train", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def alone() -> str:
    """Return the log of a whole run in float32 with one process; no warning appears beside it."""
    done = run_alone(*SMALL, "--prof", "4")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_model_is_resnet50_v1_5(program: ModuleType) -> None:
    """It has the 25,557,032 parameters that are published for ResNet-50, and v1.5's strides."""
    model = program.resnet50(1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032
    strided = [
        (module.kernel_size, module.padding)
        for module in model.modules()
        if isinstance(module, program.nn.Conv2d) and module.stride == (2, 2)
    ]
    stem, middle, shortcut = ((7, 7), (3, 3)), ((3, 3), (1, 1)), ((1, 1), (0, 0))
    assert strided == [stem, *(middle, shortcut) * 3]


def test_the_log_is_that_of_nvidias_program_but_for_its_digits(alone: str) -> None:
    """``--prof 4`` logs iterations 1 to 3; the reader of NVIDIA's logs finds no problem."""
    step, *means = hide_digits(NVIDIA)
    lines = alone.splitlines()
    assert lines[0] == "RANKS world_size=1 nodes=1 0:0/0"
    assert hide_digits("\n".join(lines[2:])) == [step, step, step, *means, "Experiment ended"]
    check_steps(alone, 2)
    log = logs.reader(logs.DLLOGGER)([alone.encode()], (1, 3))
    assert (log.problems, log.runs, log.steps) == ((), 1, 3)


def test_the_header_contains_what_was_run(alone: str) -> None:
    """The options, what follows from them, and the world."""
    seen = read_header(alone)
    expected = {
        **{"data": "synthetic", "data_backend": "synthetic", "arch": "resnet50", "epochs": "1"},
        **{"num_classes": "1000", "image_size": "32", "batch_size": "2", "lr": "0.1"},
        **{"optimizer_batch_size": "2", "accumulation_steps": "1", "label_smoothing": "0.1"},
        **{"momentum": "0.9", "weight_decay": "0.0001", "static_loss_scale": "1.0"},
        **{"dynamic_loss_scale": "False", "prof": "4", "amp": "False", "amp_dtype": "None"},
        **{"memory_format": "nhwc", "device": "cpu", "backend": "gloo", "distributed": "False"},
        **{"local_rank": "0", "gpu": "None", "world_size": "1", "threads": "1"},
    }
    assert {name: seen.get(name) for name in expected} == expected


def test_amp_on_cpus_is_bfloat16_and_rates_count_the_global_batch() -> None:
    """2 images x 2 micro steps."""
    done = run_alone(*SMALL, "--prof", "4", "--amp", "--accumulation-steps", "2")
    assert done.returncode == 0, done.stderr
    seen = read_header(done.stdout)
    shown = [seen[name] for name in ("amp", "amp_dtype", "optimizer_batch_size")]
    assert shown == ["True", "bfloat16", "4"]
    check_steps(done.stdout, 4)


def test_the_same_seed_gives_the_same_first_loss(alone: str) -> None:
    """Two runs with one seed begin alike; another seed begins elsewhere."""
    first = read_steps(alone)[0][2]
    assert read_steps(run_alone(*SMALL, "--prof", "2").stdout)[0][2] == first
    assert read_steps(run_alone(*SMALL, "--prof", "2", "--seed", "1").stdout)[0][2] != first


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("nodes", "processes", "ranks"),
    [
        (2, 1, "0:0/0 1:1/0"),
        pytest.param(1, 2, "0:0/0 1:0/1", marks=pytest.mark.long),
    ],
)
def test_a_gang_logs_once_and_proves_its_world(nodes: int, processes: int, ranks: str) -> None:
    """Of two processes rank 0 alone writes a log, which counts the images of both."""
    options = (*SMALL, "--prof", "4", "--accumulation-steps", "2", "--bf16")
    with gang(nodes, processes, *options) as agents:
        log, *others = (agent.communicate(timeout=TIMEOUT_S)[0] for agent in agents)
        assert [agent.returncode for agent in agents] == [0] * nodes
    assert "".join(others) == ""
    assert log.splitlines()[0] == f"RANKS world_size=2 nodes={nodes} {ranks}"
    assert log.endswith("\nExperiment ended\n")
    seen = read_header(log)
    expected = {"world_size": "2", "distributed": "True", "optimizer_batch_size": "8"}
    assert {name: seen.get(name) for name in expected} == expected
    check_steps(log, 8)
    read = logs.reader(logs.DLLOGGER, (1, 3))([log.encode()], None)
    assert (seen["amp_dtype"], read.config["precision"]) == ("bfloat16", "bf16")


@pytest.mark.cluster
def test_a_killed_rank_ends_the_gang() -> None:
    """If a process of one node dies in training, the agents of both nodes exit non-zero."""
    with gang(2, 1, *SMALL, "--prof", "100000") as (leader, other):
        assert leader.stdout is not None
        assert any("Iteration: 2 " in line for line in iter(leader.stdout.readline, ""))
        children = Path(f"/proc/{other.pid}/task/{other.pid}/children").read_text().split()
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)
        leader.communicate(timeout=60)
        other.communicate(timeout=60)
        assert leader.returncode > 0
        assert other.returncode > 0


def test_cuda_without_a_gpu_is_refused(program: ModuleType) -> None:
    """``--device cuda`` never falls back to the CPU: it names what is missing and exits 1."""
    if program.torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = run_alone(*CUDA)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--device cuda: torch" in done.stderr
    assert "needed: one for each process, here number 0" in done.stderr


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [((), "None"), (("--bf16",), "torch.bfloat16"), (("--amp",), "torch.bfloat16")],
)
def test_layers_compute_in_what_was_asked_for(
    program: ModuleType, flags: tuple[str, ...], dtype: str
) -> None:
    """Not only the header: the output of a convolution under autocast has that type."""
    options = program.parse((*CPU, *flags))
    found = program.autocast_dtype(options)
    assert str(found) == dtype
    torch = program.torch
    with torch.autocast("cpu", found, enabled=found is not None):
        out = torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2))
    assert out.dtype == (found or torch.float32)


@pytest.mark.parametrize("allowed", [False, True])
def test_tf32_is_switched_as_asked(program: ModuleType, allowed: bool) -> None:
    """Both of torch's switches, before a GPU is looked for."""
    if program.torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    options = program.parse((*CUDA, *(("--allow-tf32",) if allowed else ())))
    with pytest.raises(SystemExit, match="one for each process"):
        program.prepare(options, program.Seat(0, 0, 0, "here"))
    backends = program.torch.backends
    assert (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32) == (allowed, allowed)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "the following arguments are required: --device, -b/--batch-size, --prof"),
        (("--device", "cpu", "-b", "0", "--prof", "4"), "'0'; needed: a whole number above 0"),
        (("--device", "cpu", "-b", "2", "--prof", "1"), "--prof 1 promises no iteration"),
        ((*CPU, "--arch", "resnet18"), "invalid choice: 'resnet18'"),
        ((*CPU, "--lr", "nan"), "'nan'; needed: a number above 0"),
        ((*CPU, "--lr", "fast"), "'fast'; needed: a number above 0"),
        ((*CPU, "--allow-tf32"), "--allow-tf32 needs --device cuda"),
        ((*CPU, "--amp", *STATIC), "--amp on cpu is bfloat16, which needs no loss scale"),
        ((*CPU, "--dynamic-loss-scale"), "a loss scale needs --amp"),
        ((*CUDA, "--amp"), "--amp on cuda needs a loss scale"),
        ((*CPU, "--amp", "--bf16"), "--bf16 excludes --amp"),
        ((*CUDA, "--bf16", *STATIC), "--bf16 needs no loss scale"),
        ((*CUDA, "--threads", "1"), "--threads needs --device cpu"),
        (
            (*CUDA, "--amp", "--dynamic-loss-scale", *STATIC),
            "--static-loss-scale excludes --dynamic-loss-scale",
        ),
        ((*CPU, *STATIC, "--allow-tf32"), "a loss scale needs --amp; --allow-tf32 needs"),
    ],
)
def test_options_that_cannot_hold_are_refused(
    program: ModuleType,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    words: str,
) -> None:
    """Each is refused with its reason, all reasons at once, and status 2."""
    with pytest.raises(SystemExit) as refused:
        program.parse(options)
    assert refused.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "seats",
    [
        [(0, 0, 0, "a"), (2, 0, 1, "b")],
        [(0, 0, 0, "a"), (0, 0, 1, "b")],
        [(0, 0, 0, "a"), (1, 0, 0, "a")],
        [(0, 0, 0, "a"), (1, 1, 0, "b")],
    ],
    ids=["rank missing", "rank doubled", "place doubled", "node_rank on two machines"],
)
def test_world_with_a_hole_is_refused(
    program: ModuleType, seats: list[tuple[int, int, int, str]]
) -> None:
    """A world in which not everybody has a place of his own ends the program, showing all seats."""
    rank, local_rank, node_rank, machine = seats[1]
    with pytest.raises(SystemExit, match=f"{rank}:{node_rank}/{local_rank}@{machine}; needed"):
        program.ranks_line([program.Seat(*seat) for seat in seats])


def test_half_a_launcher_is_refused(program: ModuleType) -> None:
    """An environment with a rank but no place is not taken for a world of one."""
    with pytest.raises(SystemExit, match="no LOCAL_RANK, GROUP_RANK; needed"):
        program.seat_here({"RANK": "1"})


def test_overflow_in_the_first_step_leaves_the_model_as_it_was(program: ModuleType) -> None:
    """A first step that AMP skips changes nothing, now or in the momentum of the next."""
    torch = program.torch
    model = torch.nn.Linear(64, 64, bias=False)
    before = model.weight.detach().clone()
    sgd = program.optimizer(model, 0.1)
    model.weight.grad = torch.full_like(model.weight, math.inf)
    sgd.grad_scale, sgd.found_inf = torch.tensor(1.0), torch.tensor(1.0)
    sgd.step()
    assert torch.equal(model.weight.detach(), before)
    model.weight.grad = torch.ones_like(model.weight)
    sgd.found_inf = torch.tensor(0.0)
    sgd.step()
    expected = before - 0.1 * (1 + program.WEIGHT_DECAY * before)
    torch.testing.assert_close(model.weight.detach(), expected)
