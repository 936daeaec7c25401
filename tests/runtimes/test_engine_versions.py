"""Which version of its API an engine is spoken to in."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from docker.constants import DEFAULT_DOCKER_API_VERSION

from orchestrator import errors
from orchestrator.runtimes.engine import Engine
from tests.dockerd import Dockerd

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


class _Ancient(socketserver.StreamRequestHandler):
    """An engine of long ago, or of years to come: it says its versions and hangs up."""

    answer = b""
    more = ""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        version = json.loads(self.answer)["ApiVersion"]
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self.answer)}\r\n"
        head += f"Api-Version: {version}\r\n{self.more}Connection: close\r\n\r\n"
        self.wfile.write(head.encode() + self.answer)


@contextmanager
def of_versions(
    least: str, most: str, dockerd: Dockerd, folder: Path, more: str = ""
) -> Iterator[Engine]:
    """An engine that speaks these versions, and says no more than that and these headers."""
    answer = json.dumps({"ApiVersion": most, "MinAPIVersion": least}).encode()
    handler = type("Ancient", (_Ancient,), {"answer": answer, "more": more})
    with socketserver.ThreadingUnixStreamServer(str(folder / "s"), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield dockerd.engine(command=("docker", "-H", f"unix://{folder}/s"))
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("least", "most"), [("1.12", "1.24"), ("9.40", "9.90")])
def test_an_engine_too_old_or_too_new(
    least: str, most: str, dockerd: Dockerd, tmp_path: Path
) -> None:
    """Both sides' versions are in the message."""
    with (
        of_versions(least, most, dockerd, tmp_path) as engine,
        pytest.raises(errors.UnfitError, match=rf"{least} to {most}, .* 1\.\d+") as raised,
    ):
        engine.check()
    assert raised.value.code == "DOCKER-API"


def test_a_newer_engine_is_spoken_to_in_the_latest_version_that_we_know(
    dockerd: Dockerd, tmp_path: Path
) -> None:
    """It says that it still speaks that one."""
    with of_versions("1.24", "9.90", dockerd, tmp_path) as engine:
        spoken = engine.ask(lambda client: client.api_version)
    assert spoken == DEFAULT_DOCKER_API_VERSION


def test_podman_that_serves_the_api_is_not_taken_for_docker(
    dockerd: Dockerd, tmp_path: Path
) -> None:
    """By headers of podman 4.3.1: Docker's API 1.41, as far as it goes."""
    headers = "Libpod-Api-Version: 4.3.1\r\nServer: Libpod/4.3.1 (linux)\r\n"
    with (
        of_versions("1.24", "1.41", dockerd, tmp_path, headers) as engine,
        pytest.raises(errors.UnfitError, match=r"Libpod/4\.3\.1 .*podman") as raised,
    ):
        engine.check()
    assert raised.value.code == "DOCKER-FOREIGN"
