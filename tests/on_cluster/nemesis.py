"""Break a virtual cluster at random while sweeps run on it; count what is lost, doubled, wrong.

usage: python -m tests.on_cluster.nemesis RUNS [SEED]

Each run is a sweep of four trials on two nodes of Docker, with one to three faults at moments that
dice choose. Then the cluster is whole again and the same command is given until it succeeds. It
needs what `make gangs` needs, and takes about half a minute a run. It prints a line for each run,
and ends with 1 if any promise was broken.
"""

import collections
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import Node, cluster
from tests.people import QUICK, Desk, events, rule

PLAYBOOK = QUICK.replace("repeats: 1", "repeats: 2").replace("[2x1]", "[1x1, 2x1]")
TRIALS, MOST_TRIES, STEP_S = 4, 12, 0.03
ROOT = "/var/tmp/dlperf-root"
FREE = "flock -n /var/tmp/dlperf.lock true"
TASKS = "grep -lsz ^DLPERF_SUPERVISOR= /proc/[0-9]*/environ"
# What breaks on a node by one line of shell, while the node itself stays.
ON_NODE = {
    "sessions": "kill -KILL $(ps -o pid= --ppid $(cat /run/testbed/sshd.pid))",
    "container": "docker kill $(docker ps -q --filter label=dlperf.sweep)",
    "ranks": "kill -KILL $(grep -lsz ^RANK= /proc/[0-9]*/environ | cut -d/ -f3)",
    "disk": f"mount -o remount,size=4m {ROOT}; dd if=/dev/zero of={ROOT}/of-somebody-else bs=4k",
}
MEND_DISK = f"rm -f {ROOT}/of-somebody-else; mount -o remount,size=2g {ROOT}"
SIGNALS = {
    "kill": (signal.SIGKILL,),
    "interrupt": (signal.SIGINT,),
    "interrupt-twice": (signal.SIGINT, signal.SIGINT),
    "terminate": (signal.SIGTERM,),
}
FAULTS = (*ON_NODE, *SIGNALS, "cut", "reset", "docker", "reboot", "same-state", "rival")


@dataclass
class Run:
    """One sweep with its faults, and what came of it."""

    desk: Desk
    rival: Desk
    dice: random.Random
    faults: list[str]
    broken: list[str] = field(default_factory=list)
    process: "subprocess.Popen[str] | None" = None
    others: list["subprocess.Popen[str]"] = field(default_factory=list)

    def go(self) -> None:
        """Start the sweep, break things, mend them, and repeat the command until it succeeds."""
        self.desk.cluster.switch(iteration_s=STEP_S)
        with contextlib.ExitStack() as mounts, contextlib.ExitStack() as mends:
            if "disk" in self.faults:
                for node in self.desk.cluster.nodes[:2]:
                    node.must(f"mkdir -p {ROOT} && mount -t tmpfs -o size=2g,mode=1777 own {ROOT}")
                    mounts.callback(node.sh, f"umount -l {ROOT}")
            self._start()
            for fault in self.faults:
                time.sleep(self.dice.uniform(0.2, 5.0))
                self._inject(fault, self.dice.choice(self.desk.cluster.nodes[:2]), mends)
                if self.process is None or self.process.poll() is not None:
                    self._start()
            time.sleep(self.dice.uniform(0.5, 6.0))
            mends.close()
            for _ in range(MOST_TRIES):
                if (code := self._end()) == 0:
                    break
                self._start()
            else:
                self.broken.append(f"lost: exit {code} after {MOST_TRIES} tries")
            for other in self.others:
                other.communicate(timeout=300)
            self._check()

    def _start(self) -> None:
        if self.process is not None:
            self.process.communicate()
        self.process = self.desk.start("sweep", "quick", *self.desk.on())

    def _end(self) -> int:
        assert self.process is not None
        self.process.communicate(timeout=300)
        return self.process.returncode

    def _inject(self, fault: str, node: Node, mends: contextlib.ExitStack) -> None:
        process = self.process
        assert process is not None
        for number in SIGNALS.get(fault, ()):
            process.send_signal(number)
            time.sleep(0.05)
        node.sh(ON_NODE.get(fault, "true"))
        if fault == "disk":
            mends.callback(node.must, MEND_DISK)
        elif fault == "cut":
            node.cut()
            mends.callback(node.heal)
        elif fault == "reset":
            with rule(node, "OUTPUT -p tcp --sport 22 -j REJECT --reject-with tcp-reset"):
                time.sleep(self.dice.uniform(0.2, 2.0))
        elif fault == "docker":
            node.signal("dockerd", "KILL")
            node.revive("dockerd")
        elif fault == "reboot":
            node.power_off()
            node.power_on()
        elif fault in ("same-state", "rival"):
            desk = self.desk if fault == "same-state" else self.rival
            self.others.append(desk.start("sweep", "quick", *desk.on()))

    def _check(self) -> None:
        """Note each broken promise in a word and what shows it."""
        counted = collections.Counter(
            event["trial"]
            for sweep in self.desk.sweeps()
            for event in events(sweep, "outcome")
            if event["state"] == "valid"
        )
        if len(counted) < TRIALS:
            self.broken.append(f"lost: {TRIALS - len(counted)} trials")
        if doubled := [trial for trial, count in counted.items() if count > 1]:
            self.broken.append(f"doubled: {doubled}")
        if len(self.desk.sweeps()) != 1:
            self.broken.append(f"doubled: {len(self.desk.sweeps())} sweeps")
        verified = self.desk.run("verify")
        if verified.returncode:
            self.broken.append(f"wrong: {verified.stdout[-600:]}")
        for desk in (self.rival, self.desk):
            if desk.sweeps():
                desk.run("stop", desk.sweeps()[-1].name)
        if left := self.desk.left():
            self.broken.append(f"left: {left}")
        for node in self.desk.cluster.nodes:
            if node.sh(FREE).returncode or node.sh(TASKS).stdout:
                self.broken.append(f"left: lock or tasks on {node.name}")


def play(runs: int, seed: int) -> int:
    """Print a line for each run and the sums; return how many runs broke a promise."""
    broken = 0
    seen: collections.Counter[str] = collections.Counter()
    with cluster(4) as up, tempfile.TemporaryDirectory() as scratch:
        first = Desk.made(up, Path(scratch) / "first")
        first.must("provision", str(up.inventory), "--lock")
        for number in range(runs):
            desks = []
            for name in ("own", "rival"):
                folder = Path(scratch) / f"{name}{number}"
                folder.mkdir()
                desk = Desk.made(up, folder)
                desk.adopt(first)
                desk.playbook("quick", PLAYBOOK)
                desks.append(desk)
            dice = random.Random(f"{seed}.{number}")
            faults = dice.sample(FAULTS, dice.randint(1, 3))
            if "disk" in faults:  # a reboot would take the small disk away
                faults = [fault for fault in faults if fault != "reboot"]
            run = Run(desks[0], desks[1], dice, faults)
            began = time.monotonic()
            run.go()
            seen.update(run.faults)
            broken += bool(run.broken)
            took = f"{time.monotonic() - began:.0f} s"
            line = (str(number), took, " ".join(run.faults), *(run.broken or ["kept"]))
            sys.stdout.write("\t".join(line) + "\n")
            sys.stdout.flush()
            for desk in desks:
                desk.end()
    sums = f"seed {seed}: {runs} runs, {broken} broken; faults: {dict(sorted(seen.items()))}"
    sys.stdout.write(sums + "\n")
    return broken


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    raise SystemExit(1 if play(wanted, int((sys.argv[2:] or ["0"])[0])) else 0)
