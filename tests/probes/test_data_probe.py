"""The data probe: the real script over small data sets, its memory, and doctored answers."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.site import DataDigest
from orchestrator.probes import data
from tests.commands import checked, run

DIGEST = "4ed83a6ff0427e79992f2b23ccdc0164ee289e07110050530668db10dd8c66cb"
ANSWER = f"stamp 1\ndigest {DIGEST}\nfiles 3\nsize_bytes 12\nend\n"


def look(path: Path, folder: Path, *, fresh: bool = False) -> DataDigest:
    """What the real script says of a data set here."""
    probe = data.probe(str(path), str(folder), fresh=fresh)
    done = subprocess.run(probe.argv, capture_output=True, text=True, timeout=60, check=True)
    return probe.parse(done.stdout)


def write(folder: Path, **files: str) -> Path:
    """A folder with these files; two underscores are a slash."""
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


def test_digest_is_over_sizes_and_names_of_all_files(tmp_path: Path) -> None:
    """Equal for equal data sets in other places; another file, size or name gives another."""
    one = write(tmp_path / "one", train__a__1="xy", train__b__2="", val="z")
    two = write(tmp_path / "two", train__a__1="ab", train__b__2="", val="c")
    found = look(one, tmp_path / "kept")
    expected = hashlib.sha256(b"0\ttrain/b/2\n1\tval\n2\ttrain/a/1\n").hexdigest()
    assert found == DataDigest(str(one), expected, 3, 3, 2, 2, False)
    assert look(two, tmp_path / "kept").digest == found.digest
    write(two, val="cc")
    assert look(two, tmp_path / "kept").digest != found.digest


def test_answer_is_kept_until_a_folder_changes(tmp_path: Path) -> None:
    """Deep changes show in their folder's time; ``fresh`` looks again anyway."""
    one = write(tmp_path / "one", train__a__1="xy")
    assert not look(one, tmp_path / "kept").cached
    assert look(one, tmp_path / "kept").cached
    assert not look(one, tmp_path / "kept", fresh=True).cached
    write(one, train__a__2="new")
    again = look(one, tmp_path / "kept")
    assert (again.cached, again.files) == (False, 2)
    write(one, top="new")
    assert not look(one, tmp_path / "kept").cached
    assert (tmp_path / "kept" / "data").stat().st_mode & 0o777 == 0o700
    assert len(list((tmp_path / "kept" / "data").iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as somebody else")
def test_a_kept_answer_does_not_stand_for_what_cannot_be_read(anybodys: Path) -> None:
    """A folder that lost its rights, or whose disk fails, changes no time."""
    one = write(anybodys / "one", train__1="xy")
    (anybodys / "kept").mkdir()
    for path in (one, one / "train", anybodys / "kept"):
        os.chown(path, 65534, 65534)

    def seen() -> str:
        probe = data.probe(str(one), str(anybodys / "kept"), fresh=False)
        words = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *probe.argv)
        return checked(run(words)).stdout

    assert "files 1\n" in seen()
    assert "cached yes" in seen()
    (one / "train").chmod(0)
    assert seen() == "problem unreadable\n"
    (one / "train").chmod(0o755)
    assert "cached yes" in seen()


def test_data_set_without_training_folder_has_no_such_count(tmp_path: Path) -> None:
    """TFRecords lie in one folder; links are followed to what they hold."""
    real = write(tmp_path / "real", part__0="x")
    (tmp_path / "link").symlink_to(real)
    found = look(tmp_path / "link", tmp_path / "kept")
    assert (found.files, found.train_files, found.train_folders) == (1, None, None)


def test_data_set_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Nothing is kept of it."""
    with pytest.raises(errors.LogError, match="none: missing") as raised:
        look(tmp_path / "none", tmp_path / "kept")
    assert raised.value.code == "DATA-MISSING"
    assert not (tmp_path / "kept").exists()


def test_words_of_a_path_are_not_obeyed(tmp_path: Path) -> None:
    """Blanks, quotes and dollar signs are part of a name."""
    odd = write(tmp_path / "a b'$(touch harm)\"`touch harm`", file="x")
    assert look(odd, tmp_path / "kept").files == 1
    assert not os.path.exists("harm")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not whole"),
        (ANSWER.replace("end\n", ""), "not whole"),
        (ANSWER.replace("4ed", "xyz"), "not whole"),
        (ANSWER.replace("files 3", "files three"), "not whole"),
        (ANSWER.replace("size_bytes 12", "size_bytes "), "not whole"),
        ("problem unreadable\n", "unreadable, in part or as a whole"),
    ],
)
def test_answer_that_is_not_whole_is_refused(text: str, match: str) -> None:
    """A count that is not there is not zero."""
    with pytest.raises(errors.LogError, match=match) as raised:
        data.parse(text, "/data/image")
    assert raised.value.code == ("DATA-MISSING" if "problem" in text else "DATA-DIFF")


def test_answer_of_a_node_is_read() -> None:
    """Kept answers say so."""
    assert data.parse(ANSWER, "/d") == DataDigest("/d", DIGEST, 3, 12, None, None, False)
    assert data.parse(f"{ANSWER}cached yes\n", "/d").cached
