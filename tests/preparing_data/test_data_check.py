"""Data sets on nodes that are only looked at: `data check`, and what `data` refuses."""

import os
import time

import pytest

from tests.data_sets import FUSE, hung, parts
from tests.preparing_data.nodes import Nodes
from tests.sshd import Sshd

pytestmark = pytest.mark.cluster
mounts = pytest.mark.skipif(
    os.getuid() != 0 or not FUSE.exists(), reason="a mount that hangs needs root and FUSE"
)
SOON_S = 60  # a count may take an hour


def test_a_set_that_differs_is_named_by_its_node(nodes: Nodes) -> None:
    nodes.write("node1", "node2", "node3", wiki_ofrecord=f"{nodes.folder}/{{node}}")
    for name in ("node1", "node2", "node3"):
        parts(nodes.folder / name, 32)
    assert nodes.json("check", "wiki_ofrecord")["findings"] == []
    (nodes.folder / "node2/part-7").write_bytes(b"other")
    said = nodes.json("check", "wiki_ofrecord", code=5)
    (finding,) = said["findings"]
    assert (finding["code"], finding["node"]) == ("DATA-DIFF", "node2")
    shown = nodes.run("check", "wiki_ofrecord")
    assert "32 files" in shown.stdout
    only = nodes.json("check", "wiki_ofrecord", "--nodes", "!node2")
    assert set(only["held"]) == {"node1", "node3"}


def test_a_missing_set_is_an_error_of_its_node_alone(nodes: Nodes) -> None:
    nodes.write(wiki_ofrecord=f"{nodes.folder}/{{node}}")
    parts(nodes.folder / "node1", 32)
    said = nodes.json("check", "wiki_ofrecord", code=5)
    (finding,) = said["findings"]
    assert (finding["node"], finding["code"]) == ("node2", "DATA-MISSING")
    assert "missing" in finding["seen"]
    assert set(said["held"]) == {"node1"}


@mounts
def test_a_mount_that_hangs_is_named_and_not_counted(nodes: Nodes) -> None:
    """The first look is short; the other node is counted all the same."""
    nodes.write(wiki_ofrecord=f"{nodes.folder}/{{node}}")
    parts(nodes.folder / "node1", 32)
    with hung(nodes.folder / "node2"):
        began = time.monotonic()
        said = nodes.json("check", "wiki_ofrecord", code=5)
        assert time.monotonic() - began < SOON_S
    (finding,) = said["findings"]
    assert (finding["node"], finding["code"]) == ("node2", "MOUNT-HUNG")
    assert set(said["held"]) == {"node1"}


@mounts
@pytest.mark.parametrize("where", ["image", "from"])
def test_a_preparation_does_not_wait_for_a_mount_that_hangs(nodes: Nodes, where: str) -> None:
    nodes.write("node1", imagenet=f"{nodes.folder}/image")
    source = nodes.folder / "from"
    words = ("imagenet", "--from", str(source), "--dry-run")
    with hung(nodes.folder / where):
        began = time.monotonic()
        said = nodes.json("prepare", *words, code=5)
        assert time.monotonic() - began < SOON_S
    (error,) = said["errors"]
    assert (error["code"], error["node"]) == ("MOUNT-HUNG", "node1")
    assert f"{nodes.folder}/{where}: no answer in 10 s" in error["message"]


@pytest.mark.parametrize(
    ("words", "path", "match"),
    [
        (("check", "imagnet"), "/data", "did you mean 'imagenet'"),
        (("check", "gpt"), "/data", "node1 has no path for data set gpt; needed an absolute path"),
        (("prepare", "imagenet", "--from", "downloads"), "/data", "needed the absolute path of a"),
        # No shell expands it on the nodes.
        (
            ("check", "imagenet"),
            "~/set",
            "has ~/set for data set imagenet; needed an absolute path",
        ),
    ],
)
def test_a_wrong_request_is_refused_before_any_node_is_asked(
    nodes: Nodes, words: tuple[str, ...], path: str, match: str
) -> None:
    nodes.write(imagenet=path)
    done = nodes.run(*words)
    assert done.returncode == 2
    assert match in done.stderr


@pytest.mark.daemons
def test_a_node_that_cannot_be_reached_is_exit_4(nodes: Nodes, server: Sshd) -> None:
    """Nothing is reported about its data."""
    (nodes.place.folder / "inventory/pair.yaml").write_text(
        f"name: pair\ndefaults: {{known_hosts: {server.known_hosts}, runtime: process}}\n"
        f"nodes:\n  - {{name: vs001, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}, data: {{imagenet: /data/image}}}}\n"
    )
    server.stop()
    said = nodes.json("prepare", "imagenet", "--from", "/data/from", code=4)
    assert said["errors"][0]["node"] == "vs001"
