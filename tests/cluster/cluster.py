"""A run of the virtual cluster, for tests and for people in a Python shell."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import commands
from tests.cluster import life, nodes, processes
from tests.cluster.place import STANDARD_PATH, STUBS, Place, TestbedError, address

Completed = subprocess.CompletedProcess[str]
_DARK = ("INPUT ! -i lo -j DROP", "OUTPUT ! -o lo -j DROP")


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a run."""

    place: Place
    name: str

    @property
    def address(self) -> str:
        """Its address."""
        return address(self.name)

    @property
    def folder(self) -> Path:
        """Its own files as this machine sees them: etc, var, data, root, home, tmp."""
        return self.place.own(self.name)

    @property
    def pid(self) -> int:
        """Its first process, by the pid that this machine knows it by.

        Raises:
            TestbedError: the node is down.
        """
        pid = processes.init(self.place, self.name)
        if pid is None:
            raise TestbedError(f"node {self.name} of run {self.place.run} is down")
        return pid

    def sh(self, script: str, *, timeout_s: float = 60.0) -> Completed:
        """What a shell script on the node says; a failure is an answer, look at returncode."""
        fresh = ("--mount", "--uts", "--ipc", "--net", "--pid")
        return commands.run(
            ["nsenter", "--target", str(self.pid), *fresh, "--", "sh", "-c", script],
            cwd="/",
            env={"PATH": f"{STUBS}:{STANDARD_PATH}", "HOME": "/root", **self.place.mark},
            timeout_s=timeout_s,
        )

    def must(self, script: str, *, timeout_s: float = 60.0) -> str:
        """What a shell script on the node prints.

        Raises:
            TestbedError: it failed.
        """
        done = self.sh(script, timeout_s=timeout_s)
        if done.returncode:
            raise TestbedError(f"{self.name}: {script}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def signal(self, daemon: str, word: str) -> None:
        """Send a signal such as KILL, STOP or CONT to sshd, containerd or dockerd."""
        self.must(f"kill -{word} $(cat /run/testbed/{daemon}.pid)")

    def revive(self, daemon: str) -> None:
        """Start a daemon that was killed, and wait until the node is ready again."""
        start = f"sh /etc/testbed/daemon.sh {daemon}"
        self.must(f"{start} </dev/null >>/var/log/{daemon}.log 2>&1 &")
        nodes.wait(self.place, self.name)

    def cut(self) -> None:
        """Let no packet through any more, either way, as when its cable breaks in the dark."""
        for rule in _DARK:
            self.must(f"iptables -w -I {rule}")

    def heal(self) -> None:
        """Take back ``cut``."""
        for rule in _DARK:
            self.must(f"iptables -w -D {rule}")

    def power_off(self) -> None:
        """End everything on the node at once; its disk and its network stay."""
        processes.end(self.place, VIRTUAL_NODE=self.name)

    def power_on(self) -> None:
        """Boot a node that is off: a new boot id, daemons started; waits until it is ready."""
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        nodes.start(self.place, self.name)
        nodes.wait(self.place, self.name)


@dataclass(frozen=True, slots=True)
class Cluster:
    """One run that is up."""

    place: Place

    @property
    def folder(self) -> Path:
        """Everything of the run."""
        return self.place.folder

    @property
    def inventory(self) -> Path:
        """The cluster of the seeds: 8 GPUs and one HCA a node, as far as anyone can tell."""
        return self.folder / "virtual.yaml"

    @property
    def cpu_inventory(self) -> Path:
        """The same nodes without GPUs and HCAs, for the reference program."""
        return self.folder / "cpu.yaml"

    @property
    def document(self) -> Mapping[str, object]:
        """Everything that the run says of itself, such as the addresses of downloads."""
        return self.place.read()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in rank order."""
        return tuple(
            Node(self.place, path.name) for path in sorted((self.folder / "nodes").iterdir())
        )

    def node(self, index: int) -> Node:
        """A node by its place in the inventory, from 0."""
        return self.nodes[index]

    def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 600.0,
    ) -> Completed:
        """Run a command where the nodes can be reached; whatever it leaves, ``down`` ends."""
        return commands.run(
            [*self.place.inside(), *argv],
            cwd=cwd,
            env={**(os.environ if env is None else env), **self.place.mark},
            timeout_s=timeout_s,
        )

    def start(self, *argv: str, cwd: Path, env: Mapping[str, str]) -> "subprocess.Popen[str]":
        """Start a command where the nodes can be reached, in a session of its own."""
        return subprocess.Popen(
            [*self.place.inside(), *argv],
            cwd=cwd,
            env={**env, **self.place.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def switch(self, **wanted: object) -> None:
        """Ask the stand-in benchmark for something else, from its next start on.

        Args:
            transport: ``"sockets"``: NCCL's lines show no InfiniBand; ``"silent"``: no lines.
            die: ``{"rank": 3, "iteration": 40}``: this rank kills itself there.
            hang: likewise: this rank stands still there.
            join_s: how long ranks wait for each other at the start; 120 unless said otherwise.
            iteration_s: the time of an iteration; 0.01 unless said otherwise.
            slow: ``{"node": "vs003", "by": 1.5}``: so many times longer where rank 0 is on it.
        """
        path = self.folder / "www" / "switch.json"
        aside = path.with_suffix(".new")
        aside.write_text(json.dumps(wanted))
        aside.rename(path)


@contextmanager
def cluster(count: int = 4, *, run: str = "", slurm: bool = False) -> Iterator[Cluster]:
    """A run of its own that is up within the block, and gone after it."""
    place = Place(run or f"t{uuid.uuid4().hex[:8]}")
    life.up(place, count=count, slurm=slurm)
    try:
        yield Cluster(place)
    finally:
        life.down(place)
