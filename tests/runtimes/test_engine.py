"""A real engine reached over streams, and its images: pulled, pushed, built, saved, loaded."""

import re
import signal
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from docker.constants import DEFAULT_DOCKER_API_VERSION

from orchestrator import errors
from orchestrator.deadlines import Patience
from orchestrator.model.image import Credentials, Image
from orchestrator.planning.images import ImageRecipe, actions
from orchestrator.runtimes.engine import Engine
from orchestrator.runtimes.images import Images
from tests import processes
from tests.dockerd import IMAGE, QUICK, Dockerd, Fault, Faults, Registry, context, running, unlike
from tests.processes import wait_for
from tests.runtimes.stage import refused

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
USER, CANARY = "bench", "canary-7f3a"
# bcrypt of the canary, the one kind that the registry takes.
HTPASSWD = f"{USER}:$2b$04$R.lBYKChYTN9qC6K4UOQsePVwBTcntaLBzSjGJI.eu3lWoctYemfu\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry without users."""
    made = Registry(tmp_path_factory.mktemp("open") / "registry")
    yield made
    made.stop()


@pytest.fixture
def front(registry: Registry) -> Iterator[Faults]:
    """The same registry behind a front that may spoil its answers."""
    made = Faults(registry)
    yield made
    made.stop()


def silent(text: str) -> None:
    """A progress that nobody reads."""


def offer(dockerd: Dockerd, name: str) -> str:
    """Push a new image to its registry and remove it from the engine; return its id."""
    image = unlike(dockerd, name)
    dockerd.docker("push", name)
    dockerd.docker("rmi", name)
    return image


def command_lines() -> Iterator[tuple[int, bytes]]:
    """Yield pid and command line of each process."""
    for path in processes.files("cmdline"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_bytes()


def streams(dockerd: Dockerd) -> list[int]:
    """List the commands that carry a stream to the engine now."""
    words = f"{dockerd.socket}\0system\0dial-stdio".encode()
    return [pid for pid, line in command_lines() if words in line]


def test_streams_are_few_and_kept(dockerd: Dockerd, engine: Engine) -> None:
    """Two hundred questions from eight threads take three streams, which then wait for more."""
    most = 0
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(Images(engine).find, IMAGE) for _ in range(200)]
        while not all(answer.done() for answer in answers):
            most = max(most, len(streams(dockerd)))
            time.sleep(0.01)
    assert len({repr(answer.result()) for answer in answers}) == 1
    kept = streams(dockerd)
    assert 1 <= len(kept) <= 3
    assert most <= 3
    assert Images(engine).find(IMAGE)
    assert streams(dockerd) == kept
    engine.close()
    wait_for(lambda: not streams(dockerd), "the end of the streams", 10)


@pytest.mark.parametrize(
    ("command", "code", "said", "fix"),
    [
        (("docker", "-H", "unix:///nowhere/docker.sock"), "DOCKER-DOWN", "nowhere", ""),
        (("sh", "-c", "exec no-such-docker"), "DOCKER-MISSING", "not found", ""),
        (
            ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
            "DOCKER-PERM",
            r"user root may not .*permission denied",
            "sudo: true",
        ),
    ],
    ids=["down", "missing", "not allowed"],
)
def test_an_engine_out_of_reach_is_explained(
    dockerd: Dockerd, command: tuple[str, ...], code: str, said: str, fix: str
) -> None:
    """In the docker command's own words, with the node; nothing is changed to get in."""
    whole = (*command, *dockerd.command) if code == "DOCKER-PERM" else command
    with pytest.raises(errors.DlperfError, match=said) as raised:
        dockerd.engine(command=whole).check()
    assert (raised.value.code, raised.value.where["node"]) == (code, "here")
    assert fix in raised.value.fix


def test_an_engine_that_hangs_or_restarts_is_found_again() -> None:
    """DOCKER-HUNG after the limit, not after minutes; streams from before are not trusted."""
    with running() as dockerd:
        engine = dockerd.engine(patience=replace(QUICK, answer_s=1.0))
        engine.check()
        dockerd.kill(signal.SIGSTOP)
        began = time.monotonic()
        with refused("DOCKER-HUNG", "does not answer"):
            engine.check()
        dockerd.kill(signal.SIGCONT)
        assert time.monotonic() - began < 5
        engine = dockerd.engine()
        engine.check()
        dockerd.kill()
        with refused("DOCKER-DOWN", "daemon running"):
            engine.check()
        dockerd.start()
        engine.check()


class _Version(socketserver.StreamRequestHandler):
    """An engine of long ago, or of years to come: it sends its version and hangs up."""

    version = ""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        head = f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nApi-Version: {self.version}\r\n"
        self.wfile.write(f"{head}Connection: close\r\n\r\n{{}}".encode())


