"""Stand-in for NVIDIA's ConvNets main.py: a real gang of processes that trains nothing.

Takes the benchmark's own command line, meets the other ranks over TCP, waits for them in every
iteration, and logs in the benchmark's format with the time that really went by.
"""

import argparse
import glob
import json
import math
import os
import signal
import sys
import time
from datetime import datetime

import options  # type: ignore[import-not-found]  # beside it, in the image alone
import torch
import torch.distributed as dist

ITERATION_S = 0.010
NOTES = (
    "Version: {'net': <class 'image_classification.resnet.ResNet'>,"
    " 'block': <class 'image_classification.resnet.Bottleneck'>, 'layers': [3, 4, 6, 3],"
    " 'widths': [64, 128, 256, 512], 'expansion': 4}",
    "Config: {'conv': <class 'torch.nn.modules.conv.Conv2d'>, 'conv_init': 'fan_in',"
    " 'nonlinearity': 'relu', 'last_bn_0_init': False,"
    " 'activation': <function <lambda> at 0x7f2280a6d7a0>}",
)


def say(line: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def dll(text: str) -> None:
    """One record as dllogger writes it."""
    say("DLL " + datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f") + " - " + text)


def parse() -> argparse.Namespace:
    """The benchmark's options, in the order in which its log names them."""
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "options.csv")
    parser = options.parser(table, {"--no-checkpoints": "save_checkpoints"})
    parser.set_defaults(pretrained_weights="")
    parsed = parser.parse_args()
    assert isinstance(parsed, argparse.Namespace)
    return parsed


def count(folder: str) -> str:
    """What the data loader says of a folder of classes."""
    classes = [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]
    files = sum(len(glob.glob(os.path.join(folder, name, "*"))) for name in classes)
    return f"read {files} files from {len(classes)} directories"


def act(wanted: "dict[str, dict[str, int]]", rank: int, iteration: int) -> None:
    """Die or hang where a test asks for it."""
    here = {"rank": rank, "iteration": iteration}
    if wanted.get("die") == here:
        os.kill(os.getpid(), signal.SIGKILL)
    while wanted.get("hang") == here:
        time.sleep(3600)


def iteration_s(world_size: int) -> float:
    """Time of an iteration; many ranks take a little longer, as they do, and a slow node does."""
    wanted = json.loads(os.environ.get("STANDIN_SWITCH", "{}"))
    base = float(wanted.get("iteration_s", ITERATION_S))
    slow = wanted.get("slow", {})
    if slow.get("node") == os.uname().nodename:
        base *= float(slow["by"])
    return base * (1 + 0.02 * math.log2(world_size))


def header(args: argparse.Namespace) -> None:
    """Everything that the benchmark says before its first iteration."""
    say("=> creating model '" + str((args.arch, args.model_config, args.num_classes)) + "'")
    for note in NOTES:
        say(note)
    say("Num classes: " + str(args.num_classes))
    if args.data_backend.startswith("dali"):
        for part in ("train", "val"):
            say(count(os.path.join(args.data, part)))
    if args.rank == 0:
        shown = {key: value for key, value in vars(args).items() if key != "rank"}
        dll(
            "PARAMETER " + "  ".join(key + " : " + str(value) for key, value in shown.items()) + " "
        )
    say(" ! Weight decay NOT applied to BN parameters ")
    say("98")
    say("63")
    say("RUNNING EPOCHS FROM 0 TO " + str(args.epochs))


def train(args: argparse.Namespace) -> None:
    """The iterations 1 to ``--prof`` - 1: rank 0 sets the pace, everyone waits for everyone."""
    wanted = json.loads(os.environ.get("STANDIN_SWITCH", "{}"))
    pace_s = iteration_s(args.world_size)
    begin = last = due = time.time()
    loss, images = 0.0, args.batch_size * args.world_size
    for iteration in range(1, args.prof):
        act(wanted, args.rank, iteration)
        if args.rank == 0:
            due = max(due + pace_s, time.time())
            time.sleep(max(0.0, due - time.time()))
        if args.distributed:
            dist.barrier()
        now = time.time()
        loss = 6.6 + 0.5 / iteration
        rate, last = images / (now - last), now
        if args.rank == 0:
            words = f"train.loss : {loss:.5f}  train.total_ips : {rate:.2f} img/s"
            dll(f"Epoch: 0 Iteration: {iteration}  {words}")
    if args.rank == 0:
        mean = images * (args.prof - 1) / (last - begin)
        words = f"train.loss : {loss:.5f}  train.total_ips : {mean:.2f} img/s"
        more = (
            f"lr : {args.lr}  train.compute_ips : {mean:.2f} img/s train.data_time : 0.00100 s"
            f" train.compute_time : {images / mean:.5f} s"
        )
        for step in ("Epoch: 0  ", "Summary: "):
            dll(step + words)
            dll(step + more)


def main() -> None:
    """Join the gang, log, and leave together."""
    args = parse()
    args.rank = int(os.environ.get("RANK", "0"))
    args.distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    args.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    args.gpu = 0
    args.world_size = 1

    if args.distributed:
        args.gpu = args.local_rank % torch.cuda.device_count()
        torch.cuda.set_device(args.gpu)
        dist.init_process_group(backend="nccl", init_method="env://")
        args.world_size = dist.get_world_size()

    header(args)
    train(args)
    say("Experiment ended")


if __name__ == "__main__":
    main()
