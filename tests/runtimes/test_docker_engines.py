"""Docker as runtime where its engine hangs, restarts or is gone, which other tests do not share."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.runtimes.containers import Containers
from orchestrator.runtimes.images import Images
from tests import proc
from tests.dockerd import IMAGE, QUICK, Dockerd, Fault, Faults, Registry, running, unlike
from tests.runtimes.docker_stage import ENDLESS, Stage
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


@pytest.mark.long
def test_a_start_and_a_removal_may_take_longer_than_an_answer(tmp_path: Path) -> None:
    """An engine that stands still for twelve seconds does both; a short question is given up."""
    with running() as dockerd:
        stage = Stage(dockerd, dockerd.engine(), tmp_path)
        containers = Containers(stage.engine)
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
    """An engine that stands still from now on, for so long."""
    dockerd.kill(signal.SIGSTOP)
    moving = threading.Timer(for_s, dockerd.kill, (signal.SIGCONT,))
    moving.start()
    try:
        yield
    finally:
        moving.join()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_engine_that_restarts_takes_its_containers_with_it(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The loss is laid to Docker, not to the training, however the engine went."""
    with running() as dockerd:
        stage = Stage(dockerd, dockerd.engine(), tmp_path)
        attempt, task = stage.attempt("sh", "-c", ENDLESS)
        runtime = stage.begin(attempt, task)
        dockerd.kill(number)
        dockerd.start()
        assert stage.end(runtime, attempt, task).why == "docker-restarted"
        runtime.remove(attempt, task)


def test_with_live_restore_a_task_outlives_its_engine(tmp_path: Path) -> None:
    """It is seen to run while the engine is down, and its log is whole."""
    with running(live_restore=True) as dockerd:
        stage = Stage(dockerd, dockerd.engine(), tmp_path)
        attempt, task = stage.attempt("sh", "-c", "for i in $(seq 30); do echo $i; sleep 0.1; done")
        runtime = stage.begin(attempt, task)
        assert runtime.inspect(attempt, task).phase == "running"
        dockerd.kill()
        assert runtime.inspect(attempt, task).phase == "running"
        dockerd.start()
        end = stage.end(runtime, attempt, task)
        assert (end.status, end.why) == (0, "exited")
        assert runtime.output(attempt, task, 0).split() == [str(i).encode() for i in range(1, 31)]


def test_an_engine_that_is_down_is_no_end(tmp_path: Path) -> None:
    """Whether the task has ended is then not known, and that is an error of the node."""
    with running() as dockerd:
        stage = Stage(dockerd, dockerd.engine(), tmp_path)
        attempt, task = stage.attempt("sh", "-c", "exit 0")
        runtime = stage.begin(attempt, task)
        stage.end(runtime, attempt, task)
        dockerd.kill()
        with pytest.raises(errors.NodeError) as raised:
            runtime.inspect(attempt, task)
        assert raised.value.code == "DOCKER-DOWN"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, "DOCKER-DOWN"), (signal.SIGSTOP, "DOCKER-HUNG")]
)
def test_a_task_is_ended_without_its_engine(
    number: signal.Signals, code: str, tmp_path: Path
) -> None:
    """It is seen that the engine has gone while the task runs on; nothing of it stays behind."""
    with running() as dockerd:
        stage = Stage(dockerd, dockerd.engine(replace(QUICK, answer_s=1.0)), tmp_path)
        attempt, task = stage.attempt("sh", "-c", ENDLESS)
        runtime = stage.begin(attempt, task)
        token = attempt.token(task)
        dockerd.kill(number)

        def silent() -> bool:
            try:
                runtime.inspect(attempt, task)
            except errors.NodeError as error:
                return error.code == code
            return False

        wait_for(silent, "the engine's silence", 10)
        assert marked(token)
        runtime.remove(attempt, task)
        assert not marked(token)
        if number == signal.SIGKILL:
            dockerd.start()
        else:
            dockerd.kill(signal.SIGCONT)
        runtime.remove(attempt, task)
        assert not stage.names()


def marked(token: str) -> list[Path]:
    """Processes of a task, by their environment."""
    found = []
    for path in proc.files("environ"):
        with contextlib.suppress(OSError):
            if f"={token}\0" in path.read_text():
                found.append(path)
    return found


def test_an_engine_that_hangs_while_it_pulls_is_not_taken_for_a_slow_registry(
    tmp_path: Path,
) -> None:
    """DOCKER-HUNG within 15 s and what a loaded machine needs, not REG-STALL after two minutes."""
    registry = Registry(tmp_path / "registry")
    front = Faults(registry)
    try:
        with running() as dockerd:
            name = f"{front.address}/image:1"
            unlike(dockerd, f"{registry.address}/image:1")
            dockerd.docker("push", f"{registry.address}/image:1")
            dockerd.docker("rmi", f"{registry.address}/image:1")
            pulling = threading.Event()

            def fault(path: str, body: bytes) -> Fault | None:
                if "/blobs/" not in path:
                    return None
                pulling.set()
                return Fault(body=body, sent=1000, silent=True)

            front.fault = fault
            engine = dockerd.engine(replace(QUICK, stall_s=100.0))

            def stop() -> None:
                pulling.wait(60)
                dockerd.kill(signal.SIGSTOP)

            stopping = threading.Thread(target=stop)
            stopping.start()
            try:
                with pytest.raises(errors.UnfitError) as raised:
                    Images(engine).pull(name, lambda *_: None, None)
            finally:
                stopping.join()
                dockerd.kill(signal.SIGCONT)
                front.done.set()
            assert raised.value.code == "DOCKER-HUNG"
    finally:
        front.stop()
        registry.stop()


def test_a_question_to_an_engine_that_hangs_is_not_waited_out(tmp_path: Path) -> None:
    """DOCKER-HUNG after what short questions may take, not TIMEOUT at the end of its own time."""
    with running() as dockerd:
        patience = replace(QUICK, answer_s=1.0, start_s=10.0, end_s=1.0)
        runtime = Stage(dockerd, dockerd.engine(patience=patience), tmp_path).runtime()

        def hang() -> None:
            wait_for(lambda: dockerd.docker("ps", "--quiet"), "a container that runs")
            time.sleep(0.5)  # its start is answered by now
            dockerd.kill(signal.SIGSTOP)

        hanging = threading.Thread(target=hang)
        hanging.start()
        try:
            with pytest.raises(errors.UnfitError) as raised:
                runtime.run_once(("sleep", "60"), gpus=False, timeout_s=50)
        finally:
            hanging.join()
            dockerd.kill(signal.SIGCONT)
        assert raised.value.code == "DOCKER-HUNG"
