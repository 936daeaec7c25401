"""What the clock of every iteration costs the reference program, measured on the device at hand.

Takes the options of ``images/reference-rn50/train.py`` and is started like it, alone or by
torchrun. One process group, one model, one warm-up; then windows with a clock and a line at every
iteration alternate with windows that have them at both ends only.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from statistics import median
from types import ModuleType

PROGRAM = Path(__file__).parents[2] / "images" / "reference-rn50" / "train.py"
ROUNDS = 10


def load(path: Path) -> ModuleType:
    """The program as a module; its folder's name is no name of a package."""
    spec = importlib.util.spec_from_file_location("train", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(argv: list[str]) -> None:
    """Print the throughput of each pair of windows and the medians, on rank 0."""
    program = load(PROGRAM)
    options = program.parse(argv)
    seat = program.seat_here(os.environ)
    device = program.prepare(options, seat)
    program.join(options, device)
    iterate = program.Training(options, device).iterate
    ticks = program.gpu_ticks if device.type == "cuda" else program.cpu_ticks
    last = options.prof - 1
    batch = options.batch_size * options.accumulation_steps * program.distributed.get_world_size()

    with tempfile.TemporaryFile("w") as log:

        def throughput(clocked: Collection[int]) -> float:
            clock_s = {}
            for iteration, time_s, loss in ticks(iterate, last, clocked):
                clock_s[iteration] = time_s
                print(program.dll(f"{iteration} {loss:.5f}", time_s), file=log, flush=True)
            return float(batch * (last - 1) / (clock_s[last] - clock_s[1]))

        report(throughput, last, speaks=seat.rank == 0)
    program.distributed.destroy_process_group()


def report(throughput: Callable[[Collection[int]], float], last: int, *, speaks: bool) -> None:
    """Measure both kinds of windows in turn, each pair in the other order than the one before."""
    kinds: dict[str, Collection[int]] = {"every": range(1, last + 1), "ends": (1, last)}
    throughput(kinds["ends"])
    rounds: list[dict[str, float]] = []
    for number in range(ROUNDS):
        order = sorted(kinds, reverse=number % 2 == 1)
        rounds.append({kind: throughput(kinds[kind]) for kind in order})
    if not speaks:
        return
    ratios = [pair["every"] / pair["ends"] for pair in rounds]
    for pair, ratio in zip(rounds, ratios, strict=True):
        print(f"every {pair['every']:.2f}  ends {pair['ends']:.2f} img/s  ratio {ratio:.4f}")
    every, ends = (median(pair[kind] for pair in rounds) for kind in ("every", "ends"))
    spread = f"{min(ratios):.4f} to {max(ratios):.4f}"
    print(f"medians of {ROUNDS}: every {every:.2f}  ends {ends:.2f} img/s")
    print(f"ratio every/ends: median {median(ratios):.4f}, {spread}")


if __name__ == "__main__":
    measure(sys.argv[1:])
