"""What people read: numbers agree with their nouns, nothing is said that is not so."""

import signal

import pytest

from tests.conftest import PROGRAM, Place
from tests.sshd import free_port, keygen
from tests.terminal import on_terminal
from tests.waiting import wait_for


def test_one_is_singular_and_methods_are_no_python(place: Place) -> None:
    """Of one node, one trial: no ``1 nodes``; a method is shown by the keys of a playbook."""
    provisioned = place.run("provision", "two", "--nodes", "left")
    assert "cluster two: 1 node, left" in provisioned.stderr
    assert "Fit to measure: 1 node." in provisioned.stdout
    words = ("sweep", "toy", "--nodes", "left", "--case", "1x1", "--repeats", "1")
    shown = place.run(*words, "--dry-run").stdout
    assert "1 trial; repeats: 1, iterations: 11, window: [2, 8], time_limit_s: 60.0" in shown
    assert "None" not in shown
    done = place.run(*words)
    assert "1 trial, 0 valid already, 1 to run on 1 node;" in done.stderr
    again = place.run(*words)
    left = "nothing left to run: a larger --repeats adds trials, --new starts a new sweep"
    assert f"1 trial, 1 valid already, {left}" in again.stderr
    assert "KiB" not in again.stderr


def test_nothing_to_show_is_no_empty_table(place: Place) -> None:
    """A line says it instead."""
    assert place.run("list", "sweeps").stdout == "no sweeps\n"
    cleaned = (place.run("clean", "--inventory", "two").stdout for _ in range(9))
    nothing = "nothing of the sweeps in .dlperf is left on 2 nodes"
    last = next(text for text in cleaned if nothing in text)  # of neighbours
    assert "kind" not in last


def test_a_node_that_was_not_asked_is_not_said_to_be_unfit(place: Place) -> None:
    """Nor to have no findings: nobody knows."""
    keygen(place.folder / "id")
    (place.folder / "away.yaml").write_text(
        f"name: away\ndefaults: {{port: {free_port()}, identity: {place.folder / 'id'}}}\n"
        "nodes: [{name: node1, address: 127.0.0.1}]\n"
    )
    done = place.must("provision", "away.yaml", code=4)
    assert "ERROR SSH-REFUSED node=node1 address=127.0.0.1: port " in done.stderr
    assert "No findings" not in done.stdout
    assert "Not fit to measure" not in done.stderr
    assert "Not known whether fit: not every node could be asked." in done.stderr


def test_warnings_that_were_there_before_are_one_line(place: Place) -> None:
    """The table is for what is new; at the tenth sweep nobody reads it."""
    data = place.folder / "imagenet"
    (data / "train/n01440764").mkdir(parents=True)
    (data / "train/n01440764/a.JPEG").write_bytes(b"x")
    inventory = place.folder / "inventory/two.yaml"
    given = f"runtime: process, data: {{imagenet: {data}}}"
    inventory.write_text(inventory.read_text().replace("runtime: process", given))
    first = place.run("provision", "two")
    assert "DATA-INCOMPLETE" in first.stdout
    second = place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    assert "warnings as before: " in second.stderr
    assert "DATA-INCOMPLETE left,right" in second.stderr
    assert "DATA-INCOMPLETE" not in second.stdout


def test_ctrl_c_leaves_no_progress_behind_and_says_how_to_resume(place: Place) -> None:
    """What was drawn of a trial is gone; the last words are what happened and what to do."""
    place.rewrite(params="params: {step_s: 0.5}")
    seen = on_terminal(
        (*PROGRAM, "sweep", "toy"),
        columns=100,
        cwd=place.folder,
        env=place.env(),
        ctrl_c_at=lambda text: "iteration 2 of" in text,
    )
    last = seen.rstrip().splitlines()[-1]
    assert last.endswith(
        "ERROR INTERRUPTED: stopped by Ctrl-C. Fix: run the same command to resume."
    )
    status = place.run("status").stdout
    assert "not running; continue with: dlperf-orch sweep toy" in status
    assert "starting, 0:0" in seen
    assert "iteration 0 of" not in seen


def test_what_resumes_a_sweep_that_was_begun_by_new_has_no_new(place: Place) -> None:
    """The same command would begin another sweep, and measure everything again."""
    place.rewrite(params="params: {step_s: 0.5}")
    sweep = place.start("sweep", "toy", "--new")
    wait_for(lambda: [*place.state.glob("sweeps/*/attempts/*/a1/r0.log")], "a gang runs")
    sweep.send_signal(signal.SIGINT)
    said = sweep.communicate()[1]
    assert "Fix: run the same command without --new to resume." in said


def test_what_clean_would_do_can_be_seen_while_a_sweep_runs(place: Place) -> None:
    """To look is in nobody's way, and what runs is not called a leftover."""
    place.rewrite(params="params: {step_s: 1}")
    sweep = place.start("sweep", "toy")
    wait_for(lambda: [*place.state.glob("sweeps/*/attempts/*/a1/r0.log")], "a gang runs")
    looked = place.must("clean", "--dry-run", "--inventory", "two")
    assert f"sweep {place.sweep().name} is running" in looked.stderr
    refused = place.run("clean", "--inventory", "two")
    assert (refused.returncode, "ERROR LOCKED" in refused.stderr) == (6, True)
    assert sweep.poll() is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bundle", "two", "out"), "prepared images: none; needed one at least"),
        (("data", "check", "gpt", "--inventory", "two"), "needed an absolute path"),
    ],
)
def test_what_is_missing_is_said_in_plain_words(
    place: Place, words: tuple[str, ...], said: str
) -> None:
    """What was seen and what was needed, once."""
    done = place.run(*words)
    assert done.returncode != 0
    assert said in done.stderr, done.stderr
