"""archive, verify and list, of sweeps that ended, run, were cut, or cannot be read."""

import hashlib
import os
import re
from dataclasses import replace

import pytest

from orchestrator.state import archives, contents
from orchestrator.state.store import Store
from orchestrator.verbs.list_ import build_cells
from tests import commands
from tests.cli.here import Here
from tests.conftest import PROGRAM, Place
from tests.state.test_store import ATTEMPT, INTENT, RECORD
from tests.verifying import sweeps

# Root reads everything; without these two capabilities the mode counts for it as for others.
PLAIN_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


def test_archive_names_the_file_and_what_to_know_of_it(here: Here) -> None:
    """Its sha256, and an attempt without an outcome, also after a crash cut events."""
    sweep = Store(here.state).new_sweep(replace(RECORD, experiment="cut"))
    sweep.append(INTENT)
    with open(sweep.folder / "events.jsonl", "ab") as file:
        file.write(b'{"at"')
    document = here("archive", "cut", "--json", code=0).document
    path = here.folder / f"{sweep.id}.tar.zst"
    assert document["sha256"] == contents.sha256(path)
    assert (document["file"], document["bytes"]) == (path.name, path.stat().st_size)
    assert document["files"] == ["events.jsonl", "sweep.json"]
    sums, running = document["marks"]
    assert "no SHA256SUMS" in sums
    assert running == "t a1 has no outcome: it may still run"
    sweep.folder.rename(here.folder / "disk")  # as its owner moves it to another disk
    sweep.folder.symlink_to(here.folder / "disk")
    again = here("archive", str(sweep.folder), "--output", "again.tar.zst", code=0)
    assert again.out.splitlines()[1] == f"sha256 {document['sha256']}"
    assert "ERROR NO-SWEEP: " in here("archive", "again.tar.zst", code=2).err


@pytest.mark.parametrize("command", ["archive", "verify"])
def test_a_running_sweep_is_refused(here: Here, command: str) -> None:
    """Its files still change."""
    sweep = Store(here.state).new_sweep(RECORD)
    with sweep.lock():
        assert here(command, "--json", code=6).codes == ["LOCKED"]
    assert not [*here.folder.glob("*.tar.zst")]


@pytest.mark.parametrize("name", ["attempts/t/a1/r0.log", "attempts/t", "attempts/t/a1"])
def test_what_cannot_be_read_is_named(place: Place, name: str) -> None:
    """A file or a folder of another user: exit 6, and no archive."""
    sweep = Store(place.state).new_sweep(RECORD)
    sweep.keep_attempt(replace(ATTEMPT, sweep=sweep.id), {})
    (sweep.folder / "attempts/t/a1/r0.log").write_text("steps\n")
    closed = sweep.folder / name
    closed.chmod(0o000)
    user = PLAIN_USER if os.geteuid() == 0 else ()
    words = [*user, *PROGRAM, "archive", sweep.id, "-o", "a.tar.zst"]
    try:
        done = commands.run(words, cwd=place.folder, env=place.env())
    finally:
        closed.chmod(0o700)
    commands.checked(done, 6)
    (seen,) = re.findall(r"ERROR STORE-RIGHTS: (\S+): Permission denied", done.stderr)
    assert (place.folder / seen).is_relative_to(closed)
    assert not (place.folder / "a.tar.zst").exists()


def test_verify_shows_what_differs_and_where(here: Here) -> None:
    """Nothing at first; then a changed outcome, on a line and as JSON, with exit 3."""
    sweep = sweeps.collected(Store(here.state), sweeps.bert())
    archives.pack(sweep, here.folder / "bert.tar.zst")
    assert "no difference" in here("verify", code=0).out
    name = "logs/1n1g/r50_b96_fp32_1.json"
    outcome = sweep.folder / name
    outcome.write_text(outcome.read_text().replace('"throughput": 150.5', '"throughput": 151.5'))
    digest = hashlib.sha256(outcome.read_bytes()).hexdigest()
    first = here("verify", "oneflow_bert", code=3).out
    assert first.startswith(f"DIFFERS {name}: sha256: written: {digest}; derived: ")
    page = sweep.folder / "report.md"
    lines = page.read_text().split("\n")
    page.write_text("\n".join([*lines[:2], "edited", *lines[3:]]))
    document = here("verify", str(sweep.folder), "--json", code=3).document
    assert (document["exit_code"], document["sweep"], document["not_derived"]) == (3, sweep.id, {})
    shown = {(it["file"], it["place"]): it for it in document["differences"]}
    assert shown[name, "sha256"]["written"] == digest
    assert shown["report.md", "line 3"]["written"] == "edited"
    left_out = shown["results.json", "cases[0].trials_valid"]
    assert (left_out["written"], left_out["derived"]) == ("3", "2")
    assert here("verify", "bert.tar.zst", "--json", code=0).document["differences"] == []


def test_list_shows_what_is_here_before_what_is_shipped(here: Here) -> None:
    rows = here("list", "playbooks", "--json", code=0).document
    assert {"toy", "smoke", "rn50-fp32"} <= {row["name"] for row in rows}
    assert all(row["description"] for row in rows if row["file"].startswith("/"))
    assert here("list", "sweeps", "--json", code=0).document == []
    assert {row["workload"] for row in here("list", "workloads", "--json").document} == {
        *("all_reduce", "ngc_pytorch_rn50", "ngc_tensorflow_rn50"),
        *("oneflow_rn50", "oneflow_bert", "oneflow_gpt"),
        *("reference_rn50", "toy", "toy_fabric", "toy_last", "toy_plain"),
    }


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("description: Mine\nworkload: 7\n", "Mine"),
        ("workload: toy\n", ""),
        ("description:\n", "?"),
        ("description: [a, b]\n", "?"),
        ("- a\n- list\n", "?"),
        ("description: 'torn\n", "?"),
    ],
)
def test_a_bad_playbook_takes_no_other_out_of_the_list(
    here: Here, text: str, description: str
) -> None:
    here.write("playbooks/mine.yaml", text)
    rows = {row["name"]: row for row in here("list", "playbooks", "--json").document}
    assert rows["mine"]["description"] == description
    assert rows["smoke"]["description"].startswith("Real distributed training")


def test_a_row_of_sweeps_shows_three_medians_with_their_unit() -> None:
    """Further medians are counted; the time is shown to the second."""
    medians = [
        {"case": {"placement": f"{nodes}x8", "precision": "amp"}, "median": 6000.0 * nodes}
        for nodes in (1, 2, 3, 4)
    ]
    row = {
        **{"sweep": "a", "cluster": "c", "created": "2026-11-24T10:24:13.756+00:00"},
        **{"trials": 4, "valid": 4, "state": "readable", "unit": "images/s", "medians": ()},
    }
    assert build_cells(row)[2:] == ("2026-11-24 10:24:13 UTC", "4", "4", "")
    assert build_cells({**row, "medians": medians[:1]})[-1] == "1x8 amp 6000.00 images/s"
    said = "1x8 amp 6000.00, 2x8 amp 12000.00, 3x8 amp 18000.00 images/s, and 1 more"
    assert build_cells({**row, "medians": medians})[-1] == said
