"""Data sets that root of a node may read, and root of a container may not."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.cluster import Node
from tests.virtual import QUICK, Desk

pytestmark = pytest.mark.cluster


@contextlib.contextmanager
def private(node: Node, folder: str) -> Iterator[None]:
    """Give a folder to a user that no container has, for that user alone, within the block."""
    node.must(f"chown 1234:1234 {folder} && chmod 700 {folder}")
    try:
        yield
    finally:
        node.must(f"chown 0:0 {folder} && chmod 755 {folder}")


@pytest.mark.parametrize("folder", ["/data/image", "/data/image/train/n01440764"])
def test_data_are_read_as_a_container_reads_them(desk: Desk, folder: str) -> None:
    """Provision, data check and sweep refuse what would fail inside; nothing is started."""
    with private(desk.cluster.node(1), folder):
        for words in (
            ("provision", str(desk.cluster.inventory), "--lock"),
            ("data", "check", "imagenet", *desk.on()),
            ("sweep", desk.playbook("quick", QUICK), *desk.on()),
        ):
            said = desk.must(*words, code=5)
            whole = said.stdout + said.stderr
            assert "DATA-MISSING" in whole
            assert "/data/image: unreadable" in whole
            assert "readable for user root without special rights, as in a container" in whole
        assert not desk.left()
    desk.must("provision", str(desk.cluster.inventory), "--lock")


def test_a_link_out_of_a_data_set_leads_nowhere_in_a_container(desk: Desk) -> None:
    """What the node itself can read is looked at in a container too, by provisioning."""
    node = desk.cluster.node(1)
    node.must("mv /data/image/val /data/elsewhere && ln -s /data/elsewhere /data/image/val")
    try:
        said = desk.must("provision", str(desk.cluster.inventory), "--lock", code=5).stdout
        assert "in a container: /data/image: unreadable" in said
    finally:
        node.must("rm /data/image/val && mv /data/elsewhere /data/image/val")
    desk.must("provision", str(desk.cluster.inventory), "--lock")
