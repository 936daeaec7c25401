"""Stand-in for NVIDIA's ConvNets multiproc.py: one process for each GPU of this node.

Like the original it gives every process its rank, keeps only local rank 0's standard output, and
ends the others when one of them fails.
"""

import argparse
import os
import subprocess
import sys
import time
import urllib.request

SWITCH = "http://10.11.0.1:8000/switch.json"


def switch() -> str:
    """What a test asks of this run, as JSON; usually nothing."""
    try:
        with urllib.request.urlopen(SWITCH, timeout=1) as answer:
            return str(answer.read(), "utf-8")
    except OSError:
        return "{}"


def parse() -> argparse.Namespace:
    """The launcher's own options, then the program and everything that it is told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nnodes", type=int, default=1)
    parser.add_argument("--node_rank", type=int, default=0)
    parser.add_argument("--nproc_per_node", type=int, default=1)
    parser.add_argument("--master_addr", default="127.0.0.1")
    parser.add_argument("--master_port", type=int, default=29500)
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser.parse_args()


def start(args: argparse.Namespace, local_rank: int, wanted: str) -> "subprocess.Popen[bytes]":
    """One process of this node."""
    env = dict(
        os.environ,
        MASTER_ADDR=args.master_addr,
        MASTER_PORT=str(args.master_port),
        WORLD_SIZE=str(args.nproc_per_node * args.nnodes),
        RANK=str(args.nproc_per_node * args.node_rank + local_rank),
        LOCAL_RANK=str(local_rank),
        NODE_RANK=str(args.node_rank),
        NNODES=str(args.nnodes),
        STANDIN_SWITCH=wanted,
    )
    command = [sys.executable, "-u", args.training_script, *args.training_script_args]
    sys.stdout.write(str(command) + "\n")
    sys.stdout.flush()
    if local_rank == 0:
        return subprocess.Popen(command, env=env)
    with open("GPU_" + str(local_rank) + ".log", "wb") as log:
        return subprocess.Popen(command, env=env, stdout=log)


def main() -> None:
    """Start the processes of this node and wait until all are done or one has failed."""
    args, wanted = parse(), switch()
    processes = [start(args, local_rank, wanted) for local_rank in range(args.nproc_per_node)]
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            break
        time.sleep(0.05)
    failed = any(process.poll() for process in processes)
    for process in processes:
        if process.poll() is None:
            process.terminate()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
