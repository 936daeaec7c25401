"""Docker as runtime while its engine hangs, restarts or is down, on engines of its own."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.runtimes.containers import Containers
from orchestrator.runtimes.images import Images
from tests.dockerd import IMAGE, QUICK, Dockerd, Fault, Faults, Registry, running, unlike
from tests.runtimes.stage import ENDLESS, DockerStage
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


@pytest.mark.long
def test_a_start_and_a_removal_may_take_longer_than_an_answer() -> None:
    """An engine that stands still for twelve seconds does both; a short question is given up."""
    with running() as dockerd:
        containers = Containers(dockerd.engine())
        containers.create("slow", {"Image": IMAGE, "Cmd": ["sleep", "60"]})
        with still(dockerd, 12):
            containers.start("slow")
        state = containers.find("slow")
        assert state is not None
        assert state.pid
        assert not state.finished
        with still(dockerd, 12), pytest.raises(errors.UnfitError) as raised:
            containers.find("slow")
        assert (raised.value.code, "within 10 s" in raised.value.cause) == ("DOCKER-HUNG", True)
        with still(dockerd, 12):
            assert containers.remove("slow")
        assert containers.find("slow") is None


@contextmanager
def still(dockerd: Dockerd, for_s: float) -> Iterator[None]:
    """Stop an engine for so long."""
    dockerd.kill(signal.SIGSTOP)
    moving = threading.Timer(for_s, dockerd.kill, (signal.SIGCONT,))
    moving.start()
    try:
        yield
    finally:
        moving.join()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_engine_that_restarts_ends_its_containers(number: int, tmp_path: Path) -> None:
    """Docker is blamed for the loss, not the training, whichever signal ended the engine."""
    with running() as dockerd:
        task = DockerStage(dockerd, tmp_path).begin(ENDLESS)
        dockerd.kill(number)
        dockerd.start()
        assert task.end().why == "docker-restarted"
        task.remove()


def test_with_live_restore_a_task_outlives_its_engine(tmp_path: Path) -> None:
    """It is reported as running while the engine is down, and its log is whole."""
    with running(live_restore=True) as dockerd:
        task = DockerStage(dockerd, tmp_path).begin(
            "for i in $(seq 30); do echo $i; sleep 0.1; done"
        )
        assert task.phase == "running"
        dockerd.kill()
        assert task.phase == "running"
        dockerd.start()
        end = task.end()
        assert (end.status, end.why) == (0, "exited")
        assert task.output().split() == [str(i).encode() for i in range(1, 31)]


def test_an_engine_that_is_down_is_no_end(tmp_path: Path) -> None:
    """Whether the task has ended is not known then."""
    with running() as dockerd:
        task = DockerStage(dockerd, tmp_path).begin("exit 0")
        task.end()
        dockerd.kill()
        with pytest.raises(errors.NodeError) as raised:
            _ = task.phase
        assert raised.value.code == "DOCKER-DOWN"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, "DOCKER-DOWN"), (signal.SIGSTOP, "DOCKER-HUNG")]
)
def test_a_task_is_ended_without_its_engine(number: int, code: str, tmp_path: Path) -> None:
    """The silent engine is noticed while the task runs on; no process of the task stays behind."""
    with running() as dockerd:
        stage = DockerStage(dockerd, tmp_path, engine=dockerd.engine(replace(QUICK, answer_s=1.0)))
        task = stage.begin(ENDLESS)
        dockerd.kill(number)

        def is_silent() -> bool:
            try:
                return not task.phase
            except errors.NodeError as error:
                return error.code == code

        wait_for(is_silent, "the engine's silence", 10)
        assert task.pids()
        task.remove()
        assert not task.pids()
        if number == signal.SIGKILL:
            dockerd.start()
        else:
            dockerd.kill(signal.SIGCONT)
        task.remove()
        assert not stage.names()


def test_an_engine_that_hangs_while_it_pulls_is_not_taken_for_a_slow_registry(
    tmp_path: Path,
) -> None:
    """DOCKER-HUNG within 15 s and what a loaded machine needs, not REG-STALL after two minutes."""
    registry = Registry(tmp_path / "registry")
    front, pulling = Faults(registry), threading.Event()

    def fault(path: str, body: bytes) -> Fault | None:
        if "/blobs/" not in path:
            return None
        pulling.set()
        return Fault(body=body, sent=1000, silent=True)

    front.fault = fault
    try:
        with running() as dockerd:
            name = f"{registry.address}/image:1"
            unlike(dockerd, name)
            dockerd.docker("push", name)
            dockerd.docker("rmi", name)
            images = Images(dockerd.engine(replace(QUICK, stall_s=100.0)))
            with hanging(dockerd, lambda: pulling.wait(60)):
                images.pull(f"{front.address}/image:1", lambda *_: None, None)
            front.done.set()
    finally:
        front.stop()
        registry.stop()


def test_a_command_on_an_engine_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    """DOCKER-HUNG after the time of a short question, not TIMEOUT at the end of its own time."""
    with running() as dockerd:
        engine = dockerd.engine(replace(QUICK, answer_s=1.0, start_s=10.0, end_s=1.0))
        stage = DockerStage(dockerd, tmp_path, engine=engine)

        def wait_until_started() -> None:
            wait_for(lambda: dockerd.docker("ps", "--quiet"), "a container that runs")
            time.sleep(0.5)  # its start is answered by now

        with hanging(dockerd, wait_until_started):
            stage.runtime.run_once(("sleep", "60"), gpus=False, timeout_s=50)


@contextmanager
def hanging(dockerd: Dockerd, wait: Callable[[], object]) -> Iterator[None]:
    """Stop the engine during the block, after ``wait``; expect DOCKER-HUNG."""

    def stop() -> None:
        wait()
        dockerd.kill(signal.SIGSTOP)

    stopping = threading.Thread(target=stop)
    stopping.start()
    try:
        with pytest.raises(errors.UnfitError) as raised:
            yield
    finally:
        stopping.join()
        dockerd.kill(signal.SIGCONT)
    assert raised.value.code == "DOCKER-HUNG"
