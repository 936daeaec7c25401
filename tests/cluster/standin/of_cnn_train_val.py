"""Stand-in for OneFlow-Benchmark's ResNet-50: takes its command line, and logs in its format."""

import argparse
import os
import sys
import time
from datetime import datetime

import oneflow as flow  # type: ignore[import-not-found]  # the stub wheel, in the image alone

OLD_PORT = 12138  # written into the benchmark's code before it had an option


def say(line: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    """The benchmark's options; a port to meet at came with OneFlow 0.2."""
    parser = argparse.ArgumentParser("flags for cnn benchmark")
    add = parser.add_argument
    add("--dtype", default="float32")
    add("--gpu_num_per_node", type=int, default=1)
    add("--num_nodes", type=int, default=1)
    add("--node_ips", default="192.168.1.13,192.168.1.14")
    if flow.__version__ >= "0.2":
        add("--ctrl_port", type=int, default=50051)
    add("--model", default="resnet50")
    for switch in ("use_fp16", "use_xla", "channel_last", "pad_output"):
        add("--" + switch, nargs="?", const=True, default=None)
    for switch in ("fuse_bn_relu", "fuse_bn_add_relu", "gpu_image_decoder"):
        add("--" + switch, default=False)
    add("--num_epochs", type=int, default=90)
    add("--model_load_dir", default=None)
    add("--batch_size_per_device", type=int, default=64)
    add("--val_batch_size_per_device", type=int, default=8)
    add("--nccl_fusion_threshold_mb", type=int, default=0)
    add("--nccl_fusion_max_ops", type=int, default=0)
    add("--num_examples", type=int, default=1281167)
    add("--num_val_examples", type=int, default=50000)
    add("--label_smoothing", type=float, default=0.1)
    add("--log_dir", default="./output")
    add("--loss_print_every_n_iter", type=int, default=1)
    add("--train_data_dir", default=None)
    add("--train_data_part_num", type=int, default=256)
    add("--val_data_dir", default=None)
    add("--val_data_part_num", type=int, default=256)
    add("--optimizer", "--model_update", default="sgd")
    add("--learning_rate", type=float, default=0.256)
    add("--momentum", type=float, default=0.875)
    return parser.parse_args()


def header(args: argparse.Namespace) -> None:
    """Everything that is said before the first iteration; data that is not there is refused."""
    say("=" * 66)
    gpus, nodes = args.gpu_num_per_node, args.num_nodes
    say(f"Running {args.model}: num_gpu_per_node = {gpus}, num_nodes = {nodes}.")
    for name, value in sorted(vars(args).items()):
        say(f"{name:>45} = {value}")
    say("-" * 66)
    say("Time stamp: " + datetime.now().strftime("%Y-%m-%d-%H:%M:%S"))
    if args.train_data_dir is None:
        say("Loading synthetic data.")
        return
    say("Loading data from " + args.train_data_dir)
    parts = [f"part-{index:05d}" for index in range(args.train_data_part_num)]
    missing = [
        part for part in parts if not os.path.exists(os.path.join(args.train_data_dir, part))
    ]
    if missing:
        flow.gang.fail(f"{args.train_data_dir} has no {missing[0]}; needed {len(parts)} parts")


def train(args: argparse.Namespace, gang: "flow.gang.Gang", begin: float) -> None:
    """All iterations of one epoch; the first printed rate has the start in it, as upstream's."""
    samples = args.batch_size_per_device * gang.world_size
    every, last = args.loss_print_every_n_iter, begin
    for iteration in range(1, args.num_examples // samples + 1):
        gang.step()
        if iteration % every == 0 and gang.is_leader:
            now = time.time()
            loss = 1.05 + 6.0 / (1 + iteration / 20)
            rate, last = samples * every / (now - last), now
            say(
                f"train: epoch 0, iter {iteration}, loss: {loss:.6f}, top_1: 0.000000,"
                f" top_k: 0.000000, samples/s: {rate:.3f} {now!r}"
            )


def main() -> None:
    """Join the gang, log, and leave together."""
    args, begin = parse(), time.time()
    known = flow.gang.addresses(args.node_ips, args.num_nodes)
    port = getattr(args, "ctrl_port", OLD_PORT)
    gang = flow.gang.Gang(flow.gang.Plan(known, args.gpu_num_per_node, port))
    if gang.is_leader:
        header(args)
        say("Init model on demand.")
    train(args, gang, begin)
    gang.leave()
    if gang.is_leader:
        say("Saving model to ./output/snapshots/model_save/snapshot_last.")


if __name__ == "__main__":
    main()
