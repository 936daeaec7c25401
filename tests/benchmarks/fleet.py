"""What hundreds of nodes cost the controller: seconds, memory and threads of each command.

    python -m tests.benchmarks.fleet [NODES...]

The fleet is one real sshd on as many loopback addresses, in a network namespace of its own; the
commands that it starts see the processes and the /var/tmp of their own node alone. Everything else
is this machine, whose processors the sshd needs too: times are an upper bound, and depend on them.
Nothing observes the state of these nodes.
Needs root.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.sshd import Sshd

HERE = Path(__file__).parent
DEFAULT = (64, 256, 1000)
MAIN = "from orchestrator.__main__ import main; main()"
# The address that was connected to is the node, which is the namespaces of a process that sleeps.
NODE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c")
BOUND = """mount --bind "$0" /var/tmp && mount --bind "$1" "$(readlink -f "$(command -v awk)")" &&
    exec sleep infinity
"""
# A second of an observer takes 3.5 ms of a processor where nothing else runs, and 14 beside much:
# a thousand would need 4 to 14 of their own, which real nodes have. This awk does everything else.
AWK = """#!/bin/sh
case $2 in pid=*) exit 1 ;; esac
exec {real} "$@"
"""
ENTER = """#!/bin/sh
set -- $SSH_CONNECTION
read -r pid <{root}/$3.pid
exec nsenter --target "$pid" --pid --mount sh -c "$SSH_ORIGINAL_COMMAND"
"""
INVENTORY = """name: fleet
defaults:
  runtime: process
  user: root
  identity: {identity}
  known_hosts: {known_hosts}
nodes:
{nodes}
"""
PLAYBOOK = """workload: instant
image: instant
device: cpu
method: {{repeats: 1, iterations: 11, window: [2, 8]}}
grid: {{placement: [{nodes}x1], precision: [fp32], micro_batch_size: [4]}}
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command took of the controller; ``processor_s`` is its own, without the sshd's."""

    seconds: float
    processor_s: float
    memory_mib: float
    threads: int
    exit_code: int
    lines: int


def main(counts: list[int]) -> None:
    """Each fleet in namespaces that are gone with it."""
    print(f"{os.cpu_count()} processors; one sshd on loopback addresses is all nodes")
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="dlperf-fleet-") as folder:
            words = ("unshare", "--net", sys.executable, "-m", "tests.benchmarks.fleet")
            subprocess.run((*words, "--inside", str(count), folder), check=True)


def inside(count: int, folder: Path) -> None:
    """Measure one fleet, in its own network."""
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    place = made(folder, count)
    heads = f"{'s':>7} {'own CPU s':>9} {'MiB':>6} {'threads':>7} {'exit':>4} {'lines':>5}"
    print(f"\n{count} nodes {'':22} {heads}")
    at = addresses(count)
    awk = without_observer(folder)
    machines = [machine(folder / "nodes" / address, awk) for address in at]
    sshd = begun(folder, at)
    try:
        (place / "inventory" / "fleet.yaml").write_text(
            INVENTORY.format(
                identity=sshd.identity, known_hosts=sshd.known_hosts, nodes=nodes(count)
            )
        )
        for words in (
            ("check", "inventory/fleet.yaml"),
            ("provision", "fleet", "--dry-run"),
            ("sweep", "noop", "--inventory", "fleet"),
            ("status",),
            ("sweep", "noop", "--inventory", "fleet"),
        ):
            cost = cost_of(place, words)
            print(
                f"{' '.join(words):33} {cost.seconds:7.2f} {cost.processor_s:9.2f}"
                f" {cost.memory_mib:6.0f} {cost.threads:7} {cost.exit_code:4} {cost.lines:5}",
                flush=True,
            )
    finally:
        sshd.stop()
        for process in machines:
            process.kill()  # its child, and with that all of the node, goes with it
        for process in machines:
            process.wait()


