"""Images that are imported as files, and data sets that are counted, on this machine as a node."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import DataState, NodeFacts, Site
from orchestrator.provisioning import last_checks
from orchestrator.provisioning.image_files import import_images
from orchestrator.transports.local import LocalTransport
from tests.checks import facts


@pytest.fixture
def queued() -> Iterator[tuple[Fleet, Voice]]:
    """A Slurm cluster of this machine, which lacks enroot."""
    document = {"name": "queue", "scheduler": "slurm", "slurm": {"time": "01:00:00", "nodes": 1}}
    cluster = Cluster.model_validate({**document, "defaults": {"runtime": "pyxis"}}, strict=False)
    fleet = Fleet(cluster.with_nodes({"n1": "n1"}), {"n1": LocalTransport("n1")})
    voice = Voice(as_json=True)
    with fleet, closing(voice._err.file):
        yield fleet, voice


def import_one(queued: tuple[Fleet, Voice], state: Path, name: str) -> None:
    fleet, voice = queued
    nothing = Site(2, "queue", "", "", "", {}, ())
    import_images(fleet, state, (name,), nothing, voice, anew=False)


def test_an_image_that_must_be_built_is_refused(
    queued: tuple[Fleet, Voice], tmp_path: Path
) -> None:
    """Nothing is imported, since the program would be missing in it."""
    with pytest.raises(errors.ImageError, match="built by its Dockerfile") as refused:
        import_one(queued, tmp_path, "ngc-pytorch-20.03")
    assert refused.value.code == "NO-BUILD"
    assert not (tmp_path / "images").exists()


def test_an_import_that_fails_names_node_and_program(
    queued: tuple[Fleet, Voice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part of a file is left."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(errors.ImageError, match=r"enroot cannot import nvcr\.io/nvidia") as refused:
        import_one(queued, tmp_path, "reference-rn50")
    assert (refused.value.code, refused.value.where["node"]) == ("IMAGE-PULL", "n1")
    assert "enroot: not found" in str(refused.value)
    assert not list((tmp_path / "images").iterdir())


@pytest.mark.parametrize("state", ["hung", "missing", "unreadable", "empty"])
def test_only_data_sets_that_the_first_look_found_are_counted(
    state: DataState, tmp_path: Path
) -> None:
    """A mount that hangs would hold up all nodes for an hour."""
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "part-0").write_bytes(b"x")
    data = {name: str(tmp_path / name) for name in ("good", "bad")}
    own = {"transport": "local", "runtime": "process", "folder": str(tmp_path / "dlperf")}
    cluster = facts.cluster({"address": "127.0.0.1", "data": data, **own})
    seen = {"n1": NodeFacts(facts.HOST, data={"good": "present", "bad": state})}
    with Fleet(cluster, {"n1": LocalTransport("n1")}) as fleet:
        found, digests = last_checks.check_nodes(fleet, Voice(as_json=True), seen, recount=True)
    assert found == ()
    assert {name: [*held] for name, held in digests.items()} == {"good": ["n1"]}
