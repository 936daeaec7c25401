"""Data sets of nodes: who may read them, and who prepares them while a sweep wants to begin."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.cluster import Node
from tests.people import QUICK, Desk

pytestmark = pytest.mark.cluster


@contextlib.contextmanager
def private(node: Node, folder: str) -> Iterator[None]:
    """Give a folder to a user that no container has, for that user alone, within the block."""
    node.must(f"chown 1234:1234 {folder} && chmod 700 {folder}")
    try:
        yield
    finally:
        node.must(f"chown 0:0 {folder} && chmod 755 {folder}")


def test_data_are_read_as_a_container_reads_them(desk: Desk) -> None:
    """Provision, data check and sweep refuse what would fail inside; nothing is started.

    On one node a container's user may not read them, on another a link leads out of the mount.
    """
    provision = ("provision", str(desk.cluster.inventory), "--lock")
    linked = desk.cluster.node(2)
    linked.must("mv /data/image/val /data/elsewhere && ln -s /data/elsewhere /data/image/val")
    try:
        with private(desk.cluster.node(1), "/data/image"):
            said = desk.must(*provision, code=5).stdout
            assert "in a container: /data/image: unreadable" in said
            for words in (
                provision,
                ("data", "check", "imagenet", *desk.on()),
                ("sweep", desk.playbook("quick", QUICK), *desk.on()),
            ):
                done = desk.must(*words, code=5)
                whole = done.stdout + done.stderr
                assert "DATA-MISSING" in whole
                assert "readable for user root without special rights, as in a container" in whole
            assert not desk.left()
    finally:
        linked.must("rm /data/image/val && mv /data/elsewhere /data/image/val")
    desk.must(*provision)


def test_a_data_set_that_is_being_prepared_is_named(desk: Desk) -> None:
    """PREPARING, also of work that nobody watches, in a container or not; and what to do."""
    task = "DLPERF_TASK=dlp-data-imagenet-vs00{}-a1-r0"
    first, second = desk.cluster.nodes[:2]
    first.must(
        f"docker run -d --network host --label dlperf.sweep=data --env {task.format(1)}"
        " --entrypoint sleep $(docker images -q dlperf/ngc-pytorch-20.03) 120"
    )
    second.must(f"{task.format(2)} setsid -f sleep 120 >/dev/null 2>&1 </dev/null")
    try:
        said = desk.must("sweep", desk.playbook("quick", QUICK), *desk.on(), code=5).stderr
        assert "ERROR PREPARING node=vs[001-002]" in said
        assert "data set imagenet is being prepared on the node" in said
        assert "`dlperf-orch data prepare imagenet`" in said
    finally:
        second.must(f"kill -KILL $(grep -lszx {task.format(2)} /proc/[0-9]*/environ | cut -d/ -f3)")
        first.must("docker rm -f $(docker ps -aq --filter label=dlperf.sweep=data)")
