"""What tests of the whole program share: the command line, and a place with the toy workload."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from orchestrator.runtimes.engine import Engine
from tests import TESTS, commands, processes
from tests.cluster import Cluster, cluster
from tests.cluster.life import lacking
from tests.dockerd import Dockerd, running
from tests.people import Desk, events
from tests.processes import PATIENCE_S
from tests.session import pytest_runtest_makereport as pytest_runtest_makereport
from tests.session import pytest_terminal_summary as pytest_terminal_summary
from tests.session import schedule

PROGRAM = (sys.executable, "-c", "from orchestrator.__main__ import main; main()")

# The same examples in each run, few of them, and as long as a busy machine needs for each.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, database=None, max_examples=60, deadline=None
)
hypothesis.settings.load_profile("repeatable")

# Fixtures, the dearest first: this machine alone, which others wait for; a virtual cluster or an
# environment with PyTorch; sweeps here. What begins last should be short.
DEAR = ({"machine_alone"}, {"four", "two", "installed"}, {"place"})


def pytest_configure() -> None:
    """Programs under test do not inherit which signals a run under nohup or behind & ignores."""
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that others wait for first, then the long ones: workers take whole files, in order."""
    dear: dict[Path, int] = {}
    for item in items:
        if isinstance(item, pytest.Function):
            needs = set(item.fixturenames)
            rank = next((at for at, names in enumerate(DEAR) if names & needs), len(DEAR))
            dear[item.path] = min(rank, dear.get(item.path, rank))
    items.sort(key=lambda item: dear.get(item.path, len(DEAR)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    return schedule(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, by name, what this machine cannot do; in CI nothing may be skipped."""
    if item.get_closest_marker("daemons") and (words := lacking()):
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)


@cache
def own_ports() -> int:
    """Where ports begin that no other test process of this machine uses, of any checkout."""
    for number in range(20):
        slot = Path(tempfile.gettempdir()) / f"dlperf-tests-{os.getuid()}.ports{number}"
        held = os.open(slot, os.O_RDWR | os.O_CREAT, 0o600)  # open as long as this process lives
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return 20_000 + 500 * number
        os.close(held)
    raise AssertionError("20 test processes run on this machine already")


@dataclass
class Place:
    """A folder where a person works, with the toy workload in reach.

    Args:
        program: what runs a command.
        more_env: what its environment has besides.
        files: where tasks have theirs until they come into the state folder; None if at once.
    """

    folder: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)
    program: tuple[str, ...] = PROGRAM
    more_env: dict[str, str] = field(default_factory=dict)
    files: Path | None = None

    @classmethod
    def made(cls, folder: Path) -> "Place":
        """A fresh one."""
        shutil.copytree(TESTS / "toy" / "place", folder)
        return cls(folder)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / ".dlperf"

    def run(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """A command, to its end."""
        return commands.run(
            [*self.program, *words],
            cwd=self.folder,
            env={**self.env(), **env},
            timeout_s=PATIENCE_S,
        )

    def must(self, *words: str, code: int = 0, **env: str) -> "subprocess.CompletedProcess[str]":
        """A command that ends with this code."""
        return commands.checked(self.run(*words, **env), code)

    def json(self, *words: str, code: int = 0, **env: str) -> Any:
        """The document of a command that ends with this code."""
        return json.loads(self.must(*words, "--json", code=code, **env).stdout)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A command, left running."""
        process = subprocess.Popen(
            [*self.program, *words],
            cwd=self.folder,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def opened(self, rank: int = 0) -> list[Path]:
        """Gates that have opened, of tasks of this node_rank whose files are where they ran."""
        root = self.files or self.state / "sweeps"
        return list(root.glob(f"*/attempts/*/*/r{rank}.go"))

    def stepping(self) -> int:
        """Leader logs with a first step: those gangs have met, and their handlers are there."""
        root = self.files or self.state / "sweeps"
        return sum(b"Iteration" in log.read_bytes() for log in root.glob("*/attempts/*/*/r0.log"))

    def rewrite(self, **values: str) -> None:
        """Give keys of the toy playbook, by their first word on a line, another line."""
        path = self.folder / "playbooks" / "toy.yaml"
        lines = path.read_text().splitlines()
        for key, line in values.items():
            lines = [line if old.split(":")[0].strip() == key else old for old in lines]
            if line not in lines:
                lines.append(line)
        path.write_text("\n".join(lines) + "\n")

    def sweep(self) -> Path:
        """The folder of the only sweep."""
        (found,) = (path.parent for path in self.state.glob("sweeps/*/sweep.json"))
        return found

    def events(self, kind: str) -> list[Any]:
        """Its events of one kind."""
        return events(self.sweep(), kind)

    def pids(self) -> list[int]:
        """Processes of any sweep of this place, supervisors and all."""
        ids = [path.parent.name.encode() for path in self.state.glob("sweeps/*/sweep.json")]
        marks = [
            f"DLPERF_{kind}=dlp-".encode() + sweep_id + b"-"
            for sweep_id in ids
            for kind in ("TASK", "SUPERVISOR")
        ]
        return processes.carrying(*marks)

    def end(self) -> None:
        """End whatever runs of it."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stderr:
                process.stderr.close()
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):  # it ends by itself, too
                os.kill(pid, signal.SIGKILL)

    def env(self) -> dict[str, str]:
        """The environment of every command here: this checkout and the toy, nothing of DLPERF_."""
        return {
            **commands.environment(),
            "PYTHONPATH": f"{TESTS.parent}:{TESTS / 'toy'}",
            "COLUMNS": "200",
            "DLPERF_LOCK": str(self.folder.parent / "machine.lock"),  # apart from real sweeps
            "TOY_PORT": str(own_ports()),  # or gangs would meet those of a neighbour's test
            **self.more_env,
        }


@contextlib.contextmanager
def this_machine(how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """This machine as a node: beside other tests and checkouts that use it so, or alone."""
    name = Path(tempfile.gettempdir()) / f"dlperf-tests-{os.getuid()}"
    with name.with_suffix(".lock").open("w") as lock:
        with name.with_suffix(".queue").open("w") as queue:
            fcntl.flock(queue, fcntl.LOCK_EX)  # nobody overtakes a test that waits to be alone
            fcntl.flock(lock, how)
        yield


@pytest.fixture
def machine() -> Iterator[None]:
    """This machine as a node, beside other tests."""
    with this_machine():
        yield


@pytest.fixture
def machine_alone() -> Iterator[None]:
    """This machine for one test alone: it does what stops or disturbs any other's sweep."""
    with this_machine(fcntl.LOCK_EX):
        yield


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A fresh place; whatever a test leaves running in it is ended."""
    if request.node.get_closest_marker("cluster") and "machine_alone" not in request.fixturenames:
        request.getfixturevalue("machine")
    here = Place.made(tmp_path / "place")
    yield here
    here.end()


@pytest.fixture(scope="module")
def dockerd() -> Iterator[Dockerd]:
    """One engine for the tests of a module that leave it alive."""
    with running() as engine:
        yield engine


@pytest.fixture
def engine(dockerd: Dockerd) -> Iterator[Engine]:
    """That engine, as the program sees it."""
    made = dockerd.engine()
    yield made
    made.close()


@pytest.fixture(scope="session")
def four() -> Iterator[Cluster]:
    """The virtual cluster of four nodes, up for as long as tests use it."""
    with cluster(4) as nodes:
        yield nodes


@pytest.fixture(scope="session")
def provisioned(
    four: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Desk, "subprocess.CompletedProcess[str]"]:
    """Where the first provisioning of the cluster ran, and what it said."""
    desk = Desk.made(four, tmp_path_factory.mktemp("first"))
    return desk, desk.run("provision", str(four.inventory), "--lock", "--json")


@pytest.fixture
def desk(
    provisioned: tuple[Desk, "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> Iterator[Desk]:
    """A fresh working folder on the provisioned cluster, as the first user left it."""
    first, _ = provisioned
    fresh = Desk.made(first.cluster, tmp_path)
    fresh.adopt(first)
    yield fresh
    fresh.end()
    fresh.cluster.switch()
