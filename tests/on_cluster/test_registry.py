"""Where images come from on the virtual cluster: a registry that wants a login, and a bundle."""

import base64
import json
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.provisioning import recipes
from tests import commands, processes
from tests.cluster import Cluster, Node, registry
from tests.docs.pages import ROOT, blocks
from tests.people import Desk, holds, own_id
from tests.processes import wait_for

pytestmark = pytest.mark.cluster

PLACE = "10.11.0.1:5001"
USER, SECRET = "bench", "canary-sings-4242-in-no-file"
# perl -e 'print crypt("canary-sings-4242-in-no-file", q($2y$05$DLPerfRegistryCanary00u))'
HTPASSWD = f"{USER}:$2y$05$DLPerfRegistryCanary0uV2yuerHFD.HcCS0f6UgO.MCMtHgeg5W\n"
CANARIES = (SECRET, base64.b64encode(f"{USER}:{SECRET}".encode()).decode())
MIRROR = "registry: {mirror: '10.11.0.1:5000'}"
LOGIN = f"registry: {{mirror: '{PLACE}', push: '{PLACE}', user: {USER}"


@pytest.fixture(scope="module")
def guarded(four: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A registry of the same images that lets in who knows the secret; where it keeps things."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "htpasswd").write_text(HTPASSWD)
    shutil.copytree(four.folder / "registry", folder / "registry")
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
        "auth": {"htpasswd": {"realm": "guarded", "path": str(folder / "htpasswd")}},
        "http": {"addr": PLACE},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    argv = ("docker-registry", "serve", str(folder / "settings.json"))
    process = subprocess.Popen(
        [*four.place.inside(), *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: PLACE in four.run("ss", "-Htln").stdout, "the registry listens")
    yield folder
    process.kill()
    process.wait()


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Every command line that any process of this machine has within the block."""
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            for path in processes.files("cmdline"):
                try:
                    seen.add(path.read_bytes())
                except OSError:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def holding(*folders: Path) -> list[str]:
    """Files that hold the secret or its usual disguise; not what images are made of."""
    words = [word for canary in CANARIES for word in ("-e", canary)]
    skipped = [f"--exclude-dir={name}" for name in ("overlay2", "registry", "cache")]
    found = commands.run(["grep", "-rlaF", "-D", "skip", *skipped, *words, *map(str, folders)])
    return found.stdout.splitlines()


@pytest.mark.usefixtures("guarded")
def test_a_registry_opens_to_the_right_secret_alone(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A wrong one is REG-AUTH at once, and shown nowhere; a file must be its user's alone."""
    inventory = str(desk.inventory(**{MIRROR: LOGIN + "}"}))
    words = ("provision", inventory, "--lock")
    done = desk.must(*words, DLPERF_REGISTRY_SECRET="wrong-canary", code=5)
    assert "ERROR REG-AUTH node=vs001" in done.stderr
    assert "wrong-canary" not in done.stdout + done.stderr
    desk.must(*words, code=2)
    secret = tmp_path_factory.mktemp("secret") / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o644)
    desk.inventory(**{MIRROR: f"{LOGIN}, secret_file: {secret}}}"})
    done = desk.must(*words, code=6)
    assert "ERROR REG-SECRET" in done.stderr
    assert f"chmod 600 {secret}" in done.stderr
    secret.chmod(0o600)
    desk.must(*words)
    assert holding(desk.folder, secret.parent) == [str(secret)]


def test_an_image_goes_through_the_registry_and_the_secret_nowhere(
    desk: Desk, guarded: Path
) -> None:
    """Pushed by the node that has it, pulled by the one that lacks it; the canary is not heard."""
    last, inventory = desk.cluster.node(3), str(desk.inventory(**{MIRROR: LOGIN + "}"}))
    named = "docker images --format '{{.Repository}}:{{.Tag}}'"
    tag = last.must(f"{named} 'dlperf/ngc-pytorch*'").strip()
    last.must(f"docker rmi {tag}")
    with command_lines() as seen:
        done = desk.run("provision", inventory, "-v", "--json", DLPERF_REGISTRY_SECRET=SECRET)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [(action["kind"], action["node"]) for action in said["actions"]] == [("carry", "vs004")]
    assert f"vs004: pull {PLACE}/dlperf/" in done.stderr
    log = (desk.state / "debug.log").read_text()
    for words in ("docker system dial-stdio", "vs004"):  # the commands that -v shows
        assert words in done.stderr
        assert words in log
    assert said["site"]["images"]["ngc-pytorch-20.03"]["tag"] == tag
    assert (guarded / "registry/docker/registry/v2/repositories/dlperf").exists()
    assert len(seen) > 10
    assert not [words for words in seen if any(canary.encode() in words for canary in CANARIES)]
    assert not any(canary in done.stdout + done.stderr for canary in CANARIES)
    assert not holding(desk.folder, desk.cluster.folder)
    desk.cluster.node(0).must(f"docker rmi {PLACE}/{tag}")


def test_the_lines_of_the_page_make_the_first_node_the_registry(desk: Desk) -> None:
    """Word for word, but for the address and the inventory: its image comes through there."""
    (text,) = (
        block.text for block in blocks(ROOT / "docs/images.md") if "registry:2" in block.text
    )
    first, last = desk.cluster.node(0), desk.cluster.node(3)
    inventory = desk.inventory(**{MIRROR: ""})
    here = text.replace("10.0.0.1", first.address).replace("inventory/v100x4.yaml", inventory.name)
    run, name, provision = here.splitlines()
    tag = prepared(desk)["tag"]
    last.must(f"docker rmi {tag}")
    first.must(registry.STAND_IN)
    try:
        first.must(run.removeprefix(f"ssh {first.address} "))
        wait_for(lambda: ":5000" in first.must("ss -Htln"), "the registry listens")
        subprocess.run(("sh", "-c", name), cwd=desk.folder, check=True)
        done = desk.must(*shlex.split(provision)[1:])
    finally:
        first.must("docker rm --force --volumes registry; docker rmi registry:2")
    assert f"vs004: pull {first.address}:5000/dlperf/" in done.stderr
    assert holds(last, prepared(desk))
    first.must(f"docker rmi {first.address}:5000/{tag}")


@contextmanager
def cut_from_the_world(cluster: Cluster) -> Iterator[None]:
    """Nobody reaches the registry and the web server within the block."""
    rules = [("INPUT", "-p", "tcp", "--dport", port, "-j", "REJECT") for port in ("5000", "8000")]
    for words in rules:
        assert cluster.run("iptables", "-w", "-I", *words).returncode == 0
    try:
        yield
    finally:
        for words in rules:
            assert cluster.run("iptables", "-w", "-D", *words).returncode == 0


def test_a_bundle_brings_everything_where_nothing_can_be_pulled(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Files alone make nodes fit again, from an empty state folder; damaged ones are refused."""
    bundle = desk.folder / "bundle"
    made = desk.json("bundle", str(desk.cluster.inventory), str(bundle))
    (image,) = made["bundle"]["images"]
    for node in desk.cluster.nodes:
        node.must(f"docker rmi {image['tag']}")
    far = Desk.made(desk.cluster, tmp_path_factory.mktemp("far"))
    inventory = far.inventory()
    (far.folder / "mine.lock.json").unlink()
    words = ("provision", str(inventory), "--bundle", str(bundle))
    with cut_from_the_world(desk.cluster):
        done = far.json(*words)
    kinds = {(action["kind"], action["node"]) for action in done["actions"]}
    assert kinds == {("load", node.name) for node in desk.cluster.nodes}
    assert done["site"]["images"]["ngc-pytorch-20.03"]["id"] == image["id"]
    with cut_from_the_world(desk.cluster):  # what the bundle said is locked now
        again = far.json("provision", str(inventory))
    assert again["actions"] == []
    with open(bundle / image["file"], "r+b") as file:
        file.seek(100_000)
        file.write(b"#")
    refused = far.must(*words, code=5)
    assert "ERROR BUNDLE-DAMAGED" in refused.stderr
    assert image["file"] in refused.stderr


def prepared(desk: Desk) -> Any:
    """The image of the cluster, as its site has it."""
    site = json.loads((desk.state / "sites/virtual.json").read_text())
    return site["images"]["ngc-pytorch-20.03"]


@contextmanager
def spoilt(nodes: Sequence[Node], record: Any, line: str) -> Iterator[str]:
    """Within the block, nodes have another image under our tag, with this line alone.

    Gives its id on the first of them. It is not made of ours: Docker 29 would then take ours, once
    loaded under the same tag, for its own parent, and never end to remove the other.
    """
    build = f"DOCKER_BUILDKIT=0 docker build -q -t {record['tag']} -"
    built = [node.must(f"printf 'FROM scratch\\n{line}\\n' | {build}").strip() for node in nodes]
    try:
        yield built[0]
    finally:
        for node, other in zip(nodes, built, strict=True):
            node.must(f"docker tag {own_id(record, node)} {record['tag']} && docker rmi {other}")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ENV SPOILT=1", "the node has {}, which was not built from these inputs"),
        ("LABEL dlperf.inputs={inputs}", "the node has {}; vs002 has {}"),
    ],
)
def test_another_image_under_our_tag_is_not_taken_for_ours(desk: Desk, line: str, why: str) -> None:
    """Without the label of our inputs, or with it and another id than ours, on the first node."""
    record = prepared(desk)
    first = desk.cluster.node(0)
    with spoilt([first], record, line.format(inputs=record["inputs_digest"])) as other:
        done = desk.json("provision", str(desk.cluster.inventory))
        (mended,) = done["actions"]
        assert (mended["kind"], mended["node"]) == ("carry", "vs001")
        second = own_id(record, desk.cluster.node(1))
        assert why.format(other[7:19], second[7:19]) in mended["reason"]
        assert done["site"]["images"]["ngc-pytorch-20.03"]["id"] == record["id"]
        assert all(holds(node, record) for node in desk.cluster.nodes)


def test_bundle_holds_the_image_that_was_prepared(desk: Desk) -> None:
    """From a node that has it under its tag; where none has, there is no bundle."""
    record, nodes = prepared(desk), desk.cluster.nodes
    words = ("bundle", str(desk.cluster.inventory))
    with spoilt(nodes[:1], record, "ENV SPOILT=1"):
        made = desk.json(*words, str(desk.folder / "one"))["bundle"]["images"][0]
        held = recipes.list_saved(desk.folder / "one" / made["file"])
        assert held[record["tag"]][1] == made["content"]
        assert made["id"] == own_id(record, nodes[1])
    with spoilt(nodes, record, "ENV SPOILT=1"):
        refused = desk.run(*words, str(desk.folder / "none"))
    assert refused.returncode == 5, refused.stderr
    assert f"ERROR IMAGE-MISSING: no node has {record['tag']} of id" in refused.stderr
    assert not (desk.folder / "none/bundle.json").exists()


def test_bundle_that_says_another_id_than_its_image_has_is_refused(desk: Desk) -> None:
    """All nodes agree on what was loaded, and yet it is not what the bundle promises."""
    folder = desk.folder / "bundle"
    image = desk.json("bundle", str(desk.cluster.inventory), str(folder))["bundle"]["images"][0]
    promised = f"sha256:{'0' * 64}"
    text = (folder / "bundle.json").read_text()
    for said in (image["id"], image["content"]):
        text = text.replace(said, promised)
    (folder / "bundle.json").write_text(text)
    done = desk.must("provision", str(desk.cluster.inventory), "--bundle", str(folder), code=5)
    assert "ERROR IMAGE-SKEW" in done.stderr
    record = prepared(desk)
    for node in desk.cluster.nodes:
        own = own_id(record, node)[7:19]
        assert f"{node.name}: the node has {own}; the bundle has {'0' * 12}" in done.stderr
