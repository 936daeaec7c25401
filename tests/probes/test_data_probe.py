"""The data probe: the real scripts over small data sets, and doctored answers."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.site import DataDigest, DataState
from orchestrator.probes import data
from orchestrator.probes.sections import Output
from tests.commands import checked, run

SOMEBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as somebody else")


def count(path: Path, folder: Path, *, fresh: bool = False) -> DataDigest:
    """Count a data set here by the real script."""
    probe = data.probe(str(path), str(folder), fresh=fresh)
    return probe.parse(checked(run(probe.argv)).stdout)


def look(path: Path) -> tuple[DataState, DataState]:
    """Look at a data set here, as the node's user and as a container."""
    asked = [data.section("set", str(path), contained=contained) for contained in (False, True)]
    node, container = (checked(run(section.argv)).stdout for section in asked)
    return data.state(Output(0, node, "")), data.state(Output(0, container, ""))


def write(folder: Path, **files: str) -> Path:
    """Write a folder with these files; two underscores are a slash."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_digest_is_over_sizes_and_names_of_all_files(tmp_path: Path) -> None:
    """Equal for equal data sets in other places; another file, size or name gives another."""
    one = write(tmp_path / "one", train__a__1="xy", train__b__2="", val="z")
    two = write(tmp_path / "two", train__a__1="ab", train__b__2="", val="c")
    found = count(one, tmp_path / "kept")
    expected = hashlib.sha256(b"0\ttrain/b/2\n1\tval\n2\ttrain/a/1\n").hexdigest()
    assert found == DataDigest(str(one), expected, 3, 3, 2, 2, False)
    assert count(two, tmp_path / "kept").digest == found.digest
    write(two, val="cc")
    assert count(two, tmp_path / "kept").digest != found.digest


def test_an_answer_is_kept_until_a_folder_changes(tmp_path: Path) -> None:
    """Deep changes show in their folder's time; ``fresh`` looks again anyway."""
    one = write(tmp_path / "one", train__a__1="xy")
    assert not count(one, tmp_path / "kept").cached
    assert count(one, tmp_path / "kept").cached
    assert not count(one, tmp_path / "kept", fresh=True).cached
    write(one, train__a__2="new")
    again = count(one, tmp_path / "kept")
    assert (again.cached, again.files) == (False, 2)
    write(one, top="new")
    assert not count(one, tmp_path / "kept").cached
    assert (tmp_path / "kept" / "data").stat().st_mode & 0o777 == 0o700
    assert len(list((tmp_path / "kept" / "data").iterdir())) == 1


@as_root
def test_a_kept_answer_does_not_stand_for_what_cannot_be_read(anybodys: Path) -> None:
    """A folder that lost its rights, or whose disk fails, changes no time."""
    one = write(anybodys / "one", train__1="xy")
    (anybodys / "kept").mkdir()
    for path in (one, one / "train", anybodys / "kept"):
        os.chown(path, SOMEBODY, SOMEBODY)

    def seen() -> str:
        probe = data.probe(str(one), str(anybodys / "kept"), fresh=False)
        user = str(SOMEBODY)
        words = ("setpriv", "--reuid", user, "--regid", user, "--clear-groups", *probe.argv)
        return checked(run(words)).stdout

    assert "files 1\n" in seen()
    assert "cached yes" in seen()
    (one / "train").chmod(0)
    assert seen() == "problem unreadable\n"
    (one / "train").chmod(0o755)
    assert "cached yes" in seen()


def test_a_data_set_without_training_folder_has_no_such_count(tmp_path: Path) -> None:
    """TFRecords lie in one folder; links are followed."""
    real = write(tmp_path / "real", part__0="x")
    (tmp_path / "link").symlink_to(real)
    found = count(tmp_path / "link", tmp_path / "kept")
    assert (found.files, found.train_files, found.train_folders) == (1, None, None)


def test_nothing_is_kept_of_a_data_set_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.LogError, match="none: missing") as raised:
        count(tmp_path / "none", tmp_path / "kept")
    assert raised.value.code == "DATA-MISSING"
    assert not (tmp_path / "kept").exists()


def test_words_of_a_path_are_not_executed(tmp_path: Path) -> None:
    odd = write(tmp_path / "a b'$(touch harm)\"`touch harm`", file="x")
    assert count(odd, tmp_path / "kept").files == 1
    assert not os.path.exists("harm")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A data set of another user, which everybody may read, below a folder of that user alone."""
    folder = tmp_path / "private" / "image"
    names = ("train__n01440764__1", "train__n01440765__1", "val__n01440764__1")
    write(folder, **dict.fromkeys(names, "picture"))
    for path in (folder.parent, folder, *folder.rglob("*")):
        path.chmod(0o755)  # whatever the umask is
        if os.geteuid() == 0:
            os.chown(path, SOMEBODY, SOMEBODY)
    folder.parent.chmod(0o700)
    return folder


@as_root
@pytest.mark.parametrize(
    ("private", "mode", "inside"),
    [
        # A folder above does not count: in a container the data set is mounted by itself
        (".", 0o755, "present"),
        (".", 0o700, "unreadable"),
        (".", 0o711, "unreadable"),
        (".", 0o744, "unreadable"),
        ("train", 0o700, "unreadable"),
        ("train/n01440764", 0o750, "unreadable"),
        ("train/n01440765/1", 0o600, "unreadable"),
        ("val/n01440764/1", 0o640, "unreadable"),
    ],
)
def test_what_root_alone_may_read_is_not_readable_in_a_container(
    images: Path, private: str, mode: int, inside: str
) -> None:
    (images / private).chmod(mode)
    assert look(images) == ("present", inside)


def test_a_link_to_nothing_is_not_readable(images: Path) -> None:
    (images / "train" / "n01440766").symlink_to("/somewhere/else")
    assert look(images)[0] == "unreadable"


def test_a_data_set_may_be_a_file_and_a_folder_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("tokens")
    (tmp_path / "empty").mkdir()
    for name, state in (("file", "present"), ("empty", "empty"), ("no", "missing")):
        assert look(tmp_path / name) == (state, state)
