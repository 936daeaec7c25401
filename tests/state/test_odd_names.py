"""Names of sweeps and folders that a file system or a file of ours cannot hold: never a bug."""

from pathlib import Path

import pytest

from orchestrator import disk
from tests import warm
from tests.conftest import Place

LONG = "a" * 5000


def test_a_name_that_is_too_long_for_a_file_is_no_sweep(place: Place) -> None:
    """Exit 2 as for any name that no sweep has, and the message stays short."""
    lines = [(*verb, LONG) for verb in (("status",), ("stop",), ("collect",), ("logs", "--sweep"))]
    for words, (code, _, err) in zip(lines, warm.run(place, lines), strict=True):
        assert code == 2, (words[0], err[:300])
        assert "ERROR NO-SWEEP: no sweep 'aaaa" in err
        assert len(err) < 300


def test_a_state_folder_whose_name_is_too_long_is_told(place: Place) -> None:
    """Exit 6 and what to do, from every command that looks into it."""
    state = ("--state", "b" * 300)
    lines = [("clean", *state), ("clean", "--images", "--inventory", "two", *state)]
    lines += [("status", *state), ("sweep", "toy", *state)]
    for words, (code, _, err) in zip(lines, warm.run(place, lines), strict=True):
        assert code == 6, (words[0], err[:300])
        assert "File name too long. Fix: choose another folder with --state" in err


def test_what_cannot_be_asked_is_not_taken_for_absent(tmp_path: Path) -> None:
    """As pathlib takes it since 3.13; below no folder, or below a file, there is nothing."""
    (tmp_path / "file").touch()
    for absent in (tmp_path / "x", tmp_path / "x/y", tmp_path / "file/y"):
        assert not disk.is_there(absent)
        assert disk.listed(absent) == []
    assert disk.is_there(tmp_path / "file")
    assert disk.listed(tmp_path) == [tmp_path / "file"]
    with pytest.raises(OSError, match="too long"):
        disk.is_there(tmp_path / ("b" * 300))
    with pytest.raises(OSError, match="too long"):
        disk.listed(tmp_path / ("b" * 300))


def test_a_folder_in_the_place_of_a_site_file_is_told(place: Place) -> None:
    """`clean`, which looks for the last cluster found fit: exit 6 with the path."""
    (place.state / "sites" / "two.json").mkdir(parents=True)
    done = place.must("clean", code=6)
    assert "ERROR STORE-RIGHTS: .dlperf/sites/two.json: Is a directory" in done.stderr


@pytest.mark.parametrize("verb", [("sweep", "toy"), ("provision", "two"), ("status",)])
def test_an_empty_state_folder_is_refused(place: Place, verb: tuple[str, ...]) -> None:
    """As from `--state "$UNSET"`: nothing of ours is strewn into the working folder."""
    before = sorted(place.folder.iterdir())
    assert "--state" in place.json(*verb, "--state", "", code=2)["errors"][0]["message"]
    assert sorted(place.folder.iterdir()) == before
