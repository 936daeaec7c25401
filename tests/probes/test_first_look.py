"""The first look at a data set: as root of a node, and as root of a container would read it."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.probes import data
from orchestrator.probes.sections import Output

OWNER = 1234


def look(path: Path, *, contained: bool) -> str:
    """Say what the real script finds."""
    asked = data.section("set", str(path), contained=contained)
    done = subprocess.run(asked.argv, capture_output=True, text=True, check=True)
    return data.state(Output(done.returncode, done.stdout, done.stderr))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A data set of another user, which everybody may read, below a folder of that user alone."""
    folder = tmp_path / "private" / "image"
    for name in ("train/n01440764", "train/n01440765", "val/n01440764"):
        (folder / name).mkdir(parents=True)
        (folder / name / "1.JPEG").write_text("picture")
    for path in (folder.parent, folder, *folder.rglob("*")):
        path.chmod(0o755)  # whatever the umask is
        if os.geteuid() == 0:
            os.chown(path, OWNER, OWNER)
    folder.parent.chmod(0o700)
    return folder


def test_what_everybody_may_read_is_present(images: Path) -> None:
    """A folder above it does not count: in a container the data set is mounted by itself."""
    assert look(images, contained=False) == "present"
    assert look(images, contained=True) == "present"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read what is somebody else's")
@pytest.mark.parametrize(
    ("private", "mode"),
    [
        (".", 0o700),
        (".", 0o711),
        (".", 0o744),
        ("train", 0o700),
        ("train/n01440764", 0o750),
        ("train/n01440765/1.JPEG", 0o600),
        ("val/n01440764/1.JPEG", 0o640),
    ],
)
def test_what_root_alone_may_read_is_not_readable_in_a_container(
    images: Path, private: str, mode: int
) -> None:
    """The set's own folder, one below it, or a file: programs would fail there."""
    (images / private).chmod(mode)
    assert look(images, contained=False) == "present"
    assert look(images, contained=True) == "unreadable"


def test_a_link_to_nothing_is_not_readable(images: Path) -> None:
    """What a link means outside of a container may not be there inside."""
    (images / "train" / "n01440766").symlink_to("/somewhere/else")
    assert look(images, contained=False) == "unreadable"


def test_files_and_folders_without_names(tmp_path: Path) -> None:
    """A file is a data set too; an empty folder and none at all are what they are."""
    (tmp_path / "file").write_text("tokens")
    (tmp_path / "empty").mkdir()
    for name, state in (("file", "present"), ("empty", "empty"), ("no", "missing")):
        assert look(tmp_path / name, contained=True) == state
        assert look(tmp_path / name, contained=False) == state
