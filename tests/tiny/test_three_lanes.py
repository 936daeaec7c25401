"""Three lanes on seven nodes: what becomes of one trial is no matter of the others beside it."""

import json
import random
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Place
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
NODES = 7
METHOD = (
    "method: {{repeats: {repeats}, iterations: 11, window: [2, 8], stall_limit_s: {stall_s},"
    " pack: disjoint}}"
)


@pytest.fixture
def lanes(place: Place) -> Place:
    """That place, with three lanes on seven nodes; trials of one node and of two."""
    nodes = "".join(f"  - {{name: n{at}, address: 127.0.0.{at}}}\n" for at in range(1, NODES + 1))
    head = "name: seven\ndefaults: {transport: local, runtime: process}\nnodes:\n"
    (place.folder / "inventory" / "seven.yaml").write_text(head + nodes)
    place.rewrite(inventory="inventory: seven", params="params: {step_s: 0.05}")
    place.more_env["TINY_LANES"] = "3"
    return place


def rewrite(place: Place, *, repeats: int, placements: str, stall_s: int = 60) -> None:
    """How many trials of which shapes there are."""
    method = METHOD.format(repeats=repeats, stall_s=stall_s)
    place.rewrite(method=method, placement=f"  placement: [{placements}]")


def misbehave(place: Place, condition: str, how: str) -> None:
    """Have the program do otherwise where a condition on ``task``, the name of its task, holds."""
    path = place.folder / "images" / "toy" / "program.py"
    text = path.read_text()
    call = "\nif __name__"
    words = f'\ntask = os.environ["DLPERF_TASK"]\nif {condition}:\n    {how}\n'
    path.write_text(text.replace(call, words + call))


def outcomes(place: Place) -> dict[str, dict[str, Any]]:
    """By trial, the outcome that is kept."""
    found = [json.loads(path.read_text()) for path in place.sweep().glob("logs/*/*.json")]
    return {outcome["trial"]: outcome for outcome in found}


def bound(place: Place, trial: str, number: int) -> dict[str, Any]:
    """What an attempt was bound to."""
    path = place.sweep() / "attempts" / trial / f"a{number}" / "attempt.json"
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


def ran(place: Place) -> dict[str, tuple[float, float, set[str]]]:
    """When each gang that is kept ran, by its gates and its last line, and on which nodes."""
    found = {}
    for trial, outcome in outcomes(place).items():
        if not outcome["tasks"]:
            continue
        began = min(task["went_at"] for task in outcome["tasks"])
        end = place.sweep() / "attempts" / trial / f"a{outcome['attempt']}"
        # The program's own clock in its last line: files here are copies of those on the nodes.
        lines = (end / "r0.log").read_text().splitlines()
        clock = lines[-1].removeprefix("DLL ")[:26]
        ended = time.mktime(time.strptime(clock[:19], "%Y-%m-%d %H:%M:%S")) + float(clock[19:])
        found[trial] = began, ended, {task["node"] for task in outcome["tasks"]}
    return found


def spans(place: Place) -> list[tuple[float, float, set[str]]]:
    """The same in the order in which gangs began."""
    return sorted(ran(place).values(), key=lambda span: span[0])


def most_at_once(found: list[tuple[float, float, set[str]]]) -> int:
    """How many gangs ran beside each other at most."""
    return max(sum(began <= at < ended for began, ended, _ in found) for at, _, _ in found)


def opened_trials(place: Place) -> set[str]:
    """Trials of which a task runs now."""
    gates = (path for path in place.opened() if not path.with_suffix(".end").exists())
    return {path.parent.parent.name for path in gates}


def no_node_is_taken(place: Place) -> bool:
    """Whether every job was given back."""
    return not list(Path(place.more_env["TINY_SHARED"]).glob("jobs/*"))


def is_sound(place: Place) -> None:
    """No number used twice, no trial valid twice, nothing left running, no node left taken."""
    intents = Counter((event["trial"], event["attempt"]) for event in place.events("intent"))
    assert max(intents.values()) == 1
    valid = Counter(e["trial"] for e in place.events("outcome") if e["state"] == "valid")
    assert not valid or max(valid.values()) == 1
    assert place.pids() == []
    assert no_node_is_taken(place)


