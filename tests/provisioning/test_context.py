"""The build context of an image: what is in it, and that nothing else reaches it."""

import os
import tarfile
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.provisioning import recipes
from tests import ROOT

SHIPPED = ROOT / "images"
SCRIPTS = SHIPPED / "scripts"


@pytest.mark.parametrize("image", sorted(path.parent.name for path in SHIPPED.glob("*/image.yaml")))
def test_everything_that_a_dockerfile_copies_is_in_its_context(image: str) -> None:
    """Values and pages stay out: editing a comment builds nothing anew."""
    contents = recipes.read_context(SHIPPED / image)
    assert not {"image.yaml", "README.md"} & contents.keys()
    lines = contents["Dockerfile"].decode().splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert copied - {"downloads/"} == contents.keys() - {"Dockerfile"}


def test_an_image_s_own_script_is_taken_before_the_shared_one(tmp_path: Path) -> None:
    """A shared one goes in only where the Dockerfile copies it."""
    (tmp_path / "Dockerfile").write_text("FROM x\nCOPY packages.sh source.sh /tmp/\n")
    (tmp_path / "packages.sh").write_text("mine")
    contents = recipes.read_context(tmp_path)
    assert contents["packages.sh"] == b"mine"
    assert contents["source.sh"] == (SCRIPTS / "source.sh").read_bytes()
    assert set(contents) == {"Dockerfile", "packages.sh", "source.sh"}


def test_context_is_the_same_whatever_the_files_look_like(tmp_path: Path) -> None:
    """Owner, mode, time and order of the files do not reach the tar; their bytes do."""
    tars = []
    for name, mode, names in (("a", 0o644, "xy"), ("b", 0o755, "yx")):
        folder = tmp_path / name
        folder.mkdir()
        for file_name in ("Dockerfile", *names):
            (folder / file_name).write_text(file_name)
            (folder / file_name).chmod(mode)
            os.utime(folder / file_name, (mode, mode))
        tars.append(folder / "context.tar")
        recipes.write_context(recipes.read_context(folder), {}, tars[-1])
    first, second = (path.read_bytes() for path in tars)
    assert first == second


def test_context_holds_downloads_below_a_folder_of_their_own(tmp_path: Path) -> None:
    """That folder is always there, since a Dockerfile that copies it fails without."""
    (tmp_path / "image" / "sub").mkdir(parents=True)
    for name in ("Dockerfile", "sub/x.sh", ".hidden", "image.yaml", "PAGE.md"):
        (tmp_path / "image" / name).write_text(name)
    (tmp_path / "tarball").write_bytes(b"ofed" * 1000)
    contents = recipes.read_context(tmp_path / "image")
    recipes.write_context(contents, {"ofed.tar": tmp_path / "tarball"}, tmp_path / "full.tar")
    with tarfile.open(tmp_path / "full.tar") as archive:
        seen = {member.name: (member.mode, member.uid, member.mtime) for member in archive}
        ofed = archive.extractfile("downloads/ofed.tar")
        assert ofed is not None
        assert ofed.read() == b"ofed" * 1000
    assert seen == {
        **dict.fromkeys(("downloads", "sub"), (0o755, 0, 0)),
        **dict.fromkeys(("Dockerfile", "sub/x.sh", "downloads/ofed.tar"), (0o644, 0, 0)),
    }
    recipes.write_context(contents, {}, tmp_path / "empty.tar")
    with tarfile.open(tmp_path / "empty.tar") as archive:
        assert "downloads" in archive.getnames()


def test_folder_that_cannot_be_a_context_is_refused(tmp_path: Path) -> None:
    """No Dockerfile, a link, or a file that no build needs: exit 5 with the path."""
    with pytest.raises(errors.ImageError, match="has no Dockerfile") as refused:
        recipes.read_context(tmp_path)
    assert refused.value.code == "IMAGE-FOLDER"
    (tmp_path / "Dockerfile").symlink_to("/etc/passwd")
    with pytest.raises(errors.ImageError, match="Dockerfile is no plain file"):
        recipes.read_context(tmp_path)
    (tmp_path / "Dockerfile").unlink()
    with open(tmp_path / "Dockerfile", "wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(errors.ImageError, match="at most 64 MiB"):
        recipes.read_context(tmp_path)
    with pytest.raises(errors.LocalError, match="absent"):
        recipes.read_context(tmp_path / "absent")
