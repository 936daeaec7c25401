"""Data sets on nodes that are only looked at: `data check`, and what `data` refuses."""

import os
import time

import pytest

from tests.hung_mount import FUSE, hung
from tests.preparing_data.nodes import Nodes
from tests.small_sets import parts
from tests.sshd import Sshd

pytestmark = pytest.mark.cluster
mounts = pytest.mark.skipif(
    os.getuid() != 0 or not FUSE.exists(), reason="a mount that hangs needs root and FUSE"
)
SOON_S = 60  # a count may take an hour


def test_sets_that_differ_are_told_by_node(nodes: Nodes) -> None:
    """By count, size and digest."""
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


def test_a_set_that_is_not_there_is_an_error_of_its_node(nodes: Nodes) -> None:
    """The others are looked at all the same."""
    nodes.write(wiki_ofrecord=f"{nodes.folder}/{{node}}")
    parts(nodes.folder / "node1", 32)
    said = nodes.json("check", "wiki_ofrecord", code=5)
    (finding,) = said["findings"]
    assert (finding["node"], finding["code"]) == ("node2", "DATA-MISSING")
    assert "missing" in finding["seen"]
    assert set(said["held"]) == {"node1"}


@mounts
def test_a_mount_that_hangs_is_told_and_not_counted(nodes: Nodes) -> None:
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
def test_nothing_is_prepared_from_or_to_a_mount_that_hangs(nodes: Nodes, where: str) -> None:
    """It is told within seconds, as that of its node."""
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
    ("words", "match"),
    [
        (("check", "imagnet"), "did you mean 'imagenet'"),
        (("check", "gpt"), "node node1 has no path for data set gpt; needed an absolute path"),
        (("prepare", "imagenet", "--from", "downloads"), "needed the absolute path of a folder"),
    ],
)
def test_what_is_asked_wrongly_is_exit_2(nodes: Nodes, words: tuple[str, ...], match: str) -> None:
    """Before any node is asked."""
    nodes.write(imagenet=f"{nodes.folder}/{{node}}")
    done = nodes.run(*words)
    assert done.returncode == 2
    assert match in done.stderr


def test_a_path_in_somebodys_home_is_refused(nodes: Nodes) -> None:
    """No shell expands it on the nodes."""
    nodes.write("node1", imagenet="~/imagenet")
    done = nodes.run("check", "imagenet")
    assert done.returncode == 2
    assert "node node1 has ~/imagenet for data set imagenet; needed an absolute path" in done.stderr


@pytest.mark.daemons
def test_a_node_that_cannot_be_reached_is_exit_4(nodes: Nodes, server: Sshd) -> None:
    """Its outcome is not known, and nothing is said of its data."""
    (nodes.place.folder / "inventory/pair.yaml").write_text(
        f"name: pair\ndefaults: {{known_hosts: {server.known_hosts}, runtime: process}}\n"
        f"nodes:\n  - {{name: vs001, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}, data: {{imagenet: /data/image}}}}\n"
    )
    server.stop()
    said = nodes.json("prepare", "imagenet", "--from", "/data/from", code=4)
    assert said["errors"][0]["node"] == "vs001"
