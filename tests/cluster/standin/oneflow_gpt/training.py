"""Stand-in for OneFlow-Benchmark's GPT: python3 -m oneflow_gpt.training."""

import argparse
import json
import os
import time

import oneflow as flow  # type: ignore[import-not-found]  # the stub wheel, in the image alone

from .config import parse, say, show

WIDTHS = (8, 15, 15, 10, 10, 10)
HEADS = ("step", "micro_batches", "samples", "throughput", "latency", "loss")
SHAPE = ("num_layers", "hidden_size", "num_attention_heads", "padded_vocab_size")
LOOKS_AT = 10
LOADS = "nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv"


def row(cells: "tuple[object, ...]") -> None:
    """One row of the table."""
    shown = (f"{cell:.5f}" if isinstance(cell, float) else str(cell) for cell in cells)
    say("| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(shown, WIDTHS)) + " |")  # noqa: B905 - Python 3.6 has no strict


def loaded(args: argparse.Namespace) -> int:
    """The iteration that a checkpoint was written at, 0 without one.

    Upstream goes on from whatever lies there; here another model's is refused, so that it shows.
    """
    path = os.path.join(args.load or "", "shape.json")
    if args.load is None or not os.path.exists(path):
        return 0
    with open(path) as file:
        held = json.load(file)
    for name in SHAPE:
        if held[name] != getattr(args, name):
            flow.gang.fail(f"{args.load} is of {name} {held[name]}, not {getattr(args, name)}")
    return int(held["iteration"])


def saved(args: argparse.Namespace) -> None:
    """Write a checkpoint at the end."""
    if args.save is None:
        return
    os.makedirs(args.save, exist_ok=True)
    held = {name: getattr(args, name) for name in SHAPE}
    with open(os.path.join(args.save, "shape.json"), "w") as file:
        json.dump({**held, "iteration": args.train_iters}, file)


def train(args: argparse.Namespace, gang: "flow.gang.Gang", first: int) -> None:
    """All steps that are left; a row a log interval, and once what nvidia-smi says of this node."""
    begin, every, titled = time.time(), args.log_interval, False
    for step in range(first + 1, args.train_iters + 1):
        gang.step()
        if gang.is_leader and step == LOOKS_AT:
            os.system(LOADS)
            titled = False
        if not gang.is_leader or (step % every and step != args.train_iters):
            continue
        latency = (time.time() - begin) / every
        if not titled:
            titled = True
            row(HEADS)
            row(tuple("-" * width for width in WIDTHS))
        samples = step * args.global_batch_size
        batches, loss = step * args.num_accumulation_steps, 6.8 + 44.0 / step
        row((step, batches, samples, args.global_batch_size / latency, latency, loss))
        begin = time.time()


def main() -> None:
    """Join the gang, log, and leave together."""
    args = parse()
    show(args)
    for end in (".bin", ".idx"):
        if not os.path.exists(args.dataset + end):
            flow.gang.fail(f"there is no {args.dataset}{end}")
    first = loaded(args)
    known = flow.gang.addresses(",".join(args.node_ips), args.num_nodes)
    gang = flow.gang.Gang(flow.gang.Plan(known, args.num_gpus_per_node, args.ctrl_port))
    if gang.is_leader:
        say("Training...")
    train(args, gang, first)
    gang.leave()
    saved(args)


if __name__ == "__main__":
    main()
