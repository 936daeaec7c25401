"""Sweeps that really run: what is named, what is shown of them, and how they go on."""

import signal
from typing import Any

import pytest

from tests.commands import on_terminal
from tests.conftest import PROGRAM, Place
from tests.processes import wait_for

QUICK = ("sweep", "toy", "--case", "1x1", "--repeats", "1")


def wait_for_gang(place: Place) -> None:
    wait_for(lambda: [*place.state.glob("sweeps/*/attempts/*/a1/r0.log")], "a gang runs")


def test_numbers_agree_with_their_nouns(place: Place) -> None:
    """A method is shown by the keys of a playbook; a finished sweep says what adds trials."""
    shown = place.run(*QUICK, "--nodes", "left", "--dry-run").stdout
    assert "1 trial; repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 60.0" in shown
    assert "None" not in shown
    done = place.run(*QUICK, "--nodes", "left")
    assert "1 trial, 0 valid already, 1 to run on 1 node;" in done.stderr
    again = place.run(*QUICK, "--nodes", "left")
    left = "nothing left to run: a larger --repeats adds trials, --new starts a new sweep"
    assert f"1 trial, 1 valid already, {left}" in again.stderr
    assert "KiB" not in again.stderr


def test_ctrl_c_leaves_no_progress_behind_and_says_how_to_resume(place: Place) -> None:
    place.rewrite(params="params: {step_s: 0.5}")
    seen = on_terminal(
        (*PROGRAM, "sweep", "toy"),
        columns=100,
        cwd=place.folder,
        env=place.env(),
        ctrl_c_at=lambda text: "iteration 2 of" in text,
    )
    last = "ERROR INTERRUPTED: stopped by Ctrl-C. Fix: run the same command to resume."
    assert seen.rstrip().splitlines()[-1].endswith(last)
    assert "starting, 0:0" in seen
    assert "iteration 0 of" not in seen
    status = place.run("status").stdout
    assert "no controller runs; continue with: dlperf-orch sweep toy" in status


def test_clean_may_look_at_nodes_while_a_sweep_runs(place: Place) -> None:
    """Its tasks are no leftovers; the sweep, started by --new, is resumed without --new."""
    place.rewrite(params="params: {step_s: 1}")
    sweep = place.start("sweep", "toy", "--new")
    wait_for_gang(place)
    looked = place.must("clean", "--dry-run", "--inventory", "two")
    assert f"sweep {place.sweep().name} is running" in looked.stderr
    assert "ERROR LOCKED" in place.must("clean", "--inventory", "two", code=6).stderr
    assert sweep.poll() is None
    sweep.send_signal(signal.SIGINT)
    said = sweep.communicate()[1]
    assert "Fix: run the same command without --new to resume." in said


@pytest.mark.cluster
def test_ctrl_c_ends_a_look_and_no_sweep(place: Place) -> None:
    """A look that was left is no error; status has the cases and repeats that were typed last."""
    place.rewrite(params="params: {step_s: 3}")
    sweep = place.start(*QUICK, "--new")
    wait_for_gang(place)
    for look in (("status", "--watch", "--every", "1"), ("logs", "--follow")):
        seen = on_terminal(
            (*PROGRAM, *look),
            columns=100,
            cwd=place.folder,
            env=place.env(),
            ctrl_c_at=lambda text: bool(text.strip()),
        )
        assert seen.strip()
        assert "ERROR" not in seen
    assert sweep.poll() is None
    place.run("stop")
    status = place.run("status").stdout
    assert "continue with: dlperf-orch sweep toy --case 1x1 --repeats 1\n" in status


@pytest.mark.cluster
def test_a_sweep_is_found_by_each_of_its_names(place: Place) -> None:
    """Its playbook's name, a file or folder, an id or the beginning of an id, if it is unique."""
    place.must("sweep", "toy", "--repeats", "1")
    whole = place.must("logs", "2n2g").stdout
    assert whole
    assert whole != place.must("logs", "1n1g").stdout
    assert "ERROR NO-TRIAL" in place.run("logs", "9n").stderr
    (old,) = place.state.glob("sweeps/toy-*")
    place.must(*QUICK, "--new")
    (new,) = set(place.state.glob("sweeps/toy-*")) - {old}
    for name in ("toy", "playbooks/toy.yaml", new.name):
        assert place.json("status", name)["sweep"] == new.name
    for name in (old.name, old.name[:-1], str(old)):
        assert place.json("status", name)["sweep"] == old.name
    refused = place.must("stop", "toy-2", code=2).stderr
    assert "ERROR SWEEP-AMBIGUOUS" in refused
    assert old.name in refused
    assert new.name in refused
    assert "no sweep 'to-'" in place.run("logs", "--sweep", "to-").stderr
    assert place.json("collect", "toy")["sweep"] == place.json("stop", "toy")["sweep"] == new.name
    place.must("logs", "--sweep", f"{old}/")


@pytest.mark.cluster
def test_status_shows_how_far_a_trial_is_and_medians(place: Place) -> None:
    """Iteration, rate and time left of what runs; the median of every case that has one."""
    place.must(*QUICK)
    first = place.json("status")
    (median,) = first["medians"]
    (result,) = [case for case in place.json("collect")["cases"] if case["median"]]
    assert median["median"] == result["median"]
    assert (median["case"]["nodes"], median["trials_valid"], first["running"]) == (1, 1, [])
    table = place.run("status").stdout.partition("Medians so far")[2]
    assert table.startswith(" (FP32, batch size 4, ")  # of all its cases, and no column then
    assert "images/s" in table
    assert f"{median['median']:.2f}" in table
    place.rewrite(params="params: {step_s: 0.5}")
    place.start("sweep", "toy", "--case", "1x1")
    seen: list[Any] = []

    def look() -> list[Any]:
        seen[:] = place.json("status")["running"]
        return seen

    wait_for(look, "an iteration", 60)
    going = seen[0]
    assert going["trial"].startswith("1n1g-toy_b4_fp32_")
    iteration, rate = going["iteration"], going["rate"]
    assert (going["iterations"], rate > 0, 0 < iteration <= 10) == (10, True, True)
    assert going["left_s"] == pytest.approx((10 - iteration) * 4 / rate)
    place.must("stop")
