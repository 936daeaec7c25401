"""Images of all benchmarks on the virtual cluster: built, locked, bundled, and started."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster, Completed, Node, cluster, registry
from tests.on_cluster import forms
from tests.people import Desk, holds, own_id

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]

NAMES = ("ngc-tensorflow-20.03", "oneflow-0.1.9", "oneflow-gpt-0.3.5")
GPT_BASE = f"docker.io/library/{registry.GPT}"


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """Two nodes that the tests of this module share."""
    with cluster(2) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def first(two: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, Any]:
    """Where the images were prepared, and what was said."""
    desk = Desk.made(two, tmp_path_factory.mktemp("first"))
    return desk, desk.json("provision", str(two.inventory), "--lock", *asked(NAMES))


@pytest.fixture
def here(first: tuple[Desk, Any], tmp_path: Path) -> Iterator[Desk]:
    """A fresh working folder on the provisioned nodes."""
    fresh = Desk.made(first[0].cluster, tmp_path)
    fresh.adopt(first[0])
    yield fresh
    fresh.cluster.switch()


def asked(names: Sequence[str]) -> list[str]:
    """The words that ask for images."""
    return [word for name in names for word in ("--image", name)]


def lock(of: Cluster) -> Any:
    """The lock beside the cluster's inventory."""
    return json.loads(of.inventory.with_name("virtual.lock.json").read_text())


def on_both(desk: Desk, image: str, command: str, options: str = "") -> list[Completed]:
    """A command in a container of an image on both nodes at once; the answers in rank order."""
    site = json.loads((desk.state / "sites/virtual.json").read_text())
    settings = "--rm --network host --shm-size 256m -v /data:/data -w /root -v /root:/root"

    def run(node: Node) -> Completed:
        words = f"{settings} {options} {own_id(site['images'][image], node)} {command}"
        return node.sh(f"docker run {words}", timeout_s=120)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, desk.cluster.nodes))


def test_every_image_is_built_once_and_carried(first: tuple[Desk, Any]) -> None:
    """From a registry or from a file, with wheels and without; one id on both nodes."""
    desk, said = first
    kinds = [(action["image"], action["kind"], action["node"]) for action in said["actions"]]
    expected = [(name, "build", "vs001") for name in NAMES]
    expected += [(name, "carry", "vs002") for name in NAMES]
    assert sorted(kind for kind in kinds if kind[1] != "download") == sorted(expected)
    for name in NAMES:
        record = said["site"]["images"][name]
        assert all(holds(node, record) for node in desk.cluster.nodes)
        assert record["locked"]


def test_what_went_in_is_locked(first: tuple[Desk, Any]) -> None:
    """The base that came as a file by its configuration; every download by its sha256."""
    desk, said = first
    held = lock(desk.cluster)
    saved = desk.cluster.node(0).must(f"docker save {registry.GPT} | tar -xO manifest.json")
    loaded = re.sub(r"\W|blobs|sha256|json", "", json.loads(saved)[0]["Config"])
    assert held["images"][GPT_BASE] == f"sha256:{loaded}"
    assert said["site"]["images"]["oneflow-gpt-0.3.5"]["base_digest"] == f"sha256:{loaded}"
    served = desk.cluster.document["downloads"]
    assert isinstance(served, dict)
    urls = {served[name] for name in ("ofed_url", "wheel_019", "wheel_gpt", "archive_url")}
    assert urls == set(held["downloads"])


def test_second_provisioning_changes_nothing(here: Desk) -> None:
    """Not even where the downloads are gone: every node has every image."""
    before = lock(here.cluster)
    shutil.rmtree(here.state / "downloads")
    done = here.must("provision", str(here.cluster.inventory), *asked(NAMES))
    assert "Nothing to do: every node has every image." in done.stdout
    assert lock(here.cluster) == before


def test_file_of_another_image_is_refused(here: Desk) -> None:
    """The name in image.yaml is not in the file: both are said, and nothing is built."""
    path = here.folder / "images/oneflow-gpt-0.3.5/image.yaml"
    path.write_text(path.read_text().replace("cuda11.2:0.1", "cuda11.2:0.2"))
    done = here.must("provision", str(here.cluster.inventory), "--lock", *asked(NAMES[2:]), code=5)
    assert "ERROR ARCHIVE" in done.stderr + done.stdout
    assert f"holds {registry.GPT}; needed {GPT_BASE[:-1]}2" in done.stderr + done.stdout