def test_trials_run_side_by_side_each_once_on_nodes_of_its_own(lanes: Place) -> None:
    """Three at a time by their gates; none shares a node with another while it runs."""
    rewrite(lanes, repeats=5, placements="1x1, 2x2")
    done = lanes.must("sweep", "toy", "--json")
    assert len(outcomes(lanes)) == 10
    assert Counter(event["state"] for event in lanes.events("outcome")) == {"valid": 10}
    found = spans(lanes)
    assert most_at_once(found) == 3
    for began, ended, nodes in found:
        beside = [other for other in found if other[2] is not nodes]
        for began_too, ended_too, nodes_too in beside:
            apart = ended <= began_too or ended_too <= began
            assert apart or not nodes & nodes_too
    (one, two) = json.loads(done.stdout)["cases"]
    said = {trial["trial"]: {*trial["beside"]} for trial in (*one["trials"], *two["trials"])}
    for trial, (began, ended, _) in ran(lanes).items():
        meanwhile = {
            name
            for name, (sooner, later, _) in ran(lanes).items()
            if sooner < ended > began < later
        }
        assert meanwhile - {trial} <= said[trial] <= {*said} - {trial}
    assert "BESIDE" in {mark["code"] for mark in one["marks"]}
    is_sound(lanes)


def test_trials_on_other_nodes_share_a_median_that_says_so(lanes: Place) -> None:
    """Their provenance is the same; which nodes each ran on stands beside it, and NODE-SETS."""
    rewrite(lanes, repeats=6, placements="2x2")
    done = lanes.must("sweep", "toy", "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert case["trials_valid"] == 6
    assert len({json.dumps(outcome["provenance"]) for outcome in outcomes(lanes).values()}) == 1
    assert len({str(outcome["transport"]) for outcome in outcomes(lanes).values()}) == 1
    nodes_of = {trial["trial"]: trial["nodes"] for trial in case["trials"]}
    for trial, nodes in nodes_of.items():
        assert [seat["node"] for seat in bound(lanes, trial, 1)["seats"]] == nodes
    sets = {frozenset(nodes) for nodes in nodes_of.values()}
    assert ("NODE-SETS" in {mark["code"] for mark in case["marks"]}) == (len(sets) > 1)
    assert len(sets) > 1
    assert "NODE-SETS" in (lanes.sweep() / "report.md").read_text()
    assert lanes.run("collect", "--json").stdout == done.stdout


def test_a_wide_trial_among_narrow_ones_is_not_passed_by_for_ever(lanes: Place) -> None:
    """It needs every node, and is the first to run: the others wait for it."""
    rewrite(lanes, repeats=1, placements="1x1, 1x2, 7x1, 1x3, 1x4, 1x5")
    lanes.must("sweep", "toy", "--json")
    order = [event["trial"].split("-")[0] for event in lanes.events("intent")]
    assert len(order) == 6
    assert order[0] == "7n1g"
    wide = next(span for span in spans(lanes) if len(span[2]) == NODES)
    assert all(
        ended <= wide[0] or began >= wide[1]
        for began, ended, _ in spans(lanes)
        if (began, ended) != wide[:2]
    )
    is_sound(lanes)


def test_a_trial_that_fails_stops_no_other(lanes: Place) -> None:
    """Its port is taken at every try; the others are measured and kept."""
    rewrite(lanes, repeats=6, placements="1x1")
    misbehave(lanes, '"fp32_2-" in task', 'sys.exit("ERROR: EADDRINUSE")')
    lanes.must("sweep", "toy", "--json", code=3)
    states = {trial[-1]: outcome["state"] for trial, outcome in outcomes(lanes).items()}
    assert states == {**dict.fromkeys("13456", "valid"), "2": "infra-lost"}
    (said,) = (o["problems"] for trial, o in outcomes(lanes).items() if trial.endswith("_2"))
    assert said[0]["code"] == "PORT-BUSY"
    ports = [event["port"] for event in lanes.events("intent") if event["trial"].endswith("_2")]
    assert len(set(ports)) == len(ports) > 1
    is_sound(lanes)


def test_what_cannot_be_ended_keeps_its_nodes_and_the_others_their_results(lanes: Place) -> None:
    """Exit 7: what runs is finished, nothing begins, and whoever waits for those nodes gives up."""
    rewrite(lanes, repeats=1, placements="1x1, 1x2, 7x1")
    lanes.more_env["TINY_STUCK"] = "1n2g-toy_b4_fp32_1"
    done = lanes.must("sweep", "toy", code=7)
    assert "ERROR LEFTOVER" in done.stderr
    begun = {event["trial"] for event in lanes.events("intent")}
    assert begun - {*outcomes(lanes)} == {"1n2g-toy_b4_fp32_1"}
    assert {outcome["state"] for outcome in outcomes(lanes).values()} == {"valid"}
    (seat,) = bound(lanes, "1n2g-toy_b4_fp32_1", 1)["seats"]
    (job,) = Path(lanes.more_env["TINY_SHARED"]).glob("jobs/*")
    assert json.loads(job.read_text()) == [seat["node"]]
    del lanes.more_env["TINY_STUCK"]
    lanes.must("sweep", "toy")
    assert {outcome["state"] for outcome in outcomes(lanes).values()} == {"valid"}
    is_sound(lanes)


def test_stop_ends_what_three_lanes_of_a_killed_sweep_left(lanes: Place) -> None:
    """All three attempts, by their names; the nodes are free again."""
    rewrite(lanes, repeats=3, placements="2x1")
    lanes.rewrite(params="params: {step_s: 30}")
    process = lanes.start("sweep", "toy")
    wait_for(lambda: len(opened_trials(lanes)) == 3, "three trials run")
    process.kill()
    process.wait()
    said = json.loads(lanes.run("stop", "--json").stdout)["ended"]
    assert sorted(said) == [f"2n1g-toy_b4_fp32_{repeat} a1" for repeat in (1, 2, 3)]
    is_sound(lanes)


def test_one_ctrl_c_ends_all_lanes_in_good_order(lanes: Place) -> None:
    """What ran is interrupted and told, what had not begun does not; later all is measured."""
    rewrite(lanes, repeats=5, placements="1x1, 2x1")
    lanes.rewrite(params="params: {step_s: 0.3}")
    process = lanes.start("sweep", "toy")
    wait_for(lambda: len(opened_trials(lanes)) == 3, "three trials run")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    begun = {(event["trial"], event["attempt"]) for event in lanes.events("intent")}
    ended = {(event["trial"], event["attempt"]) for event in lanes.events("outcome")}
    assert begun == ended
    assert len(begun) <= 5
    assert "interrupted" in {event["state"] for event in lanes.events("outcome")}
    is_sound(lanes)
    lanes.more_env["TINY_LANES"] = "2"
    lanes.must("sweep", "toy", "--json")
    assert {outcome["state"] for outcome in outcomes(lanes).values()} == {"valid"}
    assert len(outcomes(lanes)) == 10
    is_sound(lanes)


def bound_so_far(place: Place) -> int:
    """How many attempts were bound."""
    return len(list(place.state.glob("sweeps/*/attempts/*/*/attempt.json")))


def has_bound_more(place: Place, before: int) -> bool:
    """Whether the command that was started last has bound one, or has ended."""
    return bound_so_far(place) > before or place.started[-1].poll() is not None


@pytest.mark.long
def test_kills_at_random_moments_lose_and_double_nothing(lanes: Place) -> None:
    """SIGKILL of the sweep, some rounds: each trial valid once, no number twice, nothing left."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown by pytest when the test fails
    dice = random.Random(seed)
    rewrite(lanes, repeats=8, placements="1x1, 2x1, 3x1")
    for _ in range(6):
        process = lanes.start("sweep", "toy")
        wait_for(partial(has_bound_more, lanes, bound_so_far(lanes)), "it binds a trial")
        time.sleep(dice.uniform(0, 1.5))
        process.kill()
        process.wait()
    assert [case["trials_valid"] for case in lanes.json("sweep", "toy")["cases"]] == [8] * 3
    valid = [event for event in lanes.events("outcome") if event["state"] == "valid"]
    assert len(valid) == 24
    intents = [(event["trial"], event["attempt"]) for event in lanes.events("intent")]
    folders = {
        (path.parent.name, int(path.name[1:])) for path in lanes.sweep().glob("attempts/*/a*")
    }
    assert {*intents} <= folders
    is_sound(lanes)
