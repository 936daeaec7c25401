"""Stand-in for NVIDIA's ConvNets main.py in TensorFlow: a real MPI program that trains nothing."""

import argparse
import glob
import math
import os
import signal
import sys
import time
from datetime import datetime

import horovod.tensorflow as hvd  # type: ignore[import-not-found]  # the stub, in the image alone
import options  # type: ignore[import-not-found]  # beside it, in the image alone

ITERATION_S = 0.010
NOT_TIMED = 20  # steps before the first that training logs


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
    switches = ("static_loss_scaling", "xla", "dali", "tf_amp", "cosine_lr")
    parser = options.parser(table, {"--nouse_" + name: "use_" + name for name in switches})
    parser.set_defaults(name=False)  # the benchmark's own slip, which its log shows
    parsed = parser.parse_args()
    assert isinstance(parsed, argparse.Namespace)
    return parsed


def check(args: argparse.Namespace) -> None:
    """Nothing, if the data is there as the program wants it.

    Raises:
        ValueError: it is not.
    """
    if args.mode not in ("train", "training_benchmark") or args.iter_unit != "batch":
        raise ValueError(f"the stand-in knows no {args.mode} by {args.iter_unit}")
    if args.data_dir is None and args.mode == "training_benchmark" and not args.use_dali:
        return  # it makes its own data
    shards = glob.glob(os.path.join(args.data_dir or "", "train*"))
    if args.data_dir is None or not shards:
        raise ValueError(f"no training files in {args.data_dir}")
    if args.use_dali and args.data_idx_dir is None:
        raise ValueError("DALI needs --data_idx_dir")
    indices = glob.glob(os.path.join(args.data_idx_dir or "", "train*"))
    if args.use_dali and len(indices) != len(shards):
        raise ValueError(f"{len(indices)} indices in {args.data_idx_dir} of {len(shards)} shards")


def header(args: argparse.Namespace) -> None:
    """Everything that rank 0 says before the first step."""
    dll("PARAMETER " + "  ".join(f"{key} : {value}" for key, value in vars(args).items()) + " ")
    for line in (
        "Model HParams:",
        "Name " + args.arch,
        "Number of classes 1001",
        "Compute_format " + args.data_format,
        "Input_format NHWC",
        "dtype <dtype: 'float32'>",
        "Starting Model Training...",
        "Training Epochs 1",
        f"Total Steps {args.num_iter:.1f}",
        f"Steps per Epoch {args.num_iter:.1f}",
        f"Decay Steps {args.num_iter * 90:.1f}",
        f"Weight Decay Factor {args.weight_decay}",
        f"Init Learning Rate {args.lr_init}",
        f"Momentum {args.momentum}",
        f"Num GPUs {hvd.size()}",
        f"Per-GPU Batch Size {args.batch_size}",
    ):
        say(line)
    if args.use_dali:
        say("Using DALI input... ")
    elif args.data_dir is None:
        say("Using Synthetic Data ...")


def act(wanted: "dict[str, object]", step: int) -> None:
    """Die or hang where a test asks for it."""
    here = {"rank": hvd.rank(), "iteration": step}
    if wanted.get("die") == here:
        os.kill(os.getpid(), signal.SIGKILL)
    while wanted.get("hang") == here:
        time.sleep(3600)


def log(args: argparse.Namespace, step: int, rate: float) -> None:
    """A step's line in the words of the mode."""
    if args.mode == "training_benchmark":
        return dll(f"(0, {step}) total_ips : {rate!r} ")
    loss = 6.6 + 0.5 / step
    return dll(
        f"(0, {step}) imgs_per_sec : {rate!r}  cross_entropy : {loss!r}  l2_loss : 0.67"
        f"  total_loss : {loss + 0.67!r}  learning_rate : {args.lr_init!r} "
    )


def train(args: argparse.Namespace, wanted: "dict[str, object]") -> "list[float]":
    """All steps: each rank keeps the pace and waits for all; the rates that are logged."""
    benchmark = args.mode == "training_benchmark"
    steps = range(args.num_iter) if benchmark else range(1, args.num_iter + 1)
    before = args.warmup_steps - 1 if benchmark else NOT_TIMED
    base = float(str(wanted.get("iteration_s", ITERATION_S)))
    pace_s = base * (1 + 0.02 * math.log2(hvd.size()))
    rates, last = [], time.time()
    for step in steps:
        act(wanted, step)
        time.sleep(max(0.0, last + pace_s - time.time()))  # all of them: who polls keeps others up
        if hvd.allreduce(float(hvd.rank())) != hvd.size() * (hvd.size() - 1) / 2:
            raise RuntimeError("a rank is missing or there twice")
        now = time.time()
        rate, last = args.batch_size * hvd.size() / (now - last), now
        if step > before:
            rates.append(rate)
            if hvd.rank() == 0:
                log(args, step, rate)
    return rates


def main() -> None:
    """Join the gang, log, and leave together."""
    args, wanted = parse(), hvd.init()
    check(args)
    if hvd.rank() == 0:
        os.makedirs(args.results_dir, exist_ok=True)
        header(args)
    say(f"Using {'cosine' if args.use_cosine_lr else 'step'} learning rate schedule")
    rates = train(args, wanted)
    if hvd.rank() == 0:
        say("Ending Model Training ...")
        dll(f"() train_throughput : {sum(rates) / len(rates)!r} ")


if __name__ == "__main__":
    main()
