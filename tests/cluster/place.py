"""Where a run of the virtual cluster lies, and what its parts are called."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests import commands

GATEWAY = "10.11.0.1"
REGISTRY = f"{GATEWAY}:5000"
WEB = f"{GATEWAY}:8000"
MOST_NODES = 32
STUBS = "/run/testbed/stubs"
STANDARD_PATH = commands.on_path("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


class TestbedError(Exception):
    """The virtual cluster cannot be had as asked; says why."""

    __test__ = False  # pytest takes a class called Test... for tests


def home() -> Path:
    """The folder of all runs and of what they share."""
    return Path(os.environ.get("VIRTUAL_CLUSTER_HOME") or "/var/tmp/dlperf-testbed").resolve()


def runs() -> tuple[str, ...]:
    """Names of all runs that left a folder or a network namespace, in order."""
    folders = {path.name for path in (home() / "runs").glob("*")}
    spaces = {path.name.split("-")[1] for path in Path("/run/netns").glob("dlperf-*")}
    return tuple(sorted(folders | spaces))


@dataclass(frozen=True, slots=True)
class Place:
    """Paths and names of one run; nothing need be there yet."""

    run: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]{1,20}", self.run):
            raise TestbedError(f"run {self.run!r}; needed 1 to 20 small letters and digits")

    @property
    def folder(self) -> Path:
        """Everything of the run: keys, inventories, registry, a folder for each node."""
        return home() / "runs" / self.run

    @property
    def cache(self) -> Path:
        """Layers of images, shared by all runs of this machine."""
        return home() / "cache"

    @property
    def netns(self) -> str:
        """The outer network namespace."""
        return f"dlperf-{self.run}"

    @property
    def mark(self) -> dict[str, str]:
        """The environment by which the run's processes are known."""
        return {"VIRTUAL_CLUSTER": self.run}

    @property
    def document(self) -> Path:
        """What the run says of itself, as JSON."""
        return self.folder / "run.json"

    def own(self, node: str) -> Path:
        """The folder of one node."""
        return self.folder / "nodes" / node

    def inside(self, node: str = "") -> tuple[str, ...]:
        """The words that put a command into the outer namespace, or into a node's."""
        return ("nsenter", f"--net=/run/netns/{self.netns}{'-' if node else ''}{node}")

    def spaces(self) -> tuple[str, ...]:
        """Names of the run's network namespaces that are there, the outer one last."""
        named = (path.name for path in Path("/run/netns").glob(f"{self.netns}*"))
        mine = [name for name in named if name == self.netns or name.startswith(f"{self.netns}-")]
        return tuple(sorted(mine, key=len, reverse=True))

    def read(self) -> dict[str, object]:
        """The run's document.

        Raises:
            TestbedError: there is no such run, or it never came up.
        """
        try:
            content: dict[str, object] = json.loads(self.document.read_text())
        except FileNotFoundError as err:
            raise TestbedError(f"no run {self.run} is up; there are: {runs()}") from err
        return content


def node_names(nodes: int) -> tuple[str, ...]:
    """Names of the nodes in rank order."""
    return tuple(f"vs{index + 1:03d}" for index in range(nodes))


def address(node: str) -> str:
    """The address of a node by its name."""
    return f"10.11.0.{int(node[2:]) + 1}"
