"""Stand-ins of the virtual cluster, held against what upstream's real programs take and print."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import TESTS
from tests.cluster import downloads, stubs, wheels
from tests.on_cluster import forms
from tests.sshd import free_port

STANDIN = TESTS / "cluster" / "standin"
PYTORCH = (
    "--nnodes 1 --node_rank 0 --nproc_per_node 2 --master_addr 127.0.0.1 --master_port={port}"
    " {code}/main.py --data-backend syntetic --raport-file /workspace/rn50/raport.json -j8 -p 1"
    " --lr 0.002 --optimizer-batch-size -1 --warmup 8 --arch resnet50 -c fanin"
    " --label-smoothing 0.1 --lr-schedule cosine --mom 0.125 --wd 3.0517578125e-05"
    " --workspace /workspace/rn50 -b 1 --epochs 1 --prof 46 --training-only --no-checkpoints"
    " --amp --dynamic-loss-scale /data/image"
)
CNNS = (
    "--num_examples=15360 --train_data_dir=./data --train_data_part_num=4 --num_nodes=1"
    " --gpu_num_per_node=1 --learning_rate=0.001 --loss_print_every_n_iter=20"
    " --batch_size_per_device=128 --val_batch_size_per_device=125 --num_epoch=1 --log_dir=./log"
    " --node_ips=10.11.0.2 --model=resnet50 "
)
MOMENTUM = CNNS + "--model_update=momentum --mom=0.875 --label-smoothing=0.1"
AMP = CNNS + (
    "--use_fp16 --channel_last=True --pad_output --fuse_bn_relu=True --fuse_bn_add_relu=True"
    " --gpu_image_decoder=True --label_smoothing=0.1"
)
PRETRAINING = (
    "--iter_num=140 --loss_print_every_n_iter=20 --data_dir=./data --data_part_num=4"
    " --node_ips=10.11.0.2 --log_dir=./log --model_save_dir=./snapshots "
)
GPT = (
    "--num-layers 16 --hidden-size 1536 --num-attention-heads 16 --micro-batch-size 2"
    " --global-batch-size 2 --node-ips 10.11.0.2 --train-iters 100 --dataset ./data/gpt"
    " --log-interval 10 --lr-decay-style cosine --lr-decay-iters 320000 --optimizer adamw"
    " --lr-warmup-fraction 0.01 --initial-loss-scale 1048576 --load checkpoint --save checkpoint"
    " --split 949,50,1 --save-interval 20000 --checkpoint-activations --fp16 --use-rdma"
    " --multihead-attention-fusion"
)
RN50 = "Classification/cnns/of_cnn_train_val.py"
BERT = "LanguageModeling/BERT/run_pretraining.py"
MAIN = f"{downloads.CODE_PATH}/main.py"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The stand-ins as in their repositories, the stubs that they import, and a little data."""
    for path, source in downloads.programs().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tmp_path / path)
    shutil.copytree(STANDIN / "torch_stub", tmp_path / "stubs" / "torch")
    for release in ("0.1.9", "0.2.0"):
        wheel = wheels.made("oneflow_cu102", release)[1]
        (tmp_path / f"oneflow-{release}.whl").write_bytes(wheel)
    stubs.write(tmp_path / "bin")
    (tmp_path / "data").mkdir()
    for name in (*(f"part-{part:05d}" for part in range(4)), "gpt.bin", "gpt.idx"):
        (tmp_path / "data" / name).touch()
    return tmp_path


def run(folder: Path, *words: str, release: str = "0.1.9") -> "subprocess.CompletedProcess[str]":
    """A stand-in, to its end."""
    paths = ("stubs", f"oneflow-{release}.whl", "LanguageModeling/GPT")
    return subprocess.run(
        [sys.executable, "-u", *words],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(str(folder / path) for path in paths),
            "CUDA_VISIBLE_DEVICES": "0,1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_pytorchs_prints_what_the_real_program_prints(here: Path) -> None:
    """Line by line, but for numbers and paths; two ranks."""
    options = PYTORCH.format(port=free_port(), code=here / downloads.CODE_PATH)
    done = run(here, f"{downloads.CODE_PATH}/multiproc.py", *options.split())
    assert done.returncode == 0, done.stderr
    assert forms.of(done.stdout) == forms.recorded("pytorch_5cc03ca_1n2g_syntetic_r50_b1_amp_1.log")


@pytest.mark.parametrize(
    ("program", "options", "release", "log"),
    [
        (RN50, MOMENTUM, "0.1.9", "oneflow_637bb9c_1n1g_rn50_b128_fp32_1.log"),
        (RN50, AMP, "0.2.0", "oneflow_638d8f4_1n1g_rn50_b256_amp_1.log"),
        (BERT, PRETRAINING, "0.1.9", "oneflow_637bb9c_1n1g_bert_base_b96_fp32_1.log"),
        (
            BERT,
            f"{PRETRAINING} --use_fp16",
            "0.2.0",
            "oneflow_638d8f4_1n1g_bert_base_b160_amp_1.log",
        ),
        (
            "-moneflow_gpt.training",
            GPT,
            "0.2.0",
            "oneflow_8da0250_1n1g_gpt_DP_1x1x1_2_1536x16_1.log",
        ),
    ],
)
def test_oneflows_print_what_the_real_programs_print(
    here: Path, program: str, options: str, release: str, log: str
) -> None:
    """The header in the order of its options, the optimizer, and what is said between the steps."""
    done = run(here, program, *options.split(), release=release)
    assert done.returncode == 0, done.stderr
    assert forms.of(done.stdout) == forms.recorded(log)


@pytest.mark.parametrize(
    ("program", "options", "seen"),
    [
        (RN50, "--momentum=0.875", "unrecognized arguments: --momentum=0.875"),
        (RN50, "--batch_size_per_device=many", "invalid int value: 'many'"),
        (MAIN, "--local_rank=0 /data", "unrecognized arguments"),
        (MAIN, "--arch resnet /data", "invalid choice: 'resnet'"),
        (BERT, "--ctrl_port=1", "unrecognized arguments"),
        ("-moneflow_gpt.training", "--num-layer 16", "unrecognized arguments"),
    ],
)
def test_a_stand_in_refuses_what_the_real_program_refuses(
    here: Path, program: str, options: str, seen: str
) -> None:
    """With a usage error, before it does anything."""
    done = run(here, program, *options.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert seen in done.stderr
