"""Images carried from one node's engine to others', while one of them takes or gives no byte."""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.files.downloads import Downloads
from orchestrator.fleet import Fleet
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import LockFile
from orchestrator.provisioning.apply import carry
from orchestrator.provisioning.materials import Preparing
from orchestrator.runtimes.engine import Engine
from orchestrator.transports.local import LocalTransport
from tests.dockerd import QUICK, Dockerd, running, unlike
from tests.processes import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
IMAGE = "carried:1"
SIZE_BYTES = 200_000_000  # more than lies in memory and in pipes between the engines
PATIENCE = replace(QUICK, stall_s=5.0)


@pytest.fixture(scope="module")
def daemons() -> Iterator[dict[str, Dockerd]]:
    """Three engines, the first of them with an image that the others lack."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(running()) for name in ("has", "one", "two")}
        unlike(made["has"], IMAGE, SIZE_BYTES)
        yield made


@pytest.fixture
def lacking(daemons: dict[str, Dockerd]) -> dict[str, Dockerd]:
    """The same engines, with the image on the first alone."""
    for name in ("one", "two"):
        if daemons[name].docker("images", "-q", IMAGE):
            daemons[name].docker("rmi", IMAGE)
    return daemons


@contextmanager
def carrying(
    nodes: dict[str, Dockerd], folder: Path, before: Mapping[str, tuple[str, ...]] | None = None
) -> Iterator[Preparing]:
    """Yield nodes whose engines have been asked something already, as provisioning has.

    Args:
        before: by node, words that stand before its docker command.
    """
    transports = {name: LocalTransport(name) for name in nodes}
    engines = {
        name: Engine(
            transports[name],
            command=(*(before or {}).get(name, ()), *dockerd.command),
            patience=PATIENCE,
        )
        for name, dockerd in nodes.items()
    }
    defaults = {"transport": "local", "runtime": "docker"}
    members = [
        {"name": name, "address": f"127.0.0.{number}"} for number, name in enumerate(nodes, 1)
    ]
    document = {"name": "some", "defaults": defaults, "nodes": members}
    cluster = Cluster.model_validate(document, strict=False)
    voice = Voice(as_json=True)
    with Fleet(cluster, transports, lambda: engines) as fleet, closing(voice._err.file):
        for engine in engines.values():
            engine.check()
        kept = Downloads(folder, lambda _: None)
        yield Preparing(fleet, folder / "some.yaml", False, LockFile(version=1), kept, voice)


@contextmanager
def stopped(dockerd: Dockerd, at: str) -> Iterator[None]:
    """An engine that stops as soon as it works at a load (``import``) or at a save (``export``)."""

    def stop() -> None:
        parts = dockerd.folder / "disk" / "docker" / "tmp"
        wait_for(lambda: any(parts.glob(f"docker-{at}-*/*")), f"an {at} that is under way")
        dockerd.kill(signal.SIGSTOP)

    stopping = threading.Thread(target=stop)
    stopping.start()
    try:
        yield
    finally:
        stopping.join()
        dockerd.kill(signal.SIGCONT)


def refusal(preparing: Preparing, targets: Sequence[str]) -> errors.DlperfError:
    """Return the error that a carry ends with, in time."""
    began = time.monotonic()
    with pytest.raises(errors.DlperfError) as raised:
        carry(preparing, IMAGE, "has", targets)
    assert time.monotonic() - began < 60
    return raised.value


@pytest.mark.parametrize(("stalled", "at"), [("one", "import"), ("has", "export")])
def test_a_node_that_stalls_is_named_and_the_others_are_well(
    lacking: dict[str, Dockerd], tmp_path: Path, stalled: str, at: str
) -> None:
    """One takes no byte, or gives none; nothing is left here."""
    with carrying(lacking, tmp_path) as preparing:
        with stopped(lacking[stalled], at=at):
            error = refusal(preparing, ("one", "two"))
        assert (error.code, error.where["node"]) == ("DOCKER-HUNG", stalled), error
        assert "trouble with" not in error.cause
        assert not list(tmp_path.iterdir())
        if stalled == "one":
            images = preparing.fleet.images
            assert images["two"].find(IMAGE) == images["has"].find(IMAGE)


def test_nodes_take_the_image_while_it_is_read(lacking: dict[str, Dockerd], tmp_path: Path) -> None:
    """The source gives all of it only once another engine has begun to take it."""
    begun = lacking["one"].folder / "disk" / "docker" / "tmp"
    pieces = "dd bs=65536 count=200 2>/dev/null"  # less than a tenth of the image
    script = tmp_path / "docker"
    script.write_text(
        'case "$*" in *dial-stdio) ;; *) exec "$@" ;; esac\n'
        f'"$@" | {{ {pieces}; for _ in $(seq 400); do\n'
        f"ls {begun}/docker-import-*/* >/dev/null 2>&1 && exec cat; sleep 0.05; done; }}\n"
    )
    folder = tmp_path / "downloads"
    with carrying(lacking, folder, {"has": ("sh", str(script))}) as preparing:
        carry(preparing, IMAGE, "has", ("one", "two"))
        images = preparing.fleet.images
        assert images["one"].find(IMAGE) == images["two"].find(IMAGE) == images["has"].find(IMAGE)
        assert not list(folder.iterdir())


def test_a_full_disk_here_is_an_error_of_this_machine_alone(
    lacking: dict[str, Dockerd], tmp_path: Path
) -> None:
    """STORE-FULL names the folder and no node, and no node has a part of the image."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    try:
        with carrying(lacking, folder) as preparing:
            error = refusal(preparing, ("one", "two"))
            assert preparing.fleet.images["one"].find(IMAGE) is None
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    assert (error.code, error.where) == ("STORE-FULL", {}), error
    assert str(folder) in error.cause


@pytest.mark.long
def test_more_nodes_than_are_asked_at_once_have_the_image(
    lacking: dict[str, Dockerd], tmp_path: Path
) -> None:
    unlike(lacking["has"], "small:1", 40_000_000)
    many = {f"n{number:02}": lacking["one"] for number in range(34)}
    with carrying({"has": lacking["has"], **many}, tmp_path) as preparing:
        began = time.monotonic()
        carry(preparing, "small:1", "has", tuple(many))
        assert time.monotonic() - began < 100
        assert preparing.fleet.images["n33"].find("small:1") is not None


def test_under_slurm_a_file_that_all_nodes_see_carries_it(
    lacking: dict[str, Dockerd], tmp_path: Path
) -> None:
    """The file is written once, read by all, then removed."""
    with carrying(lacking, tmp_path) as preparing:
        queue = {"scheduler": "slurm", "slurm": {"time": "01:00:00", "nodes": 3}}
        cluster = Cluster.model_validate({"name": "queue", **queue}, strict=False)
        preparing.fleet = replace(preparing.fleet, cluster=cluster)
        carry(preparing, IMAGE, "has", ("one", "two"))
        images = preparing.fleet.images
        assert images["one"].find(IMAGE) == images["two"].find(IMAGE) == images["has"].find(IMAGE)
        with pytest.raises(errors.ImageError, match="reference does not exist") as missing:
            carry(preparing, "no-such:1", "has", ("one",))
        assert (missing.value.code, missing.value.where["node"]) == ("IMAGE-MISSING", "has")
        assert not list(tmp_path.iterdir())
