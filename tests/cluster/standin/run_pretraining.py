"""Stand-in for OneFlow-Benchmark's BERT: takes its command line, and logs in its format."""

import argparse
import os
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
    parsed = options.parser(os.path.join(folder, f"options-{flow.__version__}.csv")).parse_args()
    assert isinstance(parsed, argparse.Namespace)
    return parsed


def header(args: argparse.Namespace) -> None:
    """What every node says of its options."""
    gpus, nodes = args.gpu_num_per_node, args.num_nodes
    say("=" * 66)
    say(f"Running {args.model}: num_gpu_per_node = {gpus}, num_nodes = {nodes}.")
    say("=" * 66)
    for name, value in vars(args).items():
        say(f"{name} = {value}")
    say("-" * 66)
    say("Time stamp: " + datetime.now().strftime("%Y-%m-%d-%H:%M:%S"))


def save(args: argparse.Namespace, name: str) -> None:
    """An empty snapshot, and the line about it."""
    path = os.path.join(args.model_save_dir, "snapshot_" + name)
    os.makedirs(path, exist_ok=True)
    say(f"Saving model to {path}.")


def check(args: argparse.Namespace) -> None:
    """Refuse data that is not there."""
    if args.data_dir is None or not os.path.isdir(args.data_dir):
        flow.gang.fail(f"there is no folder {args.data_dir}")
    parts = [name for name in os.listdir(args.data_dir) if name.startswith("part-")]
    if len(parts) < args.data_part_num:
        flow.gang.fail(f"{args.data_dir} has {len(parts)} parts; needed {args.data_part_num}")


def train(args: argparse.Namespace, gang: "flow.gang.Gang", begin: float) -> None:
    """All steps, counted from 0; the first printed rate has the start in it, as upstream's."""
    samples = args.batch_size_per_device * gang.world_size
    every, last = args.loss_print_every_n_iter, begin
    for step in range(args.iter_num):
        gang.step()
        if (step + 1) % every == 0 and gang.is_leader:
            now = time.time()
            mlm, nsp = 7.3 + 30.0 / (step + 1), 0.68 + 1.0 / (step + 1)
            rate, last = samples * every / (now - last), now
            say(
                f"step: {step}, total_loss: {mlm + nsp:.3f}, mlm_loss: {mlm:.3f},"
                f" nsp_loss: {nsp:.3f}, throughput: {rate:.3f} {now!r}"
            )


def main() -> None:
    """Join the gang, log, and leave together."""
    args, begin = parse(), time.time()
    header(args)
    known = flow.gang.addresses(",".join(args.node_ips), args.num_nodes)
    port = getattr(args, "ctrl_port", OLD_PORT)
    gang = flow.gang.Gang(flow.gang.Plan(known, args.gpu_num_per_node, port))
    if gang.is_leader:
        check(args)
        save(args, "initial_model")
        say("Init model on demand.")
    train(args, gang, begin)
    gang.leave()
    if gang.is_leader and args.save_last_snapshot:
        save(args, "last_snapshot")


if __name__ == "__main__":
    main()