@contextmanager
def of_version(most: str, dockerd: Dockerd, folder: Path) -> Iterator[Engine]:
    """Yield an engine that answers every request with this API version."""
    handler = type("Version", (_Version,), {"version": most})
    with socketserver.ThreadingUnixStreamServer(str(folder / "s"), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield dockerd.engine(command=("docker", "-H", f"unix://{folder}/s"))
        finally:
            server.shutdown()
            thread.join()


def test_an_engine_of_long_ago_is_refused(dockerd: Dockerd, tmp_path: Path) -> None:
    with (
        of_version("1.24", dockerd, tmp_path) as engine,
        refused("DOCKER-API", r"API 1\.24; .* 1\.\d+"),
    ):
        engine.check()


def test_a_newer_engine_is_asked_in_the_latest_version_that_we_know(
    dockerd: Dockerd, tmp_path: Path
) -> None:
    with of_version("9.90", dockerd, tmp_path) as engine:
        spoken = engine.ask(lambda client: client.api_version)
    assert spoken == DEFAULT_DOCKER_API_VERSION


def is_layer(path: str, body: bytes) -> bool:
    """Return whether an answer is the layer, not the image's config."""
    return "/blobs/" in path and len(body) > 100_000


LIMIT = b'{"errors": [{"code": "TOOMANYREQUESTS", "message": "pull rate limit reached"}]}'
# By name: code, number of tries, and the fault of each answer's body.
FAULTS: dict[str, tuple[str, int, Callable[[bytes], Fault]]] = {
    "429-manifest": ("REG-RATELIMIT", 3, lambda _: Fault(429, LIMIT)),
    "429-blob": ("REG-RATELIMIT", 3, lambda _: Fault(429, LIMIT)),
    "503-blob": ("REG-5XX", 3, lambda _: Fault(503, b"no")),
    # Some engines ask for the rest of what was cut: it is cut at once.
    "cut": ("REG-CUT", 3, lambda body: Fault(None, body, 99_999 if len(body) > 3_000_000 else 0)),
    "flipped": (
        "REG-DIGEST",
        2,
        lambda body: Fault(body=body[:5000] + bytes([body[5000] ^ 1]) + body[5001:]),
    ),
    "stalled": ("REG-STALL", 2, lambda body: Fault(body=body, sent=99_999, silent=True)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_spoilt_pull_has_its_true_cause(dockerd: Dockerd, front: Faults, name: str) -> None:
    """Not `no such image`: the cause's code after its number of tries, and no image is left."""
    code, tries, fault = FAULTS[name]
    offer(dockerd, f"{front.behind.address}/{name}:1")

    def is_spoilt(path: str, body: bytes) -> bool:
        return "/manifests/" in path if name == "429-manifest" else is_layer(path, body)

    front.fault = lambda path, body: fault(body) if is_spoilt(path, body) else None
    stall_s = 2.0 if name == "stalled" else 20.0  # the engine's own retry rests for five
    images = Images(dockerd.engine(patience=replace(QUICK, stall_s=stall_s)))
    began = time.monotonic()
    with refused(code, kind=errors.ImageError):
        images.pull(f"{front.address}/{name}:1", silent, None)
    assert time.monotonic() - began < 30
    part = "/manifests/" if name == "429-manifest" else "/b"
    assert len([path for path in front.seen if part in path]) >= tries
    assert images.find(f"{front.address}/{name}:1") is None


def test_a_blob_that_is_cut_once_comes_at_the_next_try(dockerd: Dockerd, front: Faults) -> None:
    """The pull ends well, with the image that was pushed, and shows its layers on the way."""
    image = offer(dockerd, f"{front.behind.address}/once:1")
    cuts = iter([True])
    front.fault = lambda path, body: (
        Fault(body=body, sent=1000) if is_layer(path, body) and next(cuts, False) else None
    )
    seen: list[str] = []
    found = Images(dockerd.engine()).pull(f"{front.address}/once:1", seen.append, None)
    assert found.id == image
    assert next(cuts, None) is None
    assert any("Download" in text for text in seen)


def test_digests_are_what_images_are_pulled_by(
    dockerd: Dockerd, engine: Engine, registry: Registry
) -> None:
    """By its digest the old image comes also after the tag has moved."""
    images, name = Images(engine), f"{registry.address}/moved"
    first = unlike(dockerd, f"{name}:1")
    images.push(f"{name}:1", silent, None)
    digest = images.digest(f"{name}:1", None)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)
    second = unlike(dockerd, f"{name}:1")
    images.push(f"{name}:1", silent, None)
    assert images.remove(first)
    assert images.remove(f"{name}:1")
    assert not images.remove(f"{name}:1")
    assert images.find(f"{name}@{digest}") is None
    old = images.pull(f"{name}@{digest}", silent, None)
    assert (old.id, old.repo_digests) == (first, (f"{name}@{digest}",))
    assert images.pull(f"{name}:1", silent, None).id == second


def test_an_image_that_the_registry_lacks_is_missing(engine: Engine, registry: Registry) -> None:
    for ask in (
        lambda: Images(engine).pull(f"{registry.address}/nothing:1", silent, None),
        lambda: Images(engine).digest(f"{registry.address}/nothing:1", None),
    ):
        with pytest.raises(errors.DlperfError) as raised:
            ask()
        assert raised.value.code == "IMAGE-MISSING"
        assert raised.value.fix.startswith("correct the image's name or tag; a digest in the lock")


def test_secrets_reach_the_registry_and_nothing_else(dockerd: Dockerd, tmp_path: Path) -> None:
    """Without them REG-AUTH; with them it works, and no command line nor file has them."""
    registry = Registry(tmp_path / "registry", HTPASSWD)
    good, bad = Credentials(USER, CANARY), Credentials(USER, "wrong")
    images, name = Images(dockerd.engine()), f"{registry.address}/closed:1"
    image, lines, done = unlike(dockerd, name), list[bytes](), threading.Event()

    def watch() -> None:
        while not done.is_set():
            lines.extend(line for _, line in command_lines())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for none in (None, bad):
            with refused("REG-AUTH", kind=errors.ImageError):
                images.push(name, silent, none)
        images.push(name, silent, good)
        images.remove(name)
        with refused("REG-AUTH", kind=errors.ImageError):
            images.pull(name, silent, bad)
        assert images.pull(name, silent, good).id == image
        assert images.digest(name, good).startswith("sha256:")
    finally:
        done.set()
        watcher.join()
        registry.stop()
    assert CANARY not in repr(good)
    assert any(b"dial-stdio" in line for line in lines)
    assert not any(CANARY.encode() in line for line in lines)
    logs = (dockerd.folder / "daemons.log").read_bytes() + (tmp_path / "registry/log").read_bytes()
    assert CANARY.encode() not in logs


def test_a_build_prints_its_steps_and_why_it_fails(engine: Engine) -> None:
    images, lines = Images(engine), list[str]()
    good = (
        f'FROM {IMAGE}\nARG WORD\nLABEL dlperf.image=good\nRUN echo "hello $WORD"; echo 1 >/new\n'
    )
    image = images.build([context(good)], "dlperf/good:1", {"WORD": "there"}, {}, lines.append)
    assert "hello there" in lines
    found = images.find("dlperf/good:1")
    assert found is not None
    assert found.id == image
    assert images.tagged("dlperf.image") == {"dlperf/good:1": {"dlperf.image": "good"}}
    assert tuple(images.tagged("dlperf.image=other")) == ()
    bad = f"FROM {IMAGE}\nRUN echo the reason why; exit 3\n"
    with refused("IMAGE-BUILD", "the reason why", errors.ImageError):
        images.build([context(bad)], "dlperf/bad:1", {}, {}, lines.append)
    assert images.find("dlperf/bad:1") is None


@pytest.mark.parametrize("line", ["", 'LABEL dlperf.image="" dlperf.inputs=mine'])
def test_an_image_is_ours_by_its_label_and_not_by_its_tag(engine: Engine, line: str) -> None:
    """A build labels it, whatever its Dockerfile says; a tag that others moved is not ours."""
    images = Images(engine)
    base = Image(name="ours", base=f"docker.io/library/{IMAGE}")
    recipe = ImageRecipe(base, f"sha256:{'1' * 64}", {"Dockerfile": line}, {})
    tag, inputs = str(recipe.tag), str(recipe.inputs)
    labels = {"dlperf.image": "ours", "dlperf.inputs": inputs}
    built = images.build([context(f"FROM {IMAGE}\n{line}\n")], tag, {}, labels, silent)
    found = images.find(tag)
    assert found is not None
    assert (found.id, found.inputs) == (built, inputs)
    assert tuple(images.tagged("dlperf.image=ours")) == (tag,)
    assert actions(recipe, {"here": found}) == ()
    images.tag(IMAGE, tag)
    assert [action.kind for action in actions(recipe, {"here": images.find(tag)})] == ["build"]
    assert tuple(images.tagged("dlperf.image=ours")) == (built,)
    assert images.remove(tag)
    assert images.remove(built)


def test_a_saved_image_loads_with_its_id_and_name(dockerd: Dockerd, engine: Engine) -> None:
    images, image = Images(engine), unlike(dockerd, "carried:1")
    pieces = list(images.save("carried:1"))
    assert images.remove("carried:1")
    assert images.find(image) is None
    images.load(pieces)
    found = images.find("carried:1")
    assert found is not None
    assert found.id == image
    with pytest.raises(errors.DlperfError):
        images.load([b"this is no tar"])
    with pytest.raises(errors.ImageError):
        list(images.save("no-such-image:1"))
    images.tag("carried:1", "carried:2")
    assert images.find("carried:2") == found


def test_a_full_disk_is_named(registry: Registry, dockerd: Dockerd) -> None:
    name = f"{registry.address}/big:1"
    offer(dockerd, name)
    with running(disk_mib=10) as small, refused("DISK-FULL", "no space left"):
        Images(small.engine()).pull(name, silent, None)


def test_an_answer_may_take_ten_seconds_and_a_silent_transfer_two_minutes() -> None:
    assert (Patience().answer_s, Patience().stall_s) == (10.0, 120.0)
