"""The virtual cluster by hand: python -m tests.cluster up|down|status."""

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from tests.cluster import life, slurm
from tests.cluster.place import Place, TestbedError, runs


def main() -> int:
    """Do what the command line asks for; 1 when it cannot be done."""
    signal.signal(signal.SIGTERM, _interrupt)
    args = _arguments()
    try:
        answer = {"up": _up, "down": _down, "status": _status}[args.command](args)
    except TestbedError as err:
        sys.stderr.write(f"ERROR VIRTUAL-CLUSTER: {err}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was begun is removed\n")
        return 130
    document, text = answer
    sys.stdout.write(json.dumps(document, indent=2) + "\n" if args.json else text)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("up", "bring a run up, and print what to do with it"),
        ("down", "end and remove a run, whatever is left of it"),
        ("status", "list runs and what lives of them"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--json", action="store_true", help="one JSON document")
        if name != "status":
            command.add_argument("--run", default="one", metavar="NAME", help="default: one")
        if name == "up":
            command.add_argument("--nodes", type=int, default=4, metavar="N", help="default: 4")
            command.add_argument("--slurm", action="store_true", help="with a Slurm over the nodes")
    return parser.parse_args()


def _up(args: argparse.Namespace) -> tuple[object, str]:
    begin = time.monotonic()
    place = Place(args.run)
    life.up(place, count=args.nodes, slurm=args.slurm)
    document = place.read()
    enter = " ".join(place.inside())
    program = Path(sys.executable).with_name("dlperf-orch")
    return document, (
        f"run {place.run}: {args.nodes} nodes are up after {time.monotonic() - begin:.1f} s\n"
        f"  cd {document['folder']}/work  # its images/ say where this cluster has code and OFED\n"
        f"  {enter} {program} init root@10.11.0.2 --identity {document['identity']}"
        f" --known-hosts {document['known_hosts']} -o inventory/mine.yaml  # or more of its nodes\n"
        f"  {enter} {program} provision {document['inventory']} --lock\n"
        f"  {enter} {program} sweep rn50-amp --repeats 1\n"
        f"  {enter} {program} provision {document['cpu_inventory']} --lock\n"
        f"  {enter} ssh -i {document['identity']} -o UserKnownHostsFile={document['known_hosts']}"
        " root@10.11.0.2\n"
        f"{_slurm(place, enter, program) if args.slurm else ''}"
        f"  python -m tests.cluster down --run {place.run}\n"
    )


def _slurm(place: Place, enter: str, program: Path) -> str:
    """How to be a user on the login node."""
    env = " ".join(f"{name}={value}" for name, value in slurm.environment(place).items())
    return (
        f"  cd {slurm.shared(place)}; export {env}  # for Slurm: the folder that all nodes see\n"
        f"  {enter} sinfo\n"
        f"  {enter} {program} init --slurm {slurm.PARTITION} -o inventory/queue.yaml\n"
    )


def _down(args: argparse.Namespace) -> tuple[object, str]:
    place = Place(args.run)
    was_there = place.run in runs()
    life.down(place)
    text = "is gone" if was_there else "was not there"
    return {"run": place.run, "was_there": was_there}, f"run {place.run} {text}\n"


def _status(_: argparse.Namespace) -> tuple[object, str]:
    found = [life.alive(Place(run)) for run in runs()]
    lines = [
        f"{up['run']}: {up['processes']} processes, nodes {up['nodes']}, {up['folder']}\n"
        for up in found
    ]
    return found, "".join(lines) or "no runs\n"


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
