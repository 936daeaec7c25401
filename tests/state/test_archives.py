"""A sweep as one file: equal bytes for equal sweeps, and nothing in it that could do harm."""

import io
import os
import socket
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator import errors
from orchestrator.state import archives, contents
from orchestrator.state.archives import opened
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verifying import folder as sums
from orchestrator.verifying.findings import Findings
from tests.state.test_store import ATTEMPT, ENDED, INTENT, KEYS, OUTCOME, RECORD


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A sweep with a trial, its logs, a key and half a file."""
    made = Store(tmp_path / "state").new_sweep(RECORD)
    made.keep_attempt(replace(ATTEMPT, sweep=made.id), {})
    made.append(INTENT)
    folder = made.attempt_folder("t", 1)
    for name in ("r0.log", *KEYS, "r0.end"):
        (folder / name).write_text(f"{name}\n" * 1000)
    made.keep_log("t.log", folder / "r0.log")
    made.keep_outcome("t.log", OUTCOME)
    made.append(ENDED)
    (made.folder / "lock").write_text("")
    (made.folder / "results.json.7.7.new").write_text("{")
    contents.keep_sums(made)
    return made


def packed(sweep: Sweep, path: Path) -> Path:
    """The archive of a sweep."""
    archives.pack(sweep, path)
    return path


def crafted(path: Path, *members: tuple[tarfile.TarInfo, bytes], more: bytes = b"") -> Path:
    """An archive that ours never writes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for member, text in members:
            archive.addfile(member, io.BytesIO(text))
    path.write_bytes(zstandard.ZstdCompressor().compress(content.getvalue()) + more)
    return path


