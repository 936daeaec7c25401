"""Archives: those that are harmless pass, those that would do harm are never unpacked."""

import io
import tarfile
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.provisioning import archive

Member = tuple[str, bytes, str]
FILE, FOLDER = tarfile.REGTYPE, tarfile.DIRTYPE
LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


def packed(path: Path, members: tuple[Member, ...]) -> Path:
    """A tar of these members: name, kind, and where it links to."""
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as into:
        for name, kind, target in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            entry.size = 600 if kind == FILE else 0
            into.addfile(entry, io.BytesIO(bytes(600)))
    return path


@pytest.mark.parametrize("name", ["ofed.tar", "ofed.tgz"])
def test_harmless_archive_passes(tmp_path: Path, name: str) -> None:
    """Links that stay inside are fine, and so is a link to a folder that nothing goes through."""
    members = (
        *(("./ofed", FOLDER, ""), ("ofed/DEBS/a.deb", FILE, ""), ("ofed/lib", LINK, "DEBS")),
        *(("ofed/x/b", LINK, "../DEBS/a.deb"), ("ofed/c", HARD, "ofed/DEBS/a.deb")),
        ("ofed/through", LINK, "lib/a.deb"),
    )
    archive.check(packed(tmp_path / name, members))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ((("/etc/cron.d/x", FILE, ""),), "outside of its folder"),
        ((("../x", FILE, ""),), "outside of its folder"),
        ((("a/../../x", FILE, ""),), "outside of its folder"),
        ((("a", LINK, "/etc"),), "a is a link to /etc"),
        ((("a/b", LINK, "../../etc"),), "is a link to"),
        ((("a", LINK, "b/../c"),), "is a link to b/../c"),
        ((("a", HARD, "/etc/shadow"),), "is a link to /etc/shadow"),
        ((("a", HARD, "../x"),), "is a link to ../x"),
        ((("a/l", LINK, "."), ("a/l/x", FILE, "")), "a/l is a link that other members go through"),
        ((("a/b/l", LINK, "../../x"), ("l", HARD, "a/b/l")), "other members go through"),
        ((("a", tarfile.CHRTYPE, ""),), "is a device or a pipe"),
        ((("a", tarfile.FIFOTYPE, ""),), "is a device or a pipe"),
        ((("a", FILE, ""), ("b", FILE, "")), "b is beyond 1000 bytes"),
    ],
)
def test_harmful_archive_is_refused(
    tmp_path: Path, members: tuple[Member, ...], words: str
) -> None:
    """S-17: what would write outside of its folder, or without end, is never unpacked."""
    path = packed(tmp_path / "bad.tar", members)
    with pytest.raises(errors.ImageError, match=words) as refused:
        archive.check(path, most_bytes=1000)
    assert refused.value.code == "ARCHIVE"


@pytest.mark.parametrize("name", ["ofed.tar", "ofed.tgz"])
def test_archive_that_was_cut_is_refused(tmp_path: Path, name: str) -> None:
    """Half an archive, and a page of HTML where one was expected."""
    path = packed(tmp_path / name, tuple((f"a{number}", FILE, "") for number in range(100)))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])
    with pytest.raises(errors.ImageError, match="no archive that can be read"):
        archive.check(path)
    path.write_text("<html>404</html>")
    with pytest.raises(errors.ImageError, match="no archive that can be read"):
        archive.check(path)
