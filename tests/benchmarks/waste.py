"""What the path over several machines wastes, beside peers that do the same on the same cluster.

    python -m tests.benchmarks.waste [NODES...]

NODES: of fleets that are given one command; 64 unless said. It needs root and what the virtual
cluster needs; Ansible where it is to be compared. Takes about six minutes and prints a table. Only
the ratios mean something, and they are taken in one run: what else the machine does meets us and
our peers alike, in turns.
"""

import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from tests.benchmarks import peers
from tests.cluster import Cluster, cluster
from tests.planning import test_packing as packing
from tests.virtual import Desk

HERE = Path(__file__).parent
ROUNDS = 5
SWEEPS, TRIALS = 3, 11  # 30 times from the intent of one trial to that of the next


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Args:
        peer_s: None where there is no peer.
        aim: at most so much of the peer's time; without a peer so many seconds; 0 for none.
    """

    what: str
    ours_s: float
    peer: str
    peer_s: float | None
    aim: float

    @property
    def verdict(self) -> str:
        """Whether the aim is met."""
        if not self.aim:
            return ""
        return "met" if self.ours_s / (self.peer_s or 1) <= self.aim else "missed"


def main(counts: Sequence[int]) -> None:
    """Print the machine and the table."""
    # As after an installation, where modules are compiled once and not at every start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(
        f"{os.cpu_count()} cores, kernel {platform.release()}, Python {platform.python_version()}"
    )
    for words in (("dockerd", "--version"), ("ssh", "-V")):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        print((done.stdout + done.stderr).strip())
    print(peers.ansible_version() or peers.HOW_TO_GET)
    with tempfile.TemporaryDirectory(prefix="dlperf-benchmark-") as name:
        folder = Path(name)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{name}/compiled"
        with cluster(4, run=f"bm{os.getpid()}") as nodes:
            rows = [*provisioning(nodes, folder / "provision"), *gangs(nodes, folder / "gang")]
        for count in counts:
            rows += fan_out(folder / f"fanout{count}", count)
    show([*rows, makespan()])


def provisioning(nodes: Cluster, folder: Path) -> Iterator[Row]:
    """A provision of four nodes that were provisioned, beside the playbook."""
    folder.mkdir()
    desk = Desk.made(nodes, folder)
    image = provisioned(desk, nodes.inventory, "ngc-pytorch-20.03")
    ours_s, peer_s = [], []
    ansible = peers.Ansible(nodes, folder, image) if peers.ansible_version() else None
    if ansible:
        ansible.play_s()  # its connections and what it keeps of the data sets are warm from here
    for _ in range(ROUNDS):
        ours_s.append(lasting_s(lambda: must(desk, "provision", str(nodes.inventory))))
        if ansible:
            peer_s.append(ansible.play_s())
    spread("provision", ours_s, peer_s)
    yield Row(
        "provision, 4 nodes, again",
        median(ours_s),
        "Ansible",
        median(peer_s) if peer_s else None,
        0.20 if peer_s else 0,
    )


def gangs(nodes: Cluster, folder: Path) -> Iterator[Row]:
    """A trial whose program exits at once, beside plain ssh; and how far starts are apart."""
    shutil.copytree(HERE / "instant" / "place", folder)
    inventory = folder / "instant.yaml"
    text = nodes.cpu_inventory.read_text()
    inventory.write_text(text.replace("images: [reference-rn50]", "images: [instant]"))
    desk, env = Desk(nodes, folder), {"PYTHONPATH": f"{HERE.parents[1]}:{HERE / 'instant'}"}
    image = provisioned(desk, inventory, "instant", **env)
    words = ("sweep", "instant", "--inventory", str(inventory), "--new", "--repeats")
    plain = peers.PlainSsh(nodes, folder)
    ours_s, peer_s, skews_s = [], [], []
    with plain.warm():
        for _ in range(SWEEPS):
            must(desk, *words, str(TRIALS), **env)
            ours_s += between_trials_s(desk)
            skews_s += [each["start_skew_s"] for each in desk.outcomes().values()]
            argv = ("sh", "/workspace/instant/print.sh")
            peer_s += [plain.gang_s(image, argv) for _ in range(TRIALS - 1)]
    spread("trial", ours_s, peer_s)
    yield Row("trial that exits at once", median(ours_s), "ssh, docker run", median(peer_s), 1.15)
    said = " ".join(f"{each * 1000:.0f}" for each in sorted(skews_s))
    print(f"{len(skews_s)} start skews, ms: {said}")
    p95_s = statistics.quantiles(skews_s, n=20, method="inclusive")[-1]
    yield Row("start skew, p50", median(skews_s), "", None, 0)
    yield Row("start skew, p95", p95_s, "", None, 0.020)
    words = ("sweep", "instant", "--inventory", str(inventory), "--repeats", str(TRIALS))
    idle_s = [lasting_s(lambda: must(desk, *words, **env)) for _ in range(2 * ROUNDS)]
    spread("nothing left to do", idle_s, ())
    yield Row("sweep with nothing left to do", median(idle_s), "", None, 0.35)


def between_trials_s(desk: Desk) -> list[float]:
    """Seconds from each trial of the newest sweep to the next, all that a trial costs included."""
    lines = (desk.sweeps()[-1] / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    began = [datetime.fromisoformat(each["at"]) for each in events if each["event"] == "intent"]
    return [(later - sooner).total_seconds() for sooner, later in pairwise(began)]


def makespan() -> Row:
    """28 trials of seed 000's placements on four nodes, by the rule that sweeps go by; no clock."""
    dice = random.Random(0)
    whole = packing.trials((1, 1, 2, 4), 7)
    usual_s = {trial.case: dice.uniform(60, 120) for trial in whole[:4]}
    lasting = {trial: usual_s[trial.case] * dice.uniform(0.97, 1.03) for trial in whole}
    lasted_s, _ = packing.simulated("disjoint", 4, lasting)
    peer = "lower bound; simulated"
    return Row("makespan of 28 trials, disjoint", lasted_s, peer, packing.bound(4, lasting), 1.05)


