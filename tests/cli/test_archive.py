"""archive: the command, of sweeps that ended, run, or were cut."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.state import contents
from orchestrator.state.store import Store
from tests import commands
from tests.collecting.pytorch_logs import PROGRAM
from tests.collecting.test_collect_logs import PLAIN_USER
from tests.conftest import Place
from tests.state.test_store import ATTEMPT, INTENT, RECORD


def test_archive_says_what_it_wrote_and_what_to_know(place: Place) -> None:
    """The file, its sha256, an attempt without an outcome, also after a crash cut events."""
    sweep = Store(place.state).new_sweep(replace(RECORD, experiment="cut"))
    sweep.append(INTENT)
    with open(sweep.folder / "events.jsonl", "ab") as file:
        file.write(b'{"at"')
    document = place.json("archive", "cut")
    path = place.folder / f"{sweep.id}.tar.zst"
    assert document["sha256"] == contents.sha256(path)
    assert (document["file"], document["bytes"]) == (path.name, path.stat().st_size)
    assert document["files"] == ["events.jsonl", "sweep.json"]
    sums, running = document["marks"]
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


def test_an_archive_is_not_archived_again(place: Place) -> None:
    """It is the file that one would get."""
    sweep = Store(place.state).new_sweep(RECORD)
    place.must("archive", sweep.id, "-o", "a.tar.zst")
    done = place.run("archive", "a.tar.zst")
    assert done.returncode == 2
    assert "ERROR NO-SWEEP: " in done.stderr


def test_a_sweep_whose_folder_is_a_link_is_archived_whole(place: Place) -> None:
    """Its owner moved all of it to another disk."""
    sweep = Store(place.state).new_sweep(RECORD)
    before = place.json("archive", sweep.id, "-o", "a.tar.zst")
    sweep.folder.rename(place.folder / "disk")
    sweep.folder.symlink_to(place.folder / "disk")
    after = place.json("archive", sweep.id, "-o", "b.tar.zst")
    assert (after["files"], after["sha256"]) == (before["files"], before["sha256"])


@pytest.mark.parametrize("name", ["attempts/t/a1/r0.log", "attempts/t", "attempts/t/a1"])
def test_what_cannot_be_read_is_named(place: Place, name: str) -> None:
    """A file or a folder of another user: exit 6, and no archive."""
    sweep = Store(place.state).new_sweep(RECORD)
    sweep.keep_attempt(replace(ATTEMPT, sweep=sweep.id), {})
    (sweep.folder / "attempts/t/a1/r0.log").write_text("steps\n")
    closed = sweep.folder / name
    closed.chmod(0o000)
    words = PLAIN_USER if os.geteuid() == 0 else ()
    try:
        done = commands.run(
            [*words, PROGRAM, "archive", sweep.id, "-o", "a.tar.zst"],
            cwd=place.folder,
            env=place.env(),
        )
    finally:
        closed.chmod(0o700)
    assert done.returncode == 6, done.stderr
    (seen,) = re.findall(r"ERROR STORE-RIGHTS: (\S+): Permission denied", done.stderr)
    assert (place.folder / seen).is_relative_to(closed)
    assert not (place.folder / "a.tar.zst").exists()
