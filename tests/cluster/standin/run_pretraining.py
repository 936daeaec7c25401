"""Stand-in for OneFlow-Benchmark's BERT: takes its command line, and logs in its format."""

import argparse
import os
import sys
import time

import oneflow as flow  # type: ignore[import-not-found]  # the stub wheel, in the image alone

OLD_PORT = 12138  # written into the benchmark's code before it had an option


def say(line: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    """The benchmark's options; a port to meet at came with OneFlow 0.2."""
    parser = argparse.ArgumentParser("flags for bert")
    add = parser.add_argument
    add("--gpu_num_per_node", type=int, default=1)
    add("--num_nodes", type=int, default=1)
    add("--node_ips", default="192.168.1.13,192.168.1.14")
    if flow.__version__ >= "0.2":
        add("--ctrl_port", type=int, default=50051)
    add("--learning_rate", type=float, default=1e-4)
    add("--weight_decay_rate", type=float, default=0.01)
    add("--batch_size_per_device", type=int, default=64)
    add("--iter_num", type=int, default=1144000)
    add("--loss_print_every_n_iter", type=int, default=10)
    add("--data_dir", default=None)
    add("--data_part_num", type=int, default=32)
    add("--use_fp16", nargs="?", const=True, default=None)
    add("--use_xla", nargs="?", const=True, default=None)
    add("--log_dir", default="./output")
    add("--model_save_every_n_iter", type=int, default=10000)
    add("--model_save_dir", default="./snapshots")
    # As in the benchmark of 2020: any word is true, False too.
    add("--save_last_snapshot", type=bool, default=False)
    for name in ("seq_length", "max_predictions_per_seq", "num_hidden_layers"):
        add("--" + name, type=int, default=0)
    for name in ("num_attention_heads", "max_position_embeddings", "type_vocab_size"):
        add("--" + name, type=int, default=0)
    for name in ("vocab_size", "hidden_size_per_head"):
        add("--" + name, type=int, default=0)
    for name in ("attention_probs_dropout_prob", "hidden_dropout_prob"):
        add("--" + name, type=float, default=0.1)
    return parser.parse_args()


def header(args: argparse.Namespace) -> None:
    """Everything that is said before the first step; data that is not there is refused."""
    say("=" * 66)
    for name, value in sorted(vars(args).items()):
        say(f"{name:>45} = {value}")
    say("-" * 66)
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
    known = flow.gang.addresses(args.node_ips, args.num_nodes)
    port = getattr(args, "ctrl_port", OLD_PORT)
    gang = flow.gang.Gang(flow.gang.Plan(known, args.gpu_num_per_node, port))
    if gang.is_leader:
        header(args)
    train(args, gang, begin)
    gang.leave()
    if gang.is_leader and args.save_last_snapshot:
        folder = os.path.join(args.model_save_dir, "last_snapshot")
        say("Saving model to " + folder)
        os.makedirs(folder)


if __name__ == "__main__":
    main()
