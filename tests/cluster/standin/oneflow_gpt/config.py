"""The options of GPT's stand-in, what follows from them, and how its log shows them."""

import argparse
import os
import sys

from . import options  # type: ignore[attr-defined]  # beside it, in the image alone

_NAMES = {
    "--learning-rate": "lr",
    "--no-query-key-layer-scaling": "apply_query_key_layer_scaling",
    **{
        f"--no-{name}": name.replace("-", "_")
        for name in ("scale-tril-softmax-dropout-fusion", "bias-gelu-fusion", "bias-dropout-fusion")
    },
}


def say(line: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    """The options and what follows from them, shown as the program shows them.

    Raises:
        ValueError: they cannot hold together.
    """
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "options.csv")
    args = options.parser(table, _NAMES, abbreviated=False).parse_args()
    assert isinstance(args, argparse.Namespace)
    args.data_parallel_size = _divided(
        args.num_gpus_per_node * args.num_nodes,
        args.tensor_model_parallel_size * args.pipeline_model_parallel_size,
    )
    replicas = args.micro_batch_size * args.data_parallel_size
    args.num_accumulation_steps = _divided(args.global_batch_size, replicas)
    _divided(args.hidden_size, args.num_attention_heads)
    _divided(args.num_attention_heads, args.tensor_model_parallel_size)
    _divided(args.num_layers, args.pipeline_model_parallel_size)
    args.train_samples = args.train_iters * args.global_batch_size
    args.lr_warmup_iters = int(args.lr_warmup_fraction * args.lr_decay_iters)
    unit = args.make_vocab_size_divisible_by * args.tensor_model_parallel_size
    args.padded_vocab_size = -(-args.vocab_size // unit) * unit
    return args


def show(args: argparse.Namespace) -> None:
    """Print the block of arguments."""
    dummies = args.padded_vocab_size - args.vocab_size
    say(
        f" > padded vocab (size: {args.vocab_size}) with {dummies} dummy tokens"
        f" (new size: {args.padded_vocab_size})"
    )
    say("------------------------ arguments ------------------------")
    for name, value in sorted(vars(args).items()):
        say(f"  {name} {'.' * (48 - len(name))} {value}")
    say("-------------------- end of arguments ---------------------")


def _divided(whole: int, part: int) -> int:
    if whole % part:
        raise ValueError(f"{whole} must be divisible by {part}")
    return whole // part
