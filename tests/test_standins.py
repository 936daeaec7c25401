"""Stand-ins of the virtual cluster, held against what upstream's real programs take and print."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forms
from tests.cluster import downloads, wheels
from tests.sshd import free_port

STANDIN = Path(__file__).parent / "cluster" / "standin"
PYTORCH = (
    "--nnodes 1 --node_rank 0 --nproc_per_node 2 --master_addr 127.0.0.1 --master_port={port}"
    " {code}/main.py --data-backend syntetic --raport-file /workspace/rn50/raport.json -j8 -p 1"
    " --lr 0.002 --optimizer-batch-size -1 --warmup 8 --arch resnet50 -c fanin"
    " --label-smoothing 0.1 --lr-schedule cosine --mom 0.125 --wd 3.0517578125e-05"
    " --workspace /workspace/rn50 -b 1 --epochs 1 --prof 46 --training-only --no-checkpoints"
    " --amp --dynamic-loss-scale /data/image"
)
ONEFLOW = (
    "--num_examples=15360 --train_data_dir={data}/data --train_data_part_num=4"
    " --num_nodes=1 --gpu_num_per_node=1 --model_update=momentum --mom=0.875"
    " --label-smoothing=0.1 --learning_rate=0.001 --loss_print_every_n_iter=20"
    " --batch_size_per_device=128 --val_batch_size_per_device=125 --num_epoch=1 --log_dir=./log"
    " --node_ips=10.11.0.2 --model=resnet50"
)
RN50 = "Classification/cnns/of_cnn_train_val.py"
WHEEL = "oneflow.whl"
ENV = {"PATH": os.environ["PATH"], "STANDIN_SWITCH": "{}", "CUDA_VISIBLE_DEVICES": "0,1"}


def laid_out(folder: Path) -> Path:
    """The stand-ins as in their repositories, and the stubs that they import."""
    for path, source in downloads.programs().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / path)
    shutil.copytree(STANDIN / "torch_stub", folder / "stubs" / "torch")
    (folder / WHEEL).write_bytes(wheels.made("oneflow_cu102", "0.1.9")[1])
    return folder


def run(
    folder: Path, program: str, options: str, *paths: Path
) -> "subprocess.CompletedProcess[str]":
    """A stand-in, to its end."""
    return subprocess.run(
        [sys.executable, "-u", str(folder / program), *options.split()],
        cwd=folder,
        env={**ENV, "PYTHONPATH": ":".join(map(str, paths))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The stand-ins, and a little data."""
    for part in range(4):
        (tmp_path / "data" / f"part-{part:05d}").parent.mkdir(exist_ok=True)
        (tmp_path / "data" / f"part-{part:05d}").touch()
    return laid_out(tmp_path)


def test_pytorchs_prints_what_the_real_program_prints(here: Path) -> None:
    """Line by line, but for numbers and paths; two ranks."""
    options = PYTORCH.format(port=free_port(), code=here / downloads.CODE_PATH)
    done = run(here, f"{downloads.CODE_PATH}/multiproc.py", options, here / "stubs")
    assert done.returncode == 0, done.stderr
    assert forms.of(done.stdout) == forms.recorded("pytorch_5cc03ca_1n2g_syntetic_r50_b1_amp_1.log")


def test_oneflows_resnet_prints_what_the_real_program_prints(here: Path) -> None:
    """The header in the order of its options, the optimizer, and the data when it is compiled."""
    done = run(here, RN50, ONEFLOW.format(data=here), here / WHEEL)
    assert done.returncode == 0, done.stderr
    assert forms.of(done.stdout) == forms.recorded("oneflow_637bb9c_1n1g_rn50_b128_fp32_1.log")


@pytest.mark.parametrize(
    ("program", "options", "seen"),
    [
        (RN50, "--momentum=0.875", "unrecognized arguments: --momentum=0.875"),
        (RN50, "--batch_size_per_device=many", "invalid int value: 'many'"),
        (f"{downloads.CODE_PATH}/main.py", "--local_rank=0 /data", "unrecognized arguments"),
        (f"{downloads.CODE_PATH}/main.py", "--arch resnet /data", "invalid choice: 'resnet'"),
        ("LanguageModeling/BERT/run_pretraining.py", "--ctrl_port=1", "unrecognized arguments"),
    ],
)
def test_a_stand_in_refuses_what_the_real_program_refuses(
    here: Path, program: str, options: str, seen: str
) -> None:
    """With a usage error, before it does anything."""
    done = run(here, program, options, here / "stubs", here / WHEEL)
    assert (done.returncode, done.stdout) == (2, "")
    assert seen in done.stderr
