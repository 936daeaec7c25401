"""archive: the command, of sweeps that ended, run, or were cut."""

from dataclasses import replace
from pathlib import Path

from orchestrator.state import contents
from orchestrator.state.store import Store
from tests.conftest import Place
from tests.state.test_store import INTENT, RECORD


def test_archive_says_what_it_wrote_and_what_to_know(place: Place) -> None:
    """The file, its sha256, an attempt without an outcome, events that a crash cut."""
    sweep = Store(place.state).new_sweep(replace(RECORD, experiment="cut"))
    sweep.append(INTENT)
    with open(sweep.folder / "events.jsonl", "ab") as file:
        file.write(b'{"at"')
    document = place.json("archive", "cut")
    path = place.folder / f"{sweep.id}.tar.zst"
    assert document["sha256"] == contents.sha256(path)
    assert (document["file"], document["bytes"]) == (path.name, path.stat().st_size)
    assert document["files"] == ["events.jsonl", "sweep.json"]
    cut, sums, running = document["marks"]
    assert "its last line was cut" in cut
    assert "no SHA256SUMS" in sums
    assert running == "t a1 has no outcome: it may still run"
    again = place.run("archive", str(sweep.folder), "--output", "again.tar.zst")
    assert again.stdout.splitlines()[1] == f"sha256 {document['sha256']}"


def test_a_running_sweep_is_not_archived(place: Place, tmp_path: Path) -> None:
    """Its files still change."""
    sweep = Store(place.state).new_sweep(RECORD)
    with sweep.lock():
        done = place.run("archive", "--output", str(tmp_path / "a.tar.zst"))
    assert done.returncode == 6, done.stdout
    assert "ERROR LOCKED" in done.stderr
    assert not (tmp_path / "a.tar.zst").exists()