def without_observer(folder: Path) -> Path:
    """An awk that refuses the observer's program."""
    real = folder / "awk.real"
    shutil.copy(str(shutil.which("awk")), real)
    awk = folder / "awk"
    awk.write_text(AWK.format(real=real))
    awk.chmod(0o755)
    return awk


def machine(root: Path, awk: Path) -> "subprocess.Popen[bytes]":
    """A node: what holds its namespaces, whose pid lies beside its folder."""
    root.mkdir(parents=True)
    holder = subprocess.Popen((*NODE, BOUND, str(root), str(awk)))
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
    while not (inner := children.read_text().split()):
        time.sleep(0.001)
    root.with_name(f"{root.name}.pid").write_text(f"{inner[0]}\n")
    return holder


def addresses(count: int) -> list[str]:
    """One for each node: 250 in each of as many networks as are needed."""
    return [f"127.1.{at // 250}.{at % 250 + 1}" for at in range(count)]


def nodes(count: int) -> str:
    """The entries of the inventory, as ranges."""
    entries = []
    for network in range((count + 249) // 250):
        first, last = network * 250 + 1, min(count, network * 250 + 250)
        entries.append(f"  - name: n[{first:04}-{last:04}]")
        entries.append(f"    address: 127.1.{network}.[1-{last - first + 1}]")
    return "\n".join(entries)


def made(folder: Path, count: int) -> Path:
    """Where the user works: the program, an experiment over all nodes."""
    place = folder / "place"
    for name in ("inventory", "playbooks", "images/instant"):
        (place / name).mkdir(parents=True)
    for path in (HERE / "instant" / "place" / "images" / "instant").iterdir():
        (place / "images" / "instant" / path.name).write_bytes(path.read_bytes())
    (place / "playbooks" / "noop.yaml").write_text(PLAYBOOK.format(nodes=count))
    return place


def begun(folder: Path, at: list[str]) -> Sshd:
    """The sshd of all nodes."""
    enter = folder / "enter"
    enter.write_text(ENTER.format(root=folder / "nodes"))
    enter.chmod(0o755)
    options = {
        "ListenAddress": "0.0.0.0:22",
        "MaxStartups": "4096",
        "ForceCommand": str(enter),
    }
    sshd = Sshd(folder / "sshd", options, port=22).start()
    key = " ".join(Path(f"{sshd.host_key()}.pub").read_text().split()[:2])
    sshd.known_hosts.write_text("".join(f"{address} {key}\n" for address in at))
    return sshd


def cost_of(place: Path, words: tuple[str, ...]) -> Cost:
    """Run a command of ours and watch its process."""
    env = {**os.environ, "PYTHONPATH": f"{HERE.parents[1]}:{HERE / 'instant'}"}
    began, used_before_s = time.perf_counter(), children_s()
    process = subprocess.Popen(
        (sys.executable, "-c", MAIN, *words),
        cwd=place,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    most: dict[str, int] = {}
    watch = threading.Thread(target=watched, args=(process, most))
    watch.start()
    said, _ = process.communicate()
    lasted_s = time.perf_counter() - began
    watch.join()
    if process.returncode not in (0, 3):
        print(said[-4000:])
    memory_mib = most.get("VmHWM", 0) / 1024
    lines = len(said.splitlines())
    used_s = children_s() - used_before_s
    return Cost(lasted_s, used_s, memory_mib, most.get("Threads", 0), process.returncode, lines)


def children_s() -> float:
    """Processor seconds of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watched(process: "subprocess.Popen[str]", most: dict[str, int]) -> None:
    """Keep the largest memory, in KiB, and number of threads that are seen."""
    while process.poll() is None:
        try:
            text = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name in ("VmHWM", "Threads"):
                most[name] = max(most.get(name, 0), int(value.split()[0]))
        time.sleep(0.02)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main([int(word) for word in sys.argv[1:]] or [*DEFAULT])