def fan_out(folder: Path, count: int) -> Iterator[Row]:
    """One command on all nodes of a fleet, beside ssh through xargs."""
    folder.mkdir()
    words = ("unshare", "--net", sys.executable, str(HERE / "fanout.py"), str(folder), str(count))
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    seconds: Mapping[str, Sequence[float]] = json.loads(done.stdout)
    for kind, aim in (("cold", 0.7), ("warm", 0.4)):
        ours_s, peer_s = seconds[f"{kind} ours"], seconds[f"{kind} peer"]
        what = f"one command, {count} nodes, {kind}"
        spread(what, ours_s, peer_s)
        yield Row(what, median(ours_s), "xargs -P ssh", median(peer_s), aim)
    print(f"loading the program's own modules, in neither: {median(seconds['start-up']):.2f} s")


def provisioned(desk: Desk, inventory: Path, image: str, **env: str) -> peers.Image:
    """The image, once the first provisioning has built and carried it."""
    must(desk, "provision", str(inventory), "--lock", **env)
    (site,) = (desk.state / "sites").glob("*.json")
    record = json.loads(site.read_text())["images"][image]
    return peers.Image(record["tag"], record["id"])


def must(desk: Desk, *words: str, **env: str) -> None:
    """Run a command of ours, which must end well."""
    done = desk.run(*words, **env)
    if done.returncode:
        sys.exit(
            f"{' '.join(words)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
        )


def lasting_s(act: Callable[[], None]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def spread(what: str, ours_s: Sequence[float], peer_s: Sequence[float]) -> None:
    """Print every value, so that one can see what the medians are worth."""
    ours, theirs = (" ".join(f"{each:.2f}" for each in values) for values in (ours_s, peer_s))
    print(f"{what}, s: ours {ours}; peer {theirs or '-'}", flush=True)


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    head = f"{'ours':>8} {'peer':>8} {'ratio':>6} {'aim':>5}"
    print(f"\n{'median of seconds':32} {head}         peer")
    for row in rows:
        peer = f"{row.peer_s:8.3f}" if row.peer_s is not None else f"{'-':>8}"
        ratio = f"{row.ours_s / row.peer_s:6.2f}" if row.peer_s is not None else f"{'-':>6}"
        aim = f"{row.aim:5.2f}" if row.aim else f"{'-':>5}"
        print(f"{row.what:32} {row.ours_s:8.3f} {peer} {ratio} {aim} {row.verdict:6} {row.peer}")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [64])
