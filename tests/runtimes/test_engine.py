"""A real engine reached over streams, and its images carried: what goes well and what does not."""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.deadlines import Patience
from orchestrator.model.image import Credentials, Image
from orchestrator.planning.images import ImageRecipe, actions
from orchestrator.runtimes.engine import Engine
from orchestrator.runtimes.images import Images
from tests import proc
from tests.dockerd import IMAGE, QUICK, Dockerd, Fault, Faults, Registry, context, running, unlike
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]
USER, CANARY = "bench", "canary-7f3a"
# bcrypt of the canary, the one kind that the registry takes.
HTPASSWD = f"{USER}:$2b$04$R.lBYKChYTN9qC6K4UOQsePVwBTcntaLBzSjGJI.eu3lWoctYemfu\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that asks nobody who they are."""
    made = Registry(tmp_path_factory.mktemp("open") / "registry")
    yield made
    made.stop()


@pytest.fixture
def front(registry: Registry) -> Iterator[Faults]:
    """The same registry behind something that may spoil its answers."""
    made = Faults(registry)
    yield made
    made.stop()


def silent(text: str) -> None:
    """A progress that nobody looks at."""


def streams(dockerd: Dockerd) -> list[int]:
    """Commands that carry a stream to the engine now."""
    words = f"{dockerd.socket}\0system\0dial-stdio".encode()
    found = []
    for path in proc.files("cmdline"):
        try:
            if words in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


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
    ("command", "code", "said"),
    [
        (("docker", "-H", "unix:///nowhere/docker.sock"), "DOCKER-DOWN", "nowhere"),
        (("sh", "-c", "exec no-such-docker"), "DOCKER-MISSING", "not found"),
    ],
)
def test_an_engine_that_is_not_there(
    dockerd: Dockerd, command: tuple[str, ...], code: str, said: str
) -> None:
    """What is missing is said in the docker command's own words, and the node is named."""
    engine = dockerd.engine(command=command)
    with pytest.raises(errors.DlperfError, match=said) as raised:
        engine.check()
    assert (raised.value.code, raised.value.where["node"]) == (code, "here")


def test_a_socket_that_we_may_not_use(dockerd: Dockerd) -> None:
    """The user and the remedy are named; nothing is changed to get in."""
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    engine = dockerd.engine(command=(*nobody, *dockerd.command))
    with pytest.raises(errors.UnfitError, match=r"user root may not .*permission denied") as raised:
        engine.check()
    assert raised.value.code == "DOCKER-PERM"
    assert "sudo: true" in raised.value.fix


