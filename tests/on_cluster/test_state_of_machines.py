"""What the machines did while a gang trained on the virtual cluster is seen, told and judged."""

import re
from typing import Any

import pytest

from tests.commands import ended
from tests.people import Desk
from tests.reported import first_lines

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]

# The busy one takes half a CPU or more even where neighbours want them all: the kernel shares CPUs
# between sessions first, then by niceness within each.
LEFT = "</dev/null >/dev/null 2>&1; until [ -s {0} ]; do sleep 0.01; done; cat {0}"
FIRST = "echo -20 >/proc/self/autogroup; echo $$ >/run/testbed/busy"  # before other sessions
BUSY = f"nice -n -20 setsid -f sh -c '{FIRST}; while :; do :; done' "
HOLDER = "setsid -f sh -c 'echo $$ >/run/testbed/holder; exec sleep 600' "
OBSERVERS = "grep -lsz '^DLPERF_OBSERVER=' /proc/[0-9]*/environ | cut -d/ -f3"


def marks(case: Any) -> dict[str, list[str]]:
    """Messages of the marks of a case's one trial, by code."""
    found: dict[str, list[str]] = {}
    for mark in case["trials"][0]["marks"]:
        found.setdefault(mark["code"], []).append(mark["message"])
    return found


ALONE = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 4, iterations: 41, window: [5, 35], time_limit_s: 300, pack: one-node}
grid: {placement: [1x1], precision: [amp, fp32], micro_batch_size: [128]}
params: {loss_scale: dynamic}
"""


def test_a_slow_node_a_hot_gpu_and_a_damaged_log_are_seen_first(desk: Desk) -> None:
    """In the lines before any table of terminal, report.md and report.html, by name.

    Each case runs once on every node; the GPU is a stub, and the log is damaged afterwards.
    """
    hot = desk.cluster.node(1)
    hot.power_off()
    hot.power_on()  # from now on its containers see another boot id than it does itself
    hot.must("touch /run/testbed/hot")
    desk.cluster.switch(iteration_s=0.1, slow={"node": "vs003", "by": 1.5})
    try:
        done = desk.run("sweep", desk.playbook("alone", ALONE), *desk.on())
    finally:
        desk.cluster.switch()
        hot.must("rm -f /run/testbed/hot")
    assert done.returncode == 0, done.stderr[-4000:]
    sweep = desk.sweeps()[-1]
    damaged = sorted(sweep.glob("logs/1n1g/*.log"))[0]
    damaged.write_bytes(damaged.read_bytes() + b"one more line\n")
    shown = desk.must("collect", code=3)
    for first in first_lines(sweep, shown.stdout):
        assert "INCOMPLETE: 7 of 8 trials" in first
        assert re.search(rf"LOG-CHANGED[^:]*: 1n1g-{damaged.stem}", first)
        assert "SLOW-NODE" in first
        assert "vs003 is " in first
        assert "node vs002: the clocks of GPU 0 were held down by sw_thermal_slowdown" in first
    figure = (sweep / "figures" / "throttling.svg").read_text()
    assert "vs002, sw_thermal_slowdown" in figure


@pytest.mark.long
def test_heat_aliens_and_load_are_marked_by_the_name_of_their_node(desk: Desk) -> None:
    """A GPU that is held down, two processes of others, a loaded CPU: --strict counts none of it.

    The GPUs are stubs, all else is real. Nothing of the observers is left on any node.
    """
    first, second = desk.cluster.node(0), desk.cluster.node(1)
    busy = first.must(BUSY + LEFT.format("/run/testbed/busy")).strip()
    holder = second.must(HOLDER + LEFT.format("/run/testbed/holder")).strip()
    second.must("touch /run/testbed/hot")
    try:
        process = desk.begun(iteration_s=0.5)
        code, said = ended(process)
    finally:
        first.must(f"kill {busy}; rm -f /run/testbed/busy")
        second.must(f"kill {holder}; rm -f /run/testbed/hot /run/testbed/holder")
    assert code == 0, said
    (case,) = desk.json("collect")["cases"]
    found = marks(case)
    assert (
        "node vs002: the clocks of GPU 0 were held down by sw_thermal_slowdown"
        in found["THROTTLED"][0]
    )
    assert not any("vs001" in message for message in found["THROTTLED"])
    aliens = "; ".join(found["ALIEN-PROCESS"])
    assert f"node vs001: process {busy} (sh), which is not of the sweep, used" in aliens
    assert (
        f"node vs002: process {holder} (python), which is not of the sweep, used 512 MiB" in aliens
    )
    assert any(
        "node vs001: programs outside of the trial used" in message
        for message in found["CPU-LOADED"]
    )
    first_state, second_state = case["trials"][0]["machines"]
    assert (first_state["sm_mhz"], second_state["sm_mhz"]) == (1530, 1200)
    assert case["trials"][0]["energy_j"] == pytest.approx(2 * 287.4 * first_state["seconds"])
    strict = desk.json("collect", "--strict", code=3)
    assert strict["cases"][0]["trials"][0]["state"] == "invalid"
    assert strict["cases"][0]["median"] is None
    assert [node.sh(OBSERVERS).stdout for node in desk.cluster.nodes] == [""] * 4
