"""A sweep as one file: equal bytes for equal sweeps, and nothing in it that could do harm."""

import io
import os
import random
import socket
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from orchestrator import errors
from orchestrator.model.attempt import Attempt
from orchestrator.model.plan import Task
from orchestrator.state import archives, contents
from orchestrator.state.archives import opened
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verifying import folder as sums
from orchestrator.verifying.findings import Difference, Findings
from tests.state.test_store import ENDED, INTENT, OUTCOME, RECORD

KEYS = ("r0.id", "r0.ssh_config")
TASK = Task("left", 0, ("true",), {}, (), (), files=KEYS)
ATTEMPT = Attempt("", "t", 1, {"left": "/x"}, 23333, (TASK,))


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


def test_what_is_evidence_comes_back_byte_for_byte(sweep: Sweep, tmp_path: Path) -> None:
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


def test_a_cut_archive_is_refused(sweep: Sweep, tmp_path: Path) -> None:
    """Cut anywhere; with something behind it."""
    whole = packed(sweep, tmp_path / "a.tar.zst").read_bytes()
    for number, content in enumerate((whole[:-1], whole[:200], b"", whole + b"x", whole + whole)):
        path = tmp_path / f"{number}.tar.zst"
        path.write_bytes(content)
        assert refused(path, tmp_path / f"into-{number}").startswith("ARCHIVE-")


def test_a_changed_archive_is_refused_or_holds_the_same_files(sweep: Sweep, tmp_path: Path) -> None:
    """Any byte of it; one of 1,800 changes is of a bit that zstd does not need."""
    whole = packed(sweep, tmp_path / "a.tar.zst").read_bytes()
    chance = random.Random(12)
    refusals = 0
    for number in range(60):
        at = chance.randrange(len(whole))
        changed = bytes([whole[at] ^ chance.randrange(1, 256)])
        path = tmp_path / f"{number}.tar.zst"
        path.write_bytes(whole[:at] + changed + whole[at + 1 :])
        try:
            unpacked = archives.unpack(path, tmp_path / f"into-{number}")
        except errors.UsageError as error:
            refusals += error.code.startswith("ARCHIVE-")
        else:
            names = contents.survey(sweep).files
            assert contents.survey(unpacked).files == names
            for name in names:
                assert (unpacked.folder / name).read_bytes() == (sweep.folder / name).read_bytes()
    assert refusals >= 57


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("../out", tarfile.REGTYPE, "outside of its folder"),
        ("a/../../out", tarfile.REGTYPE, "outside of its folder"),
        ("/tmp/out", tarfile.REGTYPE, "outside of its folder"),
        ("out", tarfile.REGTYPE, "outside of its folder"),
        ("a/./out", tarfile.REGTYPE, "outside of its folder"),
        ("b/out", tarfile.REGTYPE, "another folder"),
        ("a/sweep.json", tarfile.REGTYPE, "is there twice"),
        ("a/link", tarfile.SYMTYPE, "is no regular file"),
        ("a/link", tarfile.LNKTYPE, "is no regular file"),
        ("a/pipe", tarfile.FIFOTYPE, "is no regular file"),
        ("a/disk", tarfile.BLKTYPE, "is no regular file"),
        ("a/folder", tarfile.DIRTYPE, "is no regular file"),
    ],
)
def test_unsafe_members_are_refused(tmp_path: Path, name: str, kind: bytes, words: str) -> None:
    """Nothing is written beside its folder, and no link or device at all."""
    text = b"" if kind != tarfile.REGTYPE else b"x"
    path = crafted(
        tmp_path / "a.zst", (member("a/sweep.json"), b"x"), (member(name, text, kind), text)
    )
    into = tmp_path / "into"
    into.mkdir()
    said = refused(path, into)
    assert said.startswith("ARCHIVE-UNSAFE")
    assert words in said
    assert [path.name for path in tmp_path.iterdir() if path.name == "out"] == []
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
    many = crafted(tmp_path / "c.zst", *((member(f"a/{number}"), b"x") for number in range(3)))
    assert refused(many, tmp_path / "three").startswith("ARCHIVE-UNSAFE")