def test_page_in_the_place_of_a_wheel_is_refused(here: Desk) -> None:
    """A server may answer with a page about itself; it is never locked as a wheel."""
    path = here.folder / "images/oneflow-0.1.9/image.yaml"
    served = here.cluster.document["downloads"]
    assert isinstance(served, dict)
    page = here.cluster.folder / "www" / "wheels" / "gone-1-py3-none-any.whl"
    page.write_text("<html>moved</html>")
    url = served["wheel_019"].rpartition("/")[0] + f"/{page.name}"
    path.write_text(path.read_text().replace(served["wheel_019"], url))
    done = here.must("provision", str(here.cluster.inventory), "--lock", *asked(NAMES[1:2]), code=5)
    assert "gave neither a tar archive nor a wheel" in done.stderr + done.stdout
    assert url not in lock(here.cluster)["downloads"]


def test_shipped_image_that_leaves_a_wheel_open_says_so(first: tuple[Desk, Any]) -> None:
    """Nobody could say where OneFlow 0.1.9 lies: the file, the place and what to write are told."""
    desk, _ = first
    shutil.rmtree(desk.folder / "images/oneflow-0.2.0")
    done = desk.must("provision", str(desk.cluster.inventory), *asked(["oneflow-0.2.0"]), code=2)
    assert "image.yaml:" in done.stderr
    assert (
        "left_open[0]: wheels is left to whoever uses this image; needed `wheels:` in a copy"
        in (done.stderr)
    )


def test_bundle_of_a_loaded_base_holds_the_image_alone(here: Desk) -> None:
    """The base's layers are in it already, and a wheel's + is in no path."""
    folder = here.folder / "bundle"
    words = ("bundle", str(here.cluster.inventory), str(folder), "--image", "oneflow-gpt-0.3.5")
    made = here.json(*words)["bundle"]
    assert [image["base"] for image in made["images"]] == [GPT_BASE]
    (part,) = made["downloads"]
    assert part["url"].endswith("oneflow-0.3.5%2Bcu112.git.0-py3-none-any.whl")
    assert part["file"].endswith("-oneflow-0.3.5_cu112.git.0-py3-none-any.whl")
    assert (folder / part["file"]).is_file()
    inventory = here.folder / "other.yaml"
    inventory.write_text(here.cluster.inventory.read_text())
    shutil.rmtree(here.state)
    done = here.must("provision", str(inventory), "--bundle", str(folder), *asked(NAMES[2:]))
    assert "Nothing to do" in done.stdout


@pytest.mark.parametrize(
    ("log", "program"),
    [
        (
            "tensorflow_fed7ba99_1n1g_train_r50_b1_fp32_1.log",
            "python3 {main} --mode=train --num_iter=45 --warmup_steps=10000 --use_cosine_lr"
            " --weight_init=fan_in --use_dali --data_idx_dir=/data/dali_idx",
        ),
        (
            "tensorflow_fed7ba99_1n2g_r50_b1_fp32-benchmark_1.log",
            "mpiexec --allow-run-as-root -np 2 python3 {main} --mode=training_benchmark"
            " --num_iter 25 --warmup_steps 5",
        ),
    ],
)
def test_tensorflow_prints_what_the_real_program_prints(here: Desk, log: str, program: str) -> None:
    """In both modes, line by line, but for numbers and paths.

    Each rank prints one line itself, whose place among those of rank 0 is chance: it is counted.
    """
    of_each_rank = "Using step learning rate schedule"
    common = "--iter_unit=batch --batch_size=1 --data_format=NHWC --data_dir=/data/tfrecords"
    line = (
        f"{program.format(main='/workspace/rn50v15_tf/main.py')} {common} --results_dir=./results"
    )
    for answer in on_both(here, NAMES[0], line, "-w /tmp"):
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.count(of_each_rank) == forms.text_of(log).count(of_each_rank)
        _, header, rest = answer.stdout.replace(f"{of_each_rank}\n", "").partition("DLL ")
        recorded = forms.text_of(log).replace(f"{of_each_rank}\n", "")
        assert forms.of(header + rest) == forms.of(recorded)


def test_ssh_server_of_an_image_brings_no_keys(here: Desk) -> None:
    """A gang has its own: whoever has the image has none of them."""
    for answer in on_both(here, NAMES[0], "sh -c 'ls /etc/ssh; ls -d /run/sshd'"):
        assert answer.returncode == 0, answer.stderr
        assert "sshd_config" in answer.stdout
        assert "ssh_host_" not in answer.stdout
