"""Files of `docker save`: which images they hold, read without an engine."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Literal

import pytest

from orchestrator import errors
from orchestrator.model.image import content_digest
from orchestrator.provisioning import recipes

LAYER = f"sha256:{'1' * 64}"
CONFIG = json.dumps({"config": {"Env": ["A=1"]}, "rootfs": {"diff_ids": [LAYER]}}).encode()
ID = f"sha256:{hashlib.sha256(CONFIG).hexdigest()}"
NAME = "oneflow-manylinux2014-cuda11.2:0.1"


Mode = Literal["w", "w:gz", "w:xz"]


def saved(path: Path, members: dict[str, bytes], mode: Mode = "w") -> Path:
    """A tar of these members, in this order."""
    with tarfile.open(path, mode=mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def listed(config: str, *names: str) -> bytes:
    """A manifest.json of one image."""
    return json.dumps([{"Config": config, "RepoTags": list(names), "Layers": []}]).encode()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("config", ["abc.json", "blobs/sha256/abc"])
def test_id_is_the_hash_of_the_configuration(tmp_path: Path, mode: Mode, config: str) -> None:
    """Whatever the file calls it, compressed or not, in either layout of `docker save`."""
    layer = {"1/layer.tar": b"\0" * (5 << 20)}
    members = {**layer, "manifest.json": listed(config, NAME, "b:1"), config: CONFIG}
    image = (ID, content_digest([LAYER], {"Env": ["A=1"]}))
    found = recipes.list_saved(saved(tmp_path / "x.tar", members, mode))
    assert found == {NAME: image, "b:1": image}


def test_image_without_a_name_is_none(tmp_path: Path) -> None:
    """A file may hold images that were saved by id: they cannot be asked for by name."""
    text = json.dumps([{"Config": "a", "RepoTags": None}]).encode()
    assert recipes.list_saved(saved(tmp_path / "x.tar", {"a": CONFIG, "manifest.json": text})) == {}


WRONG = (
    ({"a": CONFIG}, "KeyError('manifest.json')"),
    ({"manifest.json": b"[{"}, "JSONDecodeError"),
    ({"manifest.json": b"5"}, "KeyError('manifest.json')"),
    ({"manifest.json": b'[{"RepoTags": ["x:1"]}]'}, "KeyError('Config')"),
    ({"a": b'{"rootfs": {}}', "manifest.json": listed("a", NAME)}, "KeyError('diff_ids')"),
    ({"manifest.json": listed("absent", NAME)}, "KeyError('absent')"),
    ({"manifest.json": b"[\xff"}, "UnicodeDecodeError"),
)


@pytest.mark.parametrize(("members", "words"), WRONG)
def test_file_of_another_kind_is_refused(
    tmp_path: Path, members: dict[str, bytes], words: str
) -> None:
    """With what it lacks, and what makes such files."""
    path = saved(tmp_path / "x.tar", members)
    with pytest.raises(errors.ImageError) as refused:
        recipes.list_saved(path)
    assert refused.value.code == "ARCHIVE"
    assert words in str(refused.value)
    assert "needed what `docker save` writes" in str(refused.value)


@pytest.mark.parametrize("cut", [0, 10, 600, 900])
def test_cut_file_is_refused(tmp_path: Path, cut: int) -> None:
    """Never half read: the list may be there and the configuration not."""
    members = {"manifest.json": listed("a.json", NAME), "a.json": CONFIG * 40}
    path = saved(tmp_path / "x.tar.gz", members, "w:gz")
    whole = saved(tmp_path / "y.tar", members).read_bytes()
    path.write_bytes(path.read_bytes()[:cut] if cut < 100 else whole[:cut])
    with pytest.raises(errors.ImageError, match=r"x\.tar\.gz cannot be read"):
        recipes.list_saved(path)


def test_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    """A web server's page about what it has not got."""
    path = tmp_path / "x.tar.gz"
    path.write_text("<html>404</html>")
    with pytest.raises(errors.ImageError, match="cannot be read"):
        recipes.list_saved(path)