def test_what_is_no_sweep_is_said_to_be_none(tmp_path: Path) -> None:
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


def test_what_lies_behind_links_within_the_folder_is_in(sweep: Sweep, tmp_path: Path) -> None:
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
        assert check_sums(opening.sweep.folder) == []
    assert check_sums(sweep.folder) == []


def check_sums(folder: Path) -> list[Difference]:
    """Differences between a folder's files and its list of checksums."""
    findings = Findings()
    sums.check_sums(sums.Folder(folder, findings))
    return findings.differences


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


def test_what_cannot_be_in_is_named(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links that leave the folder or lead nowhere, loops, FIFOs, sockets: all of them at once."""
    moved(sweep, "logs", tmp_path / "elsewhere")
    attempt = sweep.folder / "attempts/t/a1"
    (attempt / "gone.txt").symlink_to("nowhere")
    (attempt / "round").symlink_to("round")
    (attempt / "up").symlink_to("../..")
    os.mkfifo(attempt / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(attempt)
        listening.bind("socket")  # a longer path is none for a socket
        said = refusal(sweep, tmp_path / "a.tar.zst")
    assert f"logs: a link to {tmp_path / 'elsewhere'}, out of the folder" in said
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
    """Whatever was moved to another disk is named; nothing there is packed, such as keys."""
    moved(sweep, name, tmp_path / "elsewhere")
    assert f"{name}: a link to {tmp_path / 'elsewhere'}" in refusal(sweep, tmp_path / "a.tar.zst")


def test_verify_says_what_an_archive_would_lack(sweep: Sweep, tmp_path: Path) -> None:
    """Files that were moved to another disk: neither list nor archive has them."""
    moved(sweep, "logs", tmp_path / "elsewhere")
    contents.keep_sums(sweep)
    findings = Findings()
    sums.check_sums(sums.Folder(sweep.folder, findings))
    assert findings.differences == []
    (why,) = findings.not_derived["files that an archive would lack"]
    assert why.startswith("logs: a link to ")


def test_two_links_that_lead_into_each_other_end(sweep: Sweep, tmp_path: Path) -> None:
    """A loop over two folders is named where it closes."""
    for name, other in (("one", "two"), ("two", "one")):
        (sweep.folder / name).mkdir()
        (sweep.folder / name / "over").symlink_to(f"../{other}")
    said = refusal(sweep, tmp_path / "a.tar.zst")
    assert "one/over/over: a link to a folder that holds it" in said


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


def test_files_that_change_while_they_are_read_are_named(sweep: Sweep, tmp_path: Path) -> None:
    """A log that a program still writes; a file that came meanwhile."""
    path = sweep.folder / "attempts/t/a1/r0.log"
    path.write_bytes(random.Random(1).randbytes(8 << 20))
    done = threading.Event()

    def grow() -> None:
        while not done.is_set():
            with open(path, "ab") as file:
                file.write(b"more\n")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        said = refusal(sweep, tmp_path / "a.tar.zst")
    finally:
        done.set()
        writer.join()
    assert f"{path} changed while it was read" in said


def test_an_archive_is_not_written_into_its_own_sweep(sweep: Sweep) -> None:
    """The next one would hold it."""
    with pytest.raises(errors.UsageError, match="lies in the sweep's own folder"):
        archives.pack(sweep, sweep.folder / "a.tar.zst")


def test_fifos_of_a_killed_supervisor_are_no_evidence(sweep: Sweep, tmp_path: Path) -> None:
    """They are there until the next command looks after the attempt."""
    os.mkfifo(sweep.folder / "attempts/t/a1/r0.gate")
    assert "attempts/t/a1/r0.gate" in archives.pack(sweep, tmp_path / "a.tar.zst").left_out
