"""Recipes: the build context of an image, and the images in a file of `docker save`."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Literal

import pytest

from orchestrator import errors
from orchestrator.model.image import content_digest
from orchestrator.provisioning import recipes
from tests import ROOT

SHIPPED = ROOT / "images"
SCRIPTS = SHIPPED / "scripts"
LAYER = f"sha256:{'1' * 64}"
CONFIG = json.dumps({"config": {"Env": ["A=1"]}, "rootfs": {"diff_ids": [LAYER]}}).encode()
ID = f"sha256:{hashlib.sha256(CONFIG).hexdigest()}"
NAME = "oneflow-manylinux2014-cuda11.2:0.1"
Mode = Literal["w", "w:gz", "w:xz"]


@pytest.mark.parametrize("image", sorted(path.parent.name for path in SHIPPED.glob("*/image.yaml")))
def test_everything_that_a_dockerfile_copies_is_in_its_context(image: str) -> None:
    """Values and pages stay out: editing a comment builds nothing anew."""
    contents = recipes.read_context(SHIPPED / image)
    assert not {"image.yaml", "README.md"} & contents.keys()
    lines = contents["Dockerfile"].decode().splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert copied - {"downloads/"} == contents.keys() - {"Dockerfile"}


def test_a_script_of_an_image_replaces_the_shared_script(tmp_path: Path) -> None:
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
    """The folder always exists, since a Dockerfile that copies it fails without."""
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


def test_a_folder_that_cannot_be_a_context_is_refused(tmp_path: Path) -> None:
    """No Dockerfile, a link, or a file that no build needs."""
    with pytest.raises(errors.ImageError, match="has no Dockerfile") as refused:
        recipes.read_context(tmp_path)
    assert refused.value.code == "IMAGE-FOLDER"
    (tmp_path / "Dockerfile").symlink_to("/etc/passwd")
    with pytest.raises(errors.ImageError, match="Dockerfile is no plain file"):
        recipes.read_context(tmp_path)
    (tmp_path / "Dockerfile").unlink()
    (tmp_path / "Dockerfile").touch()
    os.truncate(tmp_path / "Dockerfile", 65 << 20)
    with pytest.raises(errors.ImageError, match="at most 64 MiB"):
        recipes.read_context(tmp_path)
    with pytest.raises(errors.LocalError, match="absent"):
        recipes.read_context(tmp_path / "absent")


def saved(path: Path, members: dict[str, bytes], mode: Mode = "w") -> Path:
    """Write a tar of these members, in this order."""
    with tarfile.open(path, mode=mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def listed(config: str, *names: str) -> bytes:
    """Return the manifest.json of one image."""
    return json.dumps([{"Config": config, "RepoTags": list(names), "Layers": []}]).encode()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("config", ["abc.json", "blobs/sha256/abc"])
def test_an_id_is_the_hash_of_the_configuration(tmp_path: Path, mode: Mode, config: str) -> None:
    """The file may be compressed, and in either layout of `docker save`."""
    layer = {"1/layer.tar": b"\0" * (5 << 20)}
    members = {**layer, "manifest.json": listed(config, NAME, "b:1"), config: CONFIG}
    image = (ID, content_digest([LAYER], {"Env": ["A=1"]}))
    found = recipes.list_saved(saved(tmp_path / "x.tar", members, mode))
    assert found == {NAME: image, "b:1": image}


def test_images_without_a_name_are_left_out(tmp_path: Path) -> None:
    """A file may have images that were saved by id."""
    text = json.dumps([{"Config": "a", "RepoTags": None}]).encode()
    assert recipes.list_saved(saved(tmp_path / "x.tar", {"a": CONFIG, "manifest.json": text})) == {}


WHOLE = {"manifest.json": listed("a.json", NAME), "a.json": CONFIG * 40}


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"a": CONFIG}, "KeyError('manifest.json')"),
        ({"manifest.json": b"[{"}, "JSONDecodeError"),
        ({"manifest.json": b"5"}, "KeyError('manifest.json')"),
        ({"manifest.json": b'[{"RepoTags": ["x:1"]}]'}, "KeyError('Config')"),
        ({"a": b'{"rootfs": {}}', "manifest.json": listed("a", NAME)}, "KeyError('diff_ids')"),
        ({"manifest.json": listed("absent", NAME)}, "KeyError('absent')"),
        ({"manifest.json": b"[\xff"}, "UnicodeDecodeError"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, members: dict[str, bytes], words: str
) -> None:
    with pytest.raises(errors.ImageError, match="needed what `docker save` writes") as refused:
        recipes.list_saved(saved(tmp_path / "x.tar", members))
    assert refused.value.code == "ARCHIVE"
    assert words in str(refused.value)


@pytest.mark.parametrize("cut", [0, 10, 600, 900, None])
def test_a_file_that_is_cut_or_no_archive_is_refused(tmp_path: Path, cut: int | None) -> None:
    """A list may be present without its configuration, and a server may send a web page."""
    path = saved(tmp_path / "x.tar.gz", WHOLE, "w:gz" if cut in (0, 10) else "w")
    path.write_bytes(b"<html>404</html>" if cut is None else path.read_bytes()[:cut])
    with pytest.raises(errors.ImageError, match=r"x\.tar\.gz cannot be read"):
        recipes.list_saved(path)
