"""Images as files: what is refused before anything is imported, and what an import says."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.fleet import Fleet
from orchestrator.inputs import sites
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Site
from orchestrator.provisioning.image_files import import_images
from orchestrator.transports.local import LocalTransport


@pytest.fixture
def queued() -> Iterator[tuple[Fleet, Voice]]:
    """On a node that is this machine, where there is no enroot."""
    document = {"name": "queue", "scheduler": "slurm", "slurm": {"time": "01:00:00", "nodes": 1}}
    cluster = Cluster.model_validate({**document, "defaults": {"runtime": "pyxis"}}, strict=False)
    fleet = Fleet(cluster.with_nodes({"n1": "n1"}), {"n1": LocalTransport("n1")})
    voice = Voice(as_json=True)
    with fleet, closing(voice._err.file):
        yield fleet, voice


def _import(queued: tuple[Fleet, Voice], state: Path, name: str) -> None:
    fleet, voice = queued
    nothing = Site(sites.VERSION, "queue", "", "", "", {}, ())
    import_images(fleet, state, (name,), nothing, voice, anew=False)


def test_an_image_that_must_be_built_is_refused(
    queued: tuple[Fleet, Voice], tmp_path: Path
) -> None:
    """Nothing is imported, since the program would be missing in it."""
    with pytest.raises(errors.ImageError, match="built by its Dockerfile") as refused:
        _import(queued, tmp_path, "ngc-pytorch-20.03")
    assert refused.value.code == "NO-BUILD"
    assert not (tmp_path / "images").exists()


def test_an_import_that_fails_is_said_in_its_own_words(
    queued: tuple[Fleet, Voice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the node and the program; no part of a file is left."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(errors.ImageError, match=r"enroot cannot import nvcr\.io/nvidia") as refused:
        _import(queued, tmp_path, "reference-rn50")
    assert (refused.value.code, refused.value.where["node"]) == ("IMAGE-PULL", "n1")
    assert "enroot: not found" in str(refused.value)
    assert not list((tmp_path / "images").iterdir())