def test_a_hung_engine_is_given_up_in_time() -> None:
    """DOCKER-HUNG after the limit, not after minutes; once it moves again, so do we."""
    with running() as dockerd:
        engine = dockerd.engine(patience=replace(QUICK, answer_s=1.0))
        engine.check()
        dockerd.kill(signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(errors.UnfitError, match="does not answer") as raised:
            engine.check()
        dockerd.kill(signal.SIGCONT)
        assert raised.value.code == "DOCKER-HUNG"
        assert time.monotonic() - began < 5
        engine.check()


def test_a_restarted_engine_is_found_again() -> None:
    """While it is down that is said; streams that were kept over its restart are not trusted."""
    with running() as dockerd:
        engine = dockerd.engine()
        engine.check()
        dockerd.kill()
        with pytest.raises(errors.UnfitError, match="daemon running") as raised:
            engine.check()
        assert raised.value.code == "DOCKER-DOWN"
        dockerd.start()
        engine.check()


def first_blob(path: str, body: bytes) -> bool:
    """Whether an answer is the layer, not the image's config."""
    return "/blobs/" in path and len(body) > 100_000


LIMIT = b'{"errors": [{"code": "TOOMANYREQUESTS", "message": "pull rate limit reached"}]}'
FAULTS: dict[str, Callable[[str, bytes], Fault | None]] = {
    "429 manifest": lambda path, _: Fault(429, LIMIT) if "/manifests/" in path else None,
    "429 blob": lambda path, body: Fault(429, LIMIT) if first_blob(path, body) else None,
    "503 blob": lambda path, body: Fault(503, b"no") if first_blob(path, body) else None,
    # Some engines ask for the rest of what was cut: it is cut at once.
    "cut": lambda path, body: (
        Fault(body=body, sent=99_999 if len(body) > 3_000_000 else 0)
        if first_blob(path, body)
        else None
    ),
    "flipped": lambda path, body: (
        Fault(body=body[:5000] + bytes([body[5000] ^ 1]) + body[5001:])
        if first_blob(path, body)
        else None
    ),
    "stalled": lambda path, body: (
        Fault(body=body, sent=99_999, silent=True) if first_blob(path, body) else None
    ),
}


@pytest.mark.parametrize(
    ("fault", "code", "tries"),
    [
        ("429 manifest", "REG-RATELIMIT", 3),
        ("429 blob", "REG-RATELIMIT", 3),
        ("503 blob", "REG-5XX", 3),
        ("cut", "REG-CUT", 3),
        ("flipped", "REG-DIGEST", 2),
        ("stalled", "REG-STALL", 2),
    ],
)
def test_a_spoilt_pull_says_its_true_cause(
    dockerd: Dockerd, front: Faults, fault: str, code: str, tries: int
) -> None:
    """Not `no such image`: the cause's code after its number of tries, and nothing is there."""
    name = fault.replace(" ", "-")
    unlike(dockerd, f"{front.behind.address}/{name}:1")
    dockerd.docker("push", f"{front.behind.address}/{name}:1")
    dockerd.docker("rmi", f"{front.behind.address}/{name}:1")
    front.fault = FAULTS[fault]
    stall_s = 2.0 if fault == "stalled" else 20.0  # the engine's own retry rests for five
    images = Images(dockerd.engine(patience=replace(QUICK, stall_s=stall_s)))
    began = time.monotonic()
    with pytest.raises(errors.ImageError) as raised:
        images.pull(f"{front.address}/{name}:1", silent, None)
    assert raised.value.code == code
    assert time.monotonic() - began < 30
    spoilt = [path for path in front.seen if ("/manifests/" if "man" in fault else "/b") in path]
    assert len(spoilt) >= tries
    assert images.find(f"{front.address}/{name}:1") is None


def test_a_blob_that_is_cut_once_comes_at_the_next_try(dockerd: Dockerd, front: Faults) -> None:
    """The pull ends well, with the image that was pushed, and shows its layers on the way."""
    image = unlike(dockerd, f"{front.behind.address}/once:1")
    dockerd.docker("push", f"{front.behind.address}/once:1")
    dockerd.docker("rmi", f"{front.behind.address}/once:1")
    cuts = iter([True])
    front.fault = lambda path, body: (
        Fault(body=body, sent=1000) if first_blob(path, body) and next(cuts, False) else None
    )
    seen: list[str] = []
    images = Images(dockerd.engine())
    found = images.pull(f"{front.address}/once:1", seen.append, None)
    assert found.id == image
    assert next(cuts, None) is None
    assert any("Download" in text for text in seen)


def test_digests_are_what_images_are_pulled_by(
    dockerd: Dockerd, engine: Engine, registry: Registry
) -> None:
    """A tag's digest from the registry; by it the old image comes after the tag has moved."""
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


def test_an_image_that_the_registry_lacks(engine: Engine, registry: Registry) -> None:
    """IMAGE-MISSING, for its digest as for itself."""
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
    image, lines, done = unlike(dockerd, name), [], threading.Event()

    def watch() -> None:
        while not done.is_set():
            for path in proc.files("cmdline"):
                try:
                    lines.append(path.read_bytes())
                except OSError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for none in (None, bad):
            with pytest.raises(errors.ImageError) as raised:
                images.push(name, silent, none)
            assert raised.value.code == "REG-AUTH"
        images.push(name, silent, good)
        images.remove(name)
        with pytest.raises(errors.ImageError) as raised:
            images.pull(name, silent, bad)
        assert raised.value.code == "REG-AUTH"
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


def test_a_build_says_what_it_does_and_why_it_fails(engine: Engine) -> None:
    """Its lines as they come and the id at the end; or IMAGE-BUILD with the last of them."""
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
    with pytest.raises(errors.ImageError, match="the reason why") as raised:
        images.build([context(bad)], "dlperf/bad:1", {}, {}, lines.append)
    assert raised.value.code == "IMAGE-BUILD"
    assert images.find("dlperf/bad:1") is None


@pytest.mark.parametrize("line", ["", 'LABEL dlperf.image="" dlperf.inputs=mine'])
def test_an_image_is_ours_by_its_label_and_not_by_its_tag(engine: Engine, line: str) -> None:
    """A build labels it, whatever its Dockerfile says; what others give the tag to is not ours."""
    images = Images(engine)
    recipe = ImageRecipe(
        Image(name="ours", base=f"docker.io/library/{IMAGE}"),
        f"sha256:{'1' * 64}",
        {"Dockerfile": line},
        {},
    )
    tag, inputs = str(recipe.tag), str(recipe.inputs)
    labels = {"dlperf.image": "ours", "dlperf.inputs": inputs}
    built = images.build([context(f"FROM {IMAGE}\n{line}\n")], tag, {}, labels, lambda _: None)
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


def test_a_saved_image_loads_as_the_same(dockerd: Dockerd, engine: Engine) -> None:
    """Removed in between, it is back with its id and its name."""
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
    assert images.find("carried:2") == replace(found)


def test_a_full_disk_is_named(registry: Registry, dockerd: Dockerd) -> None:
    """DISK-FULL, in the engine's own words with the path."""
    name = f"{registry.address}/big:1"
    unlike(dockerd, name)
    dockerd.docker("push", name)
    with running(disk_mib=10) as small:
        engine = small.engine()
        with pytest.raises(errors.UnfitError, match="no space left") as raised:
            Images(engine).pull(name, silent, None)
    assert raised.value.code == "DISK-FULL"


def test_patience_is_the_engines_by_default() -> None:
    """Ten seconds for an answer, two minutes without a byte."""
    assert (Patience().answer_s, Patience().stall_s) == (10.0, 120.0)
