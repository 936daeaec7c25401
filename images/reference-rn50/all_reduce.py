"""All-reduce of one buffer over all ranks, timed: bus bandwidth as NVIDIA's nccl-tests define it.

Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, "AllReduce": busbw = size / time * 2 (n - 1) / n.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter

with warnings.catch_warnings():  # torch looks for numpy as it is imported; nothing here needs it
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    import torch
from torch import distributed

WARM_UPS = 5  # the first calls of a size set up NCCL's channels
FLOAT_BYTES = 4


def options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--size-mib", type=int, default=1024, help="of the buffer, in float32")
    parser.add_argument("--iterations", type=int, default=25)
    return parser.parse_args(argv)


def version(backend: str) -> str:
    """Of the library that moves the bytes."""
    if backend == "nccl":
        return "nccl=" + ".".join(map(str, torch.cuda.nccl.version()))
    return f"torch={torch.__version__}"


def synchronized_s(device: torch.device) -> float:
    """perf_counter, once the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter()


def reduced(buffer: torch.Tensor, ranks: int) -> float:
    """Seconds of one all-reduce.

    Raises:
        SystemExit: a sum is wrong.
    """
    buffer.fill_(1.0)
    began = synchronized_s(buffer.device)
    distributed.all_reduce(buffer)
    lasted_s = synchronized_s(buffer.device) - began
    wrong = int((buffer != ranks).sum())
    if wrong:
        sys.exit(f"all_reduce.py: {wrong} sums are wrong; needed {ranks} everywhere")
    return lasted_s


def main() -> None:
    """Time them all; rank 0 prints."""
    asked = options()
    backend = "nccl" if asked.device == "cuda" else "gloo"
    distributed.init_process_group(backend)
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    device = torch.device(asked.device, int(os.environ["LOCAL_RANK"]))
    if asked.device == "cuda":
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    size = asked.size_mib << 20
    buffer = torch.empty(size // FLOAT_BYTES, device=device)
    for _ in range(WARM_UPS):
        reduced(buffer, ranks)
    if rank == 0:
        print(
            f"all-reduce ranks={ranks} size_mib={asked.size_mib} precision=fp32"
            f" iterations={asked.iterations} device={asked.device} {version(backend)}",
            flush=True,
        )
    for iteration in range(1, asked.iterations + 1):
        lasted_s = reduced(buffer, ranks)
        busbw = size / lasted_s * 2 * (ranks - 1) / ranks / 1e9
        if rank == 0:
            words = f"iteration={iteration} us={lasted_s * 1e6:.1f} busbw={busbw:.4f} GB/s"
            print(words, flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
