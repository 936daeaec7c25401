"""Trials side by side over SSH and Docker, with a controller that is killed among them."""

import signal
from collections.abc import Iterator

import pytest

from tests.on_cluster.spans import side_by_side, spans
from tests.virtual import Desk
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons, pytest.mark.long]

PACKED = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 2, iterations: 41, window: [5, 35], time_limit_s: 300, pack: disjoint}
grid: {placement: [1x1, 2x1, 4x1], precision: [amp], micro_batch_size: [128]}
params: {loss_scale: dynamic}
"""


@pytest.fixture
def unhurried(desk: Desk) -> Iterator[Desk]:
    """The desk; iterations take long enough for trials to meet."""
    desk.cluster.switch(iteration_s=0.1)
    yield desk
    desk.cluster.switch()


def under_way(desk: Desk) -> set[str]:
    """Trials of the newest sweep with an intent and no outcome."""
    if not desk.sweeps():
        return set()
    began = {event["trial"] for event in desk.said("intent")}
    return began - {event["trial"] for event in desk.said("outcome")}


def training(desk: Desk) -> set[str]:
    """Trials of which a container runs now, on any node."""
    asked = "docker ps --filter label=dlperf.sweep --format '{{.Names}}'"
    names = " ".join(node.must(asked) for node in desk.cluster.nodes).split()
    return {name.rpartition("-a1-r")[0] for name in names}


def test_trials_side_by_side_over_ssh_lose_nothing_to_a_killed_controller(unhurried: Desk) -> None:
    """Each trial once, on nodes of its own; what ran beside it is marked."""
    name = unhurried.playbook("packed", PACKED)
    process = unhurried.start("sweep", name, *unhurried.on())
    wait_for(lambda: len(training(unhurried)) > 1, "two trials train at once")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(under_way(unhurried)) > 1
    unhurried.must("sweep", name, *unhurried.on())

    valid = [event["trial"] for event in unhurried.said("outcome") if event["state"] == "valid"]
    assert len(valid) == len(set(valid)) == 6
    events = [*unhurried.said("intent"), *unhurried.said("outcome")]
    pairs = side_by_side(spans(events, unhurried.outcomes().values()))
    assert pairs
    assert not unhurried.left()

    cases = unhurried.json("collect")["cases"]
    beside = {trial["trial"]: trial["beside"] for case in cases for trial in case["trials"]}
    for one, other in pairs:
        assert one in beside[other]
        assert other in beside[one]
    for case in cases:
        codes = {mark["code"] for mark in case["marks"]}
        assert ("BESIDE" in codes) == any(trial["beside"] for trial in case["trials"])
