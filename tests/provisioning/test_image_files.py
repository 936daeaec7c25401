"""Images as files: what is refused before anything is imported, and what an import says."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.provisioning.image_files import Importing, prepare_image
from orchestrator.transports.local import LocalTransport


@pytest.fixture
def importing(tmp_path: Path) -> Iterator[Importing]:
    """On a node that is this machine, where there is no enroot."""
    document = {"name": "queue", "scheduler": "slurm", "slurm": {"time": "01:00:00", "nodes": 1}}
    cluster = Cluster.model_validate({**document, "defaults": {"runtime": "pyxis"}}, strict=False)
    fleet = Fleet(cluster.with_nodes({"n1": "n1"}), {"n1": LocalTransport("n1")})
    voice = Voice(as_json=True)
    with fleet, closing(voice._err.file):
        yield Importing(fleet, tmp_path, {}, False, voice)


def test_an_image_that_must_be_built_is_refused(importing: Importing) -> None:
    """Nothing is imported, since the program would be missing in it."""
    with pytest.raises(errors.ImageError, match="built by its Dockerfile") as refused:
        prepare_image(importing, "ngc-pytorch-20.03")
    assert refused.value.code == "NO-BUILD"
    assert not importing.folder.exists()


def test_an_import_that_fails_is_said_in_its_own_words(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the node and the program; no part of a file is left."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(errors.ImageError, match=r"enroot cannot import nvcr\.io/nvidia") as refused:
        prepare_image(importing, "reference-rn50")
    assert (refused.value.code, refused.value.where["node"]) == ("IMAGE-PULL", "n1")
    assert "enroot: not found" in str(refused.value)
    assert not list(importing.folder.iterdir())
