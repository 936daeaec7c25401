"""The options of GPT's stand-in, what follows from them, and how its log shows them."""

import argparse
import sys

_DEFAULTS = (
    *(("adam_beta1", 0.9), ("adam_beta2", 0.999), ("adam_eps", 1e-08)),
    *(("apply_query_key_layer_scaling", True), ("attention_dropout", 0.1)),
    *(("bias_dropout_fusion", True), ("bias_gelu_fusion", True)),
    *(("hidden_dropout", 0.1), ("init_method_std", 0.02), ("log", "./output")),
    *(("loss_scale", None), ("loss_scale_window", 1000), ("make_vocab_size_divisible_by", 128)),
    *(("profile_transformer_layer", False), ("scale_tril_softmax_dropout_fusion", True)),
    *(("seed", 12345), ("use_external_dataset", False)),
)


def say(line: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    """The options and what follows from them, shown as the program shows them.

    Raises:
        ValueError: they cannot hold together.
    """
    args = _parser().parse_args()
    for name, value in _DEFAULTS:
        setattr(args, name, value)
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


def _numbers(text: str) -> "list[int]":
    return [int(word) for word in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add = parser.add_argument
    for name in ("num-layers", "hidden-size", "num-attention-heads", "micro-batch-size"):
        add("--" + name, type=int, required=True)
    for name in ("global-batch-size", "train-iters", "lr-decay-iters", "vocab-size"):
        add("--" + name, type=int, required=True)
    for name in ("tensor-model-parallel-size", "pipeline-model-parallel-size", "num-nodes"):
        add("--" + name, type=int, default=1)
    add("--num-gpus-per-node", type=int, default=1)
    add("--node-ips", type=lambda text: text.split(","), default=["127.0.0.1"])
    add("--ctrl-port", type=int, default=50051)
    add("--dataset", required=True)
    add("--seq-length", type=int, default=1024)
    add("--split", type=_numbers, default=[949, 50, 1])
    add("--log-interval", type=int, default=100)
    add("--learning-rate", type=float, default=1e-3, dest="lr")
    for name, number in (("min-lr", 0.0), ("lr-warmup-fraction", 0.0), ("weight-decay", 0.01)):
        add("--" + name, type=float, default=number)
    add("--clip-grad", type=float, default=1.0)
    add("--initial-loss-scale", type=int, default=2**32)
    add("--lr-decay-style", default="linear")
    add("--optimizer", default="adamw")
    add("--load", default=None)
    add("--save", default=None)
    add("--save-interval", type=int, default=None)
    add("--metric-print-format", default="table", choices=["normal", "table"])
    for name in ("save-last", "checkpoint-activations", "multihead-attention-fusion"):
        add("--" + name, action="store_true")
    for name in ("fp16", "use-rdma"):
        add("--" + name, action="store_true")
    return parser