def member(name: str, text: bytes = b"x", kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    """A member's header."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, len(text)
    entry.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    return entry


def refused(path: Path, into: Path) -> str:
    """The code and message with which an archive is refused."""
    with pytest.raises(errors.UsageError) as caught:
        archives.unpack(path, into)
    assert caught.value.exit_code == 2
    return f"{caught.value.code}: {caught.value}"


def test_evidence_comes_back_byte_for_byte(sweep: Sweep, tmp_path: Path) -> None:
    """Every file but locks, halves, and keys that a task was given."""
    with opened(Store(tmp_path), str(packed(sweep, tmp_path / "a.tar.zst"))) as opening:
        assert opening.archive == tmp_path / "a.tar.zst"
        folder = opening.sweep.folder
        names = {
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        }
        attempt = {f"attempts/t/a1/{name}" for name in ("attempt.json", "r0.log", "r0.end")}
        records = {"sweep.json", "events.jsonl", "SHA256SUMS", "logs/t.log", "logs/t.json"}
        assert names == attempt | records
        for name in names:
            assert (folder / name).read_bytes() == (sweep.folder / name).read_bytes()
        assert opening.sweep.record() == sweep.record()
    assert not folder.exists()


def test_equal_sweeps_give_equal_bytes(sweep: Sweep, tmp_path: Path) -> None:
    """Whenever and with whatever rights and times the files were written."""
    first = packed(sweep, tmp_path / "a.tar.zst").read_bytes()
    for path in sweep.folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o644)
            path.write_bytes(path.read_bytes())
    assert packed(sweep, tmp_path / "b.tar.zst").read_bytes() == first


def test_sums_are_those_of_coreutils(sweep: Sweep) -> None:
    """One line for each file of evidence, itself left out."""
    lines = (sweep.folder / "SHA256SUMS").read_text().splitlines()
    assert [line[66:] for line in lines] == [*contents.survey(sweep).files]
    assert all(contents.sha256(sweep.folder / line[66:]) == line[:64] for line in lines)
    assert len(lines) == 7


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_holds_the_same_files(
    sweep: Sweep, tmp_path: Path, data: st.DataObject
) -> None:
    """Cut anywhere, or with any byte changed: one of 1,800 is of a bit that zstd does not need."""
    whole, path = packed(sweep, tmp_path / "a.tar.zst").read_bytes(), tmp_path / "b.tar.zst"
    at = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(0, 255))
    path.write_bytes(whole[:at] + (bytes([whole[at] ^ flip]) + whole[at + 1 :] if flip else b""))
    with tempfile.TemporaryDirectory(dir=tmp_path) as into:
        unpacked, code = None, "ARCHIVE-"
        try:
            unpacked = archives.unpack(path, Path(into))
        except errors.UsageError as error:
            code = error.code
        assert code.startswith("ARCHIVE-")
        if unpacked is None:
            return
        assert flip, "a part was taken for the whole"
        names = contents.survey(sweep).files
        assert contents.survey(unpacked).files == names
        for name in names:
            assert (unpacked.folder / name).read_bytes() == (sweep.folder / name).read_bytes()


def test_an_archive_with_bytes_after_its_end_is_refused(sweep: Sweep, tmp_path: Path) -> None:
    whole, path = packed(sweep, tmp_path / "a.tar.zst").read_bytes(), tmp_path / "b.tar.zst"
    for more in (b"x", whole):
        path.write_bytes(whole + more)
        assert refused(path, tmp_path / f"into-{len(more)}").startswith("ARCHIVE-DAMAGED")


OUTSIDE = ("../out", "a/../../out", "/tmp/out", "out", "a/./out")
SPECIAL = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, tarfile.REGTYPE) for name in (*OUTSIDE, "b/out", "a/sweep.json")),
        *(("a/special", kind) for kind in SPECIAL),
    ],
)
def test_unsafe_members_are_refused(tmp_path: Path, name: str, kind: bytes) -> None:
    """Nothing is written beside its folder, and no link or device at all."""
    text = b"" if kind != tarfile.REGTYPE else b"x"
    path = crafted(
        tmp_path / "a.zst", (member("a/sweep.json"), b"x"), (member(name, text, kind), text)
    )
    into = tmp_path / "into"
    into.mkdir()
    assert refused(path, into).startswith("ARCHIVE-UNSAFE")
    assert {path.name for path in tmp_path.iterdir()} == {"a.zst", "into"}
    assert not Path("/tmp/out").exists()


def test_more_than_the_limits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that would fill the disk; a header that would fill the memory."""
    monkeypatch.setattr(archives, "MOST_BYTES", 8 << 20)  # not 64 GiB
    zeros = bytes(9 << 20)
    bomb = crafted(tmp_path / "a.zst", (member("a/sweep.json", zeros), zeros))
    assert bomb.stat().st_size < 9000
    assert refused(bomb, tmp_path / "one").startswith("ARCHIVE-UNSAFE")
    names = "n" * (6 << 20)
    header = crafted(tmp_path / "b.zst", (member(f"a/{names}"), b"x"))
    assert refused(header, tmp_path / "two").startswith("ARCHIVE-UNSAFE")
    monkeypatch.setattr(archives, "MOST_FILES", 2)  # not 500,000
    two = crafted(
        tmp_path / "d.zst", *((member(f"a/{name}"), b"x") for name in ("sweep.json", "b"))
    )
    archives.unpack(two, tmp_path / "four")
    many = crafted(tmp_path / "c.zst", *((member(f"a/{number}"), b"x") for number in range(3)))
    assert refused(many, tmp_path / "three").startswith("ARCHIVE-UNSAFE")


def test_a_file_that_is_no_sweep_is_refused(tmp_path: Path) -> None:
    """Another tar file, or a file that only has the name."""
    other = crafted(tmp_path / "a.zst", (member("a/b"), b"x"))
    assert "no sweep.json is in it" in refused(other, tmp_path / "one")
    named = tmp_path / "b.tar.zst"
    named.write_text("no archive")
    assert refused(named, tmp_path / "two").startswith("ARCHIVE-DAMAGED")
    with (
        pytest.raises(errors.UsageError, match=r"NO-SWEEP: there is no file 'c\.tar\.zst'"),
        opened(Store(tmp_path), "c.tar.zst"),
    ):
        pass


def test_a_folder_and_an_id_open_as_well(sweep: Sweep, tmp_path: Path) -> None:
    """As every other command takes them; without a name, the newest."""
    store = Store(tmp_path / "state")
    for name in (None, sweep.id, str(sweep.folder), "x"):
        with opened(store, name) as opening:
            assert (opening.sweep.id, opening.archive) == (sweep.id, None)
    assert opening.name == str(opening.sweep.folder)


def check_sums(folder: Path) -> Findings:
    """Return the differences between a folder's files and its list of checksums."""
    findings = Findings()
    sums.check_sums(sums.Folder(folder, findings))
    return findings


def test_files_behind_links_within_the_folder_are_packed(sweep: Sweep, tmp_path: Path) -> None:
    """A folder, a file, a hard link, a link to a link: each by its own name, with its contents."""
    attempts = sweep.folder / "attempts"
    (sweep.folder / "again").symlink_to("attempts", target_is_directory=True)
    (sweep.folder / "logs" / "newest.log").symlink_to(attempts / "t" / "a1" / "r0.log")
    (sweep.folder / "logs" / "of-link.log").symlink_to("newest.log")
    os.link(attempts / "t" / "a1" / "r0.log", sweep.folder / "logs" / "hard.log")
    contents.keep_sums(sweep)
    with opened(Store(tmp_path), str(packed(sweep, tmp_path / "a.tar.zst"))) as opening:
        for name in ("again/t/a1/r0.log", "logs/newest.log", "logs/of-link.log", "logs/hard.log"):
            path = opening.sweep.folder / name
            assert path.read_bytes() == (sweep.folder / name).read_bytes()
            assert not path.is_symlink()
        assert not (opening.sweep.folder / "again" / "t" / "a1" / "r0.id").exists()
        assert check_sums(opening.sweep.folder).differences == []
    assert check_sums(sweep.folder).differences == []


def moved(sweep: Sweep, name: str, to: Path) -> None:
    """Move a file or folder of a sweep elsewhere, and leave a link to it."""
    (sweep.folder / name).rename(to)
    (sweep.folder / name).symlink_to(to)


def refusal(sweep: Sweep, target: Path) -> str:
    """The message with which a sweep is not archived; nothing is written."""
    with pytest.raises(errors.LocalError, match=r"ARCHIVE-INCOMPLETE|STORE-RIGHTS") as caught:
        archives.pack(sweep, target)
    assert caught.value.exit_code == 6
    assert not target.exists()
    return str(caught.value)


def test_files_that_cannot_be_packed_are_named(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links that leave the folder or lead nowhere, loops, FIFOs, sockets: all of them at once."""
    moved(sweep, "logs", tmp_path / "elsewhere")
    attempt = sweep.folder / "attempts/t/a1"
    (attempt / "gone.txt").symlink_to("nowhere")
    (attempt / "round").symlink_to("round")
    (attempt / "up").symlink_to("../..")
    for name, other in (("one", "two"), ("two", "one")):
        (sweep.folder / name).mkdir()
        (sweep.folder / name / "over").symlink_to(f"../{other}")
    os.mkfifo(attempt / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(attempt)
        listening.bind("socket")  # a longer path is none for a socket
        said = refusal(sweep, tmp_path / "a.tar.zst")
    assert f"logs: a link to {tmp_path / 'elsewhere'}, out of the folder" in said
    assert "one/over/over: a link to a folder that holds it" in said
    for name, why in {
        "gone.txt": f"a link to {attempt / 'nowhere'}, which is not there",
        "round": "a link to",
        "up": "a link to a folder that holds it",
        "pipe": "no file, but a FIFO, socket or device",
        "socket": "no file, but a FIFO, socket or device",
    }.items():
        assert f"attempts/t/a1/{name}: {why}" in said


@pytest.mark.parametrize("name", ["logs", "logs/t.log", "sweep.json", "attempts/t/a1"])
def test_a_link_out_of_the_folder_is_never_dropped(sweep: Sweep, tmp_path: Path, name: str) -> None:
    """A file that was moved to another disk is named, by `verify` too; keys there stay there."""
    moved(sweep, name, tmp_path / "elsewhere")
    assert f"{name}: a link to {tmp_path / 'elsewhere'}" in refusal(sweep, tmp_path / "a.tar.zst")
    if name == "logs":
        contents.keep_sums(sweep)
        findings = check_sums(sweep.folder)
        assert findings.differences == []
        (why,) = findings.not_derived["files that an archive would lack"]
        assert why.startswith("logs: a link to ")


def test_a_link_to_a_key_is_a_key(sweep: Sweep, tmp_path: Path) -> None:
    """By whatever name; it is told that it is not in."""
    (sweep.folder / "logs" / "t.txt").symlink_to(sweep.folder / "attempts/t/a1/r0.id")
    found = archives.pack(sweep, tmp_path / "a.tar.zst")
    assert "logs/t.txt" in found.left_out
    assert "logs/t.txt" not in found.files


def test_an_attempt_whose_record_is_gone_is_named(sweep: Sweep, tmp_path: Path) -> None:
    """Which of its files are keys nobody knows: they are not dropped in silence."""
    (sweep.folder / "attempts/t/a1/attempt.json").unlink()
    said = refusal(sweep, tmp_path / "a.tar.zst")
    assert "attempts/t/a1/r0.end: its attempt.json cannot be read" in said
    assert "r0.log" not in said


def test_an_archive_is_not_written_into_its_own_sweep(sweep: Sweep) -> None:
    """The next one would hold it."""
    with pytest.raises(errors.UsageError, match="lies in the sweep's own folder"):
        archives.pack(sweep, sweep.folder / "a.tar.zst")


def test_fifos_of_a_killed_supervisor_are_no_evidence(sweep: Sweep, tmp_path: Path) -> None:
    """They are there until the next command looks after the attempt."""
    os.mkfifo(sweep.folder / "attempts/t/a1/r0.gate")
    assert "attempts/t/a1/r0.gate" in archives.pack(sweep, tmp_path / "a.tar.zst").left_out
