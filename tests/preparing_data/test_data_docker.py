"""Data sets that a program of upstream's makes, in containers of a real engine."""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.inputs.sites import VERSION
from orchestrator.model.shapes import shape
from orchestrator.model.site import ImageRecord, Site
from tests import commands
from tests.conftest import PROGRAM, Place
from tests.dockerd import Dockerd, tiny_image
from tests.small_sets import tfrecords

pytestmark = [pytest.mark.cluster, pytest.mark.daemons, pytest.mark.usefixtures("machine_alone")]
CODE = "/workspace/rn50v15_tf"
# It has the interface of NVIDIA's script and leaves what that leaves: a file of the same name.
INDEX = """\
for file in "$1"/train-* "$1"/validation-*; do
    echo "Creating index $2/${file##*/} for $file"
    echo "0 1000" >"$2/${file##*/}"
done
"""
IMAGE = f"""\
name: ngc-tensorflow-20.03
base: registry.example/nvidia/tensorflow:20.03-tf1-py3
code: {CODE}
"""


def image(script: str) -> bytes:
    """The small image with upstream's script where the benchmark's code lies."""
    whole = io.BytesIO(tiny_image())
    with tarfile.open(fileobj=whole, mode="a", dereference=True) as tar:
        tar.add("/bin/dash", "bin/bash")
        entry = tarfile.TarInfo(f"{CODE[1:]}/utils/dali_index.sh")
        entry.size, entry.mode = len(script), 0o644
        tar.addfile(entry, io.BytesIO(script.encode()))
    return whole.getvalue()


@dataclass
class Node:
    """A node of this machine whose containers run on an engine of the test's own."""

    place: Place
    dockerd: Dockerd
    folder: Path

    def provide(self, script: str) -> None:
        """Its image, as if provisioned."""
        self.dockerd.docker("import", "-", "tf:1", data=image(script))
        record = ImageRecord(
            name="ngc-tensorflow-20.03",
            base="registry.example/nvidia/tensorflow:20.03-tf1-py3",
            base_digest="",
            id=self.dockerd.docker("image", "inspect", "-f", "{{.Id}}", "tf:1"),
            tag="tf:1",
            inputs_digest="",
            code="",
            python="",
            locked=False,
        )
        site = Site(VERSION, "solo", "", "", "", {}, (), {record.name: record})
        path = self.place.state / "sites/solo.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(shape(Site).dump_json(site))

    def prepare(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Prepare DALI's index."""
        command = ("data", "prepare", "dali_idx", "--inventory", "solo", "--json", *words)
        return commands.run(
            [*PROGRAM, *command],
            cwd=self.place.folder,
            env={**self.place.env(), "DOCKER_HOST": f"unix://{self.dockerd.socket}"},
            timeout_s=120,
        )

    def json(self, *words: str, code: int = 0) -> Any:
        """What that says, if it ends with this exit code."""
        done = self.prepare(*words)
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        return json.loads(done.stdout)

    def containers(self) -> list[str]:
        """Every container that there is."""
        return self.dockerd.docker("ps", "-a", "--format", "{{.Names}}").split()


@pytest.fixture
def node(place: Place, dockerd: Dockerd, tmp_path: Path) -> Iterator[Node]:
    """One with TFRecords, and a path for the index."""
    made = Node(place, dockerd, tmp_path / "data")
    tfrecords(made.folder / "tf")
    (place.folder / "inventory/solo.yaml").write_text(
        "name: solo\ndefaults: {transport: local}\n"
        f"nodes:\n  - {{name: node1, address: 127.0.0.1, folder: {made.folder}/work,"
        f" data: {{imagenet_tfrecord: {made.folder}/tf, dali_idx: {made.folder}/idx}}}}\n"
    )
    (place.folder / "images/ngc-tensorflow-20.03").mkdir(parents=True)
    (place.folder / "images/ngc-tensorflow-20.03/image.yaml").write_text(IMAGE)
    yield made
    left = made.containers()
    if left:
        dockerd.docker("rm", "-f", *left)


def test_dalis_index_is_made_in_a_container(node: Node) -> None:
    """One for each shard, by the command of the benchmark; sources are read-only; nothing stays."""
    node.provide(INDEX + 'echo x >"$1/more" && exit 1\n:\n')
    said = node.json()
    assert said["nodes"]["node1"]["state"] == "prepared"
    index = node.folder / "idx"
    assert sorted(path.name for path in index.iterdir()) == [
        *(f"train-{number:05}-of-00004" for number in range(4)),
        *("validation-00000-of-00002", "validation-00001-of-00002"),
    ]
    assert (index / "train-00003-of-00004").read_text() == "0 1000\n"
    assert (index / "train-00003-of-00004").stat().st_mode & 0o777 == 0o644
    assert (index / "train-00003-of-00004").stat().st_uid == os.getuid()
    assert len(list((node.folder / "tf").iterdir())) == 6
    assert node.containers() == []
    log = (node.place.state / "data/dali_idx/node1.log").read_text()
    assert "Creating index /data/dali_idx/train-00000-of-00004 for /data/tfrecords/train-" in log


def test_a_tool_that_fails_is_told_in_its_own_words(node: Node) -> None:
    """Its last line, and nothing gets the name; a mended one begins anew."""
    node.provide(
        "echo half >$2/train-00000-of-00004; echo 'tfrecord2idx: no such file' >&2; exit 9"
    )
    said = node.json(code=5)
    (error,) = said["errors"]
    assert (error["code"], error["node"]) == ("DATA-TOOL", "node1")
    assert error["message"] == "tool.sh ended with 9 (exited): tfrecord2idx: no such file"
    assert not (node.folder / "idx").exists()
    assert node.containers() == []


def test_a_tool_that_leaves_a_gap_is_found_out(node: Node) -> None:
    """Upstream's script goes on after a file that failed, and ends with 0."""
    node.provide(INDEX + 'rm "$2/train-00002-of-00004"\n')
    said = node.json(code=5)
    assert said["errors"][0]["code"] == "DATA-PARTS"
    assert "lacks train-00002-of-00004" in said["errors"][0]["message"]


def test_an_image_that_was_never_prepared_is_named(node: Node) -> None:
    """With the command that prepares it; nothing is written."""
    said = node.json(code=5)
    (finding,) = said["findings"]
    assert (finding["code"], finding["node"]) == ("IMAGE-MISSING", "node1")
    assert finding["fix"] == "dlperf-orch provision INVENTORY --image ngc-tensorflow-20.03"
    assert sorted(path.name for path in node.folder.iterdir()) == ["tf", "work"]
