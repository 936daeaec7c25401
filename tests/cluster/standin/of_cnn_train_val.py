"""Stand-in for OneFlow-Benchmark's ResNet-50: takes its command line, and logs in its format."""

import argparse
import math
import os
import pprint
import sys
import time
from datetime import datetime

import oneflow as flow  # type: ignore[import-not-found]  # the stub wheel, in the image alone
import options  # type: ignore[import-not-found]  # beside it, in the image alone

OLD_PORT = 12138  # written into the benchmark's code before it had an option


def say(line: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    """The benchmark's options, which differ between the releases of OneFlow."""
    folder = os.path.dirname(os.path.abspath(__file__))
    parser = options.parser(os.path.join(folder, f"options-{flow.__version__}.csv"))
    parser.set_defaults(model_save_dir="./output/snapshots/model_save-" + now("%Y%m%d%H%M%S"))
    parsed = parser.parse_args()
    assert isinstance(parsed, argparse.Namespace)
    return parsed


def now(form: str) -> str:
    """The local time."""
    return datetime.now().strftime(form)


def header(args: argparse.Namespace) -> None:
    """What every node says of its options."""
    gpus, nodes = args.gpu_num_per_node, args.num_nodes
    say("=" * 66)
    say(f"Running {args.model}: num_gpu_per_node = {gpus}, num_nodes = {nodes}.")
    say("=" * 66)
    for name, value in vars(args).items():
        say(f"{name} = {value}")
    say("-" * 66)
    say("Time stamp: " + now("%Y-%m-%d-%H:%M:%S"))
    if flow.__version__ == "0.1.9":
        say(pprint.pformat(updates(args)))


def updates(args: argparse.Namespace) -> "dict[str, dict[str, object]]":
    """How the model is updated, as the release of 0.1.9 shows it; for the options that are planned.

    The warm-up is longer than the whole run, so the decay has less than no steps: upstream's too.
    """
    epoch = math.ceil(args.num_examples / samples(args))
    warmup = epoch * args.warmup_epochs
    return {
        "momentum_conf": {"beta": args.mom},
        "warmup_conf": {"linear_conf": {"warmup_batches": warmup, "start_multiplier": 0}},
        "learning_rate_decay": {
            "cosine_conf": {"decay_batches": epoch * args.num_epochs - warmup},
        },
        "weight_decay_conf": {"weight_decay_rate": args.wd, "excludes": {"pattern": ["_bn-"]}},
    }


def samples(args: argparse.Namespace) -> int:
    """The global batch size."""
    return int(args.batch_size_per_device * args.gpu_num_per_node * args.num_nodes)


def save(args: argparse.Namespace, name: str) -> None:
    """An empty snapshot, and the line about it."""
    path = os.path.join(args.model_save_dir, "snapshot_" + name)
    os.makedirs(path, exist_ok=True)
    say(f"Saving model to {path}.")


def load(args: argparse.Namespace) -> None:
    """What is said of the data when the first step is compiled; refuses data that is not there."""
    if args.train_data_dir is None:
        say("Loading synthetic data.")
    else:
        say("Loading data from " + args.train_data_dir)
        parts = [f"part-{index:05d}" for index in range(args.train_data_part_num)]
        missing = [
            part for part in parts if not os.path.exists(os.path.join(args.train_data_dir, part))
        ]
        if missing:
            flow.gang.fail(f"{args.train_data_dir} has no {missing[0]}; needed {len(parts)} parts")
    if flow.__version__ != "0.1.9":
        say("Optimizer:  SGD")


def train(args: argparse.Namespace, gang: "flow.gang.Gang", begin: float) -> None:
    """All iterations of one epoch; the first printed rate has the start in it, as upstream's."""
    batch = samples(args)
    every, last = args.loss_print_every_n_iter, begin
    for iteration in range(1, args.num_examples // batch + 1):
        gang.step()
        if iteration % every == 0 and gang.is_leader:
            at = time.time()
            loss = 1.05 + 6.0 / (1 + iteration / 20)
            rate, last = batch * every / (at - last), at
            say(
                f"train: epoch 0, iter {iteration}, loss: {loss:.6f}, top_1: 0.000000,"
                f" top_k: 0.000000, samples/s: {rate:.3f} {at!r}"
            )


def main() -> None:
    """Join the gang, log, and leave together."""
    args, begin = parse(), time.time()
    header(args)
    known = flow.gang.addresses(",".join(args.node_ips), args.num_nodes)
    port = getattr(args, "ctrl_port", OLD_PORT)
    gang = flow.gang.Gang(flow.gang.Plan(known, args.gpu_num_per_node, port))
    if gang.is_leader:
        save(args, "initial_model")
        say("Init model on demand.")
        load(args)
    train(args, gang, begin)
    gang.leave()
    if gang.is_leader:
        save(args, "epoch_0")


if __name__ == "__main__":
    main()
