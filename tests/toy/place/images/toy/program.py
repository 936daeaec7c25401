"""The toy's program: an agent per node, a rank per process, one step together at a time."""

import argparse
import os
import signal
import socket
import sys
import time
from datetime import datetime
from pathlib import Path

FATAL = {"killed": signal.SIGKILL, "crashes": signal.SIGSEGV}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("nnodes", "node_rank", "nproc_per_node", "master_port", "batch", "prof"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--master_addr", required=True)
    parser.add_argument("--behaviour", required=True)
    parser.add_argument("--step-s", type=float, required=True)
    parser.add_argument("--last-speaks", action="store_true")
    parser.add_argument("--plain", action="store_true")
    asked = parser.parse_args()
    if asked.behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of the ranks as well, from their start
    return asked


def meet(asked: argparse.Namespace, world: int) -> None:
    """Serve the ranks: wait for all of them, then let each step go when all have come to it."""
    with socket.create_server((asked.master_addr, asked.master_port)) as server:
        ranks = [server.accept()[0] for _ in range(world)]
        seen = sorted(rank.recv(1)[0] for rank in ranks)
        if seen != list(range(world)):
            sys.exit(f"ranks {seen}; needed 0 to {world - 1}, each once")
        while all(rank.recv(1) for rank in ranks):
            for rank in ranks:
                rank.sendall(b"g")


def join(asked: argparse.Namespace, rank: int) -> socket.socket:
    """The connection to the meeting, which may not have begun yet."""
    deadline = time.monotonic() + 20
    while True:
        try:
            link = socket.create_connection((asked.master_addr, asked.master_port), timeout=60)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        link.sendall(bytes([rank]))
        return link


def say(text: str, at_s: float) -> None:
    print(f"DLL {datetime.fromtimestamp(at_s):%Y-%m-%d %H:%M:%S.%f} - {text}", flush=True)


def talk(lines: int) -> None:
    for number in range(lines):
        print(f"line {number}: of a program that has much to say, and says it all at once")


def misbehave(asked: argparse.Namespace, rank: int, step: int) -> None:
    last = asked.nnodes * asked.nproc_per_node - 1
    if step != asked.prof // 2:
        return
    if asked.behaviour == "fails" and rank == last:
        sys.exit("this rank fails on purpose")
    if asked.behaviour == "detached" and "-a1-" in os.environ["DLPERF_TASK"]:
        # What nvidia-smi and PyTorch say in a container that lost its GPUs (nvidia-docker#1730).
        sys.exit("Failed to initialize NVML: Unknown Error")
    if asked.behaviour in FATAL and rank == last:
        os.kill(os.getppid(), FATAL[asked.behaviour])
    if asked.behaviour == "greedy" and rank == last:
        bytearray(600 << 20)
    if asked.behaviour in ("hangs", "deaf"):
        time.sleep(3600)
    if asked.behaviour == "short" and rank == 0:
        os._exit(0)


def is_of(name: bytes) -> bool:
    """Whether the attempt is one of a node of this name; its file is on local nodes alone."""
    return name in Path("attempt.json").read_bytes()


def train(asked: argparse.Namespace, rank: int, world: int) -> None:
    """One rank's steps; rank 0 prints them, or the last one."""
    speaks = rank == (world - 1 if asked.last_speaks else 0) and asked.behaviour != "mute"
    link = join(asked, rank)
    if speaks and not asked.plain:
        header = f"arch : toy  batch_size : {asked.batch}  prof : {asked.prof}"
        talk(400_000 if asked.behaviour == "wordy" else 0)
        say(f"PARAMETER {header}  amp : False  world_size : {world} ", time.time())
    before, slower = time.time(), 1
    if asked.behaviour == "slow-right" and is_of(b'"right"'):
        slower = 3
    if asked.behaviour == "slow-fabric" and asked.nnodes > 2 and is_of(b'"n8"'):
        slower = 30
    if speaks and asked.plain:
        settings = f"batch={asked.batch} gpus={world} precision=fp32 steps={asked.prof}"
        print(f"settings {settings}", flush=True)
    for step in range(1, asked.prof + asked.plain):
        misbehave(asked, rank, step)
        time.sleep(asked.step_s * slower)
        link.sendall(b"s")
        if not link.recv(1):
            sys.exit("the meeting is over")
        now = time.time()  # one reading for the clock and the rate: a busy processor parts no two
        rate, before = world * asked.batch / (now - before), now
        if speaks and asked.plain:
            print(f"step={step} time={now:.6f} loss=7.1 rate={rate:.2f} images/s", flush=True)
        elif speaks:
            say(
                f"Epoch: 0 Iteration: {step}  train.loss : 7.1  train.total_ips : {rate:.2f} img/s",
                now,
            )
        if asked.behaviour == "noisy":
            print(f"rank {rank} was here", file=sys.stderr)


def main() -> None:
    asked = options()
    world = asked.nnodes * asked.nproc_per_node
    if asked.node_rank == 0:
        server = os.fork()
        if server == 0:
            os.setsid()
            meet(asked, world)
            os._exit(0)
    children = []
    for local_rank in range(asked.nproc_per_node):
        child = os.fork()
        if child == 0:
            os.setsid()  # as torchrun does: no signal to the agent's group reaches a rank
            train(asked, asked.node_rank * asked.nproc_per_node + local_rank, world)
            os._exit(0)
        children.append(child)

    def ended(number: int, _: object) -> None:
        for child in children:
            os.kill(child, signal.SIGTERM)
        sys.exit(128 + number)

    if asked.behaviour != "deaf":
        signal.signal(signal.SIGTERM, ended)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    main()
