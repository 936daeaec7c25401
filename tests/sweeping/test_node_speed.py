"""provision --measure: a short run on every node, and the slow one by its name."""

import json
import re

import pytest

from tests.conftest import Place
from tests.reported import first_lines

pytestmark = pytest.mark.cluster
PLAYBOOK = """\
workload: toy
image: toy
device: cpu
method: {repeats: 1, iterations: 11, window: [2, 10], pack: one-node}
grid: {placement: [1x1, 2x1], precision: [fp32], micro_batch_size: [4]}
params: {behaviour: slow-right, step_s: 0.05}
"""


def test_a_slow_node_is_named_and_is_not_fit(place: Place) -> None:
    """Each node has three trials of a sweep that is kept; JSON and table say which is slow."""
    (place.folder / "playbooks" / "speed.yaml").write_text(PLAYBOOK)
    done = place.must("provision", "two", "--measure", "--by", "speed", "--json", code=5)
    (alone,) = json.loads(done.stdout)["measured"]["speed"]["nodes"]
    speeds = alone["node_speeds"]
    assert {speed["node"]: speed["trials"] for speed in speeds} == {"left": 3, "right": 3}
    assert speeds[0]["speed"] == 1 > speeds[1]["speed"]  # of two nodes the faster is the measure
    assert "SLOW-NODE: right is" in done.stderr
    assert place.pids() == []
    damaged = sorted(place.sweep().glob("logs/1n1g/*.log"))[0]
    damaged.write_bytes(damaged.read_bytes() + b"one more line\n")
    shown = place.must("collect", code=3)
    for first in first_lines(place.sweep(), shown.stdout):
        assert "INCOMPLETE: " in first
        assert re.search(rf"LOG-CHANGED[^:]*: 1n1g-{damaged.stem}", first)
        assert "SLOW-NODE" in first


THREE = """\
name: three
defaults: {transport: local, runtime: process}
nodes:
  - {name: left, address: 127.0.0.1}
  - {name: right, address: 127.0.0.3}
  - {name: middle, address: 127.0.0.4}
"""


@pytest.mark.long
def test_a_node_that_holds_up_its_partners_is_named(place: Place) -> None:
    """Pairs in rounds, all of one sweep; the slow one is slow in each, the others in some."""
    (place.folder / "inventory" / "three.yaml").write_text(THREE)
    text = PLAYBOOK.replace("one-node", "disjoint").replace("[1x1, 2x1]", "[2x1]")
    (place.folder / "playbooks" / "pairs.yaml").write_text(text)
    done = place.must("provision", "three", "--measure", "--by", "pairs", "--json", code=5)
    found = json.loads(done.stdout)["measured"]["pairs"]
    (pairs,), groups = found["nodes"], found["groups"]
    assert {speed["node"]: speed["trials"] for speed in pairs["node_speeds"]} == {
        "left": 4,
        "middle": 4,
        "right": 4,
    }
    assert "SLOW-NODE: right is" in done.stderr
    assert groups == []  # more nodes do not train at the pace of a pair
    assert len(list(place.state.glob("sweeps/*"))) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "halves", "slow"),
    [(1, ([1, 2, 3, 4], [5, 6, 7, 8]), "n[5-8]"), (2, ([2, 3, 4, 5], [2, 6, 7, 8]), "n[2,6-8]")],
)
def test_groups_that_are_slow_are_halved(
    place: Place, first: int, halves: tuple[list[int], ...], slow: str
) -> None:
    """Eight or seven nodes are slow together though no pair is: of their halves that with n8.

    The playbook has a case of pairs; that of any other number of nodes is made of it.
    """
    numbers = range(first, 9)
    nodes = "".join(f"  - {{name: n{at}, address: 127.0.0.{at}}}\n" for at in numbers)
    text = f"name: many\ndefaults: {{transport: local, runtime: process}}\nnodes:\n{nodes}"
    (place.folder / "inventory" / "many.yaml").write_text(text)
    text = PLAYBOOK.replace("one-node", "disjoint").replace("[1x1, 2x1]", "[2x1]")
    text = text.replace("workload: toy", "workload: toy_fabric")
    text = text.replace("slow-right, step_s: 0.05", "slow-fabric, step_s: 0.01")
    (place.folder / "playbooks" / "fabric.yaml").write_text(text)
    done = place.must("provision", "many", "--measure", "--by", "fabric", "--json", code=5)
    groups = json.loads(done.stdout)["measured"]["fabric"]["groups"]
    expected = [[f"n{at}" for at in group] for group in (numbers, *halves)]
    assert [sorted(group["nodes"]) for group in groups] == expected
    assert [group["share"] < 2 / 3 for group in groups] == [True, False, True]
    (line,) = (line for line in done.stderr.splitlines() if "FABRIC-SLOW" in line)
    assert line.startswith(f"FABRIC-SLOW: {slow} together reach ")
    for words in ("collect", "verify"):
        place.must(words)


@pytest.mark.long
def test_nodes_that_are_alike_are_fit(place: Place) -> None:
    """A table of them, and the word."""
    text = PLAYBOOK.replace("behaviour: slow-right, ", "")
    (place.folder / "playbooks" / "speed.yaml").write_text(text)
    done = place.must("provision", "two", "--measure", "--by", "speed")
    assert "speed over the median node" in done.stdout
    assert "1x1, median" in done.stdout
    assert "Fit to measure: 2 nodes" in done.stdout


def test_a_playbook_that_cannot_tell_nodes_apart_is_refused(place: Place) -> None:
    """Before a gang starts: one trial at a time, or no case of one node that fits."""
    refused = place.must("provision", "two", "--measure", "--by", "toy", code=2)
    assert "NO-PACK" in refused.stderr
    wide = PLAYBOOK.replace("[1x1, 2x1]", "[2x1]")
    (place.folder / "playbooks" / "wide.yaml").write_text(wide)
    refused = place.must("provision", "two", "--measure", "--by", "wide", code=2)
    assert "NO-CASE: playbook wide has no case that measures 2 nodes" in refused.stderr
    refused = place.must("provision", "two", "--measure", code=2)
    assert "NO-CASE: playbooks node-speed and all-reduce have no case" in refused.stderr
