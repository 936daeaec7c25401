"""Attempts that were left open since a node of theirs was left out: closed later, and no more."""

import json

import pytest

from tests.conftest import Place
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster


def begun(place: Place) -> tuple[str, ...]:
    """The sweep of one trial was killed while its gang ran; the nodes that it ran on."""
    path = place.folder / "inventory" / "two.yaml"
    third = "  - {name: third, address: 127.0.0.7}\n"
    path.write_text(path.read_text() + third)
    place.rewrite(params="params: {step_s: 0.2}")
    process = place.start("sweep", "toy", "--case", "2x2", "--repeats", "1")
    wait_for(lambda: place.opened(1) and place.opened(0), "both tasks run")
    process.kill()
    process.wait()
    (bound,) = place.state.rglob("attempt.json")
    return tuple(seat["node"] for seat in json.loads(bound.read_text())["seats"])


def events(place: Place, kind: str) -> list[tuple[int, str]]:
    """Attempts and what they came to."""
    return [(event["attempt"], event.get("state", "")) for event in place.events(kind)]


def test_an_attempt_closed_late_takes_nothing_from_the_one_that_counts(place: Place) -> None:
    """Its gang is ended where it can be reached; a later attempt is valid, and stays so."""
    _, last = begun(place)
    words = ("sweep", "toy", "--case", "2x2", "--repeats", "1", "--json")
    without = place.must(*words, "--nodes", f"!{last}")
    assert f"2n2g-toy_b4_fp32_1 a1 was ended, except on {last}, left out" in without.stderr
    assert json.loads(place.run("status", "--json").stdout)["trials"] == {
        "2n2g-toy_b4_fp32_1": "open"
    }
    whole = place.must(*words)
    assert json.loads(whole.stdout)["cases"] == json.loads(without.stdout)["cases"]
    assert events(place, "intent") == [(1, ""), (2, "")]
    assert events(place, "outcome") == [(2, "valid"), (1, "infra-lost")]
    shown = json.loads(place.run("status", "--json").stdout)
    assert shown["trials"] == {"2n2g-toy_b4_fp32_1": "valid"}
    assert place.pids() == []


def test_stop_ends_what_runs_on_a_node_that_the_inventory_has_no_more(place: Place) -> None:
    """The sweep knows it as long as an attempt on it is open; what counts still does."""
    _, last = begun(place)
    path = place.folder / "inventory" / "two.yaml"
    lines = [line for line in path.read_text().splitlines() if f"name: {last}," not in line]
    path.write_text("\n".join(lines) + "\n")
    place.must("sweep", "toy", "--case", "2x2", "--repeats", "1")
    place.must("stop")
    assert events(place, "outcome") == [(2, "valid"), (1, "interrupted")]
    shown = json.loads(place.run("status", "--json").stdout)
    assert shown["trials"] == {"2n2g-toy_b4_fp32_1": "valid"}
    assert place.pids() == []
