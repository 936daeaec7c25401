"""What the path over several machines wastes, beside peers that do the same on the same cluster.

    python -m tests.benchmarks.waste [NODES...]

NODES: of fleets that are given one command; 64 unless said. It needs root and what the virtual
cluster needs; Ansible where it is to be compared. Takes about nine minutes and prints a table.
Only the ratios mean something, and they are taken in one run: what else the machine does meets us
and our peers alike, in turns.
"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

from tests.benchmarks import peers, slow_origin, under_slurm
from tests.benchmarks.table import Row, between_trials_s, lasting_s, must, show, spread
from tests.cluster import Cluster, cluster
from tests.people import Desk, events

HERE = Path(__file__).parent
ROUNDS = 5
SWEEPS, TRIALS = 3, 11  # 30 times from the intent of one trial to that of the next
# What no sweep can do without: Python, and the libraries that it uses, one model made.
LIBRARIES = """
import pydantic, rich.console, rich.table, typer, yaml
class Model(pydantic.BaseModel):
    field: int
"""


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
        rows += slow_origin.rows(folder / "origin")
        rows += under_slurm.rows()
        for count in counts:
            rows += fan_out(folder / f"fanout{count}", count)
    show(rows)


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
        ours_s.append(lasting_s(lambda: must(desk.run, "provision", str(nodes.inventory))))
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
    ours_s, peer_s, skews_s, dates_s = [], [], [], []
    with plain.warm():
        for _ in range(SWEEPS):
            must(desk.run, *words, str(TRIALS), **env)
            ours_s += between_trials_s(desk.sweeps()[-1])
            skews_s += [outcome["start_skew_s"] for outcome in desk.outcomes().values()]
            argv = ("sh", "/workspace/instant/print.sh")
            peer_s += [plain.gang_s(image, argv) for _ in range(TRIALS - 1)]
            dates_s += [plain.skew_s() for _ in range(TRIALS)]
    spread("trial", ours_s, peer_s)
    yield Row("trial that exits at once", median(ours_s), "ssh, docker run", median(peer_s), 1.15)
    yield Row("start skew, p50", median(skews_s), "", None, 0)
    yield Row("start skew, p95", p95_s("start skews", skews_s), "", None, 0.020)
    yield Row("skew of ssh, date, p95", p95_s("skews of ssh, date", dates_s), "", None, 0)
    words = ("sweep", "instant", "--inventory", str(inventory), "--repeats", str(TRIALS))
    idle_s, least_s = [], []
    for _ in range(2 * ROUNDS):
        idle_s.append(lasting_s(lambda: must(desk.run, *words, **env)))
        least_s.append(lasting_s(libraries))
    spread("nothing left to do", idle_s, least_s)
    yield Row("sweep with nothing left to do", median(idle_s), "", None, 0.35)
    yield Row("its libraries alone", median(least_s), "", None, 0)
    must(desk.run, "sweep", "packed", "--inventory", str(inventory), "--new", **env)
    yield makespan(desk.sweeps()[-1])


def p95_s(what: str, skews_s: Sequence[float]) -> float:
    """Print every value; the 95th percentile."""
    said = " ".join(f"{skew_s * 1000:.0f}" for skew_s in sorted(skews_s))
    print(f"{len(skews_s)} {what}, ms: {said}", flush=True)
    return statistics.quantiles(skews_s, n=20, method="inclusive")[-1]


def libraries() -> None:
    """Load what no sweep can do without."""
    subprocess.run((sys.executable, "-c", LIBRARIES), check=True)


def makespan(sweep: Path) -> Row:
    """How long 28 trials of four placements took in all, beside what they need if no node waits."""
    at_s = {
        (event["event"], event["trial"]): datetime.fromisoformat(event["at"]).timestamp()
        for kind in ("intent", "outcome")
        for event in events(sweep, kind)
    }
    trials = {trial: int(trial.partition("n")[0]) for _, trial in at_s}  # how many nodes each has
    node_s = sum(
        nodes * (at_s["outcome", trial] - at_s["intent", trial]) for trial, nodes in trials.items()
    )
    lasted_s = max(at_s.values()) - min(at_s.values())
    what = f"makespan of {len(trials)} trials, disjoint"
    return Row(what, lasted_s, "no node ever waits", node_s / 4, 1.05)


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
    must(desk.run, "provision", str(inventory), "--lock", **env)
    (site,) = (desk.state / "sites").glob("*.json")
    record = json.loads(site.read_text())["images"][image]
    return peers.Image(record["tag"], record["id"])


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [64])
