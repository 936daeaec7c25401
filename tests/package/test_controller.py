"""The controller's image: built by a real engine from the Dockerfile, it does a user's work."""

import os
import re
import sys
from pathlib import Path

import pytest

from orchestrator import __version__
from tests import ROOT, commands
from tests.cluster import layers
from tests.cluster.place import Place
from tests.dockerd import Dockerd
from tests.docs import recorded

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.daemons]
BUILD_S = 600.0
# What the image of Python has that the Dockerfile uses; wheels lie in it instead of a registry.
BASE = """\
FROM debian
COPY wheels /wheels
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
"""


def wheels(folder: Path) -> None:
    """What the program and its build need, as wheels of the versions in requirements.lock."""
    pins = re.findall(
        r"^([A-Za-z0-9._-]+==[^ ;\\]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    limits = folder.parent / "limits.txt"
    limits.write_text("\n".join(pins))
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder))
    done = commands.run(
        [*pip, "--constraint", str(limits), "hatchling", str(ROOT)], timeout_s=BUILD_S
    )
    if done.returncode:
        pytest.skip(f"no registry of packages can be reached: {done.stderr.strip()[-200:]}")


def build(dockerd: Dockerd, tag: str, folder: Path, *words: str) -> None:
    """An image of a folder with a Dockerfile, by Docker's classic builder."""
    done = commands.run(
        [*dockerd.command, "build", "--network", "host", "--tag", tag, *words, str(folder)],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        timeout_s=BUILD_S,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="module")
def controller(dockerd: Dockerd, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image that `make controller` builds, on a base of this machine's Debian."""
    folder = tmp_path_factory.mktemp("base")
    wheels(folder / "wheels")
    debian = layers.build_debian(Place("controller"), "python3-venv", "passwd")
    dockerd.docker("import", debian.path, "debian")
    (folder / "Dockerfile").write_text(BASE)
    build(dockerd, "python", folder)
    build(dockerd, "dlperf-orch", ROOT, "--build-arg", "PYTHON=python")
    return "dlperf-orch"


def test_it_says_its_version_and_has_what_ships(controller: str, dockerd: Dockerd) -> None:
    """As a user who is not root, in the folder that users mount."""
    run = ("run", "--rm", "--network", "host")
    assert dockerd.docker(*run, controller, "--version") == f"dlperf-orch {__version__}"
    assert "rn50-h100" in dockerd.docker(*run, controller, "list", "playbooks")
    who = dockerd.docker(*run, "--entrypoint", "sh", controller, "-c", "id -u; pwd; touch here")
    assert who.split() == ["1000", "/work"]


def test_it_collects_the_logs_of_a_mounted_folder(
    controller: str, dockerd: Dockerd, tmp_path: Path
) -> None:
    """Seven recorded logs: the median of the README's picture, and reports that the user owns."""
    work = tmp_path / "work"
    recorded.lay(work / "logs")
    os.chown(work, 1000, 1000)
    run = ("run", "--rm", "--network", "host", "--volume", f"{work}:/work", controller)
    words = ("collect", "--logs", "logs", "--workload", "ngc_pytorch_rn50", "--window", "20:60")
    done = commands.run([*dockerd.command, *run, *words, "--out", "out"], timeout_s=120)
    assert done.returncode == 0, done.stderr
    assert "MARKED: 7 of 7" in done.stdout  # one program ended early, behind the window
    assert "6098.37" in done.stdout
    assert (work / "out" / "report.html").stat().st_uid == 1000


def test_it_works_as_whoever_owns_the_mounted_folder(
    controller: str, dockerd: Dockerd, tmp_path: Path
) -> None:
    """A user who has no name in the image: what is written is theirs, and locks name a number."""
    work = tmp_path / "mine"
    work.mkdir()
    os.chown(work, 4321, 4321)
    run = ("run", "--rm", "--network", "host", "--user", "4321:4321", "--volume", f"{work}:/work")
    dockerd.docker(*run, controller, "init", "localhost", "-o", "inventory/box.yaml")
    dockerd.docker(*run, controller, "provision", "box", "--dry-run")
    assert (work / "inventory" / "box.yaml").stat().st_uid == 4321
    home = ("--entrypoint", "sh", controller, "-c", "cd && pwd")
    assert dockerd.docker(*run, *home).strip() == "/home/dlperf"
