"""Data sets of nodes: who may read them, and who prepares them while a sweep wants to begin."""

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


@pytest.mark.parametrize(
    "folder",
    ["/data/image", pytest.param("/data/image/train/n01440764", marks=pytest.mark.long)],
)
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


@pytest.mark.parametrize(
    "start",
    [
        "DLPERF_TASK={task} setsid -f sleep 120 >/dev/null 2>&1 </dev/null",
        "docker run -d --network host --label dlperf.sweep=data --env DLPERF_TASK={task}"
        " --entrypoint sleep $(docker images -q dlperf/ngc-pytorch-20.03) 120",
    ],
)
def test_a_data_set_that_is_being_prepared_is_named(desk: Desk, start: str) -> None:
    """PREPARING, also of work that nobody watches, in a container or not; and what to do."""
    task = "dlp-data-imagenet-vs002-a1-r0"
    node = desk.cluster.node(1)
    node.must(start.format(task=task))
    try:
        said = desk.must("sweep", desk.playbook("quick", QUICK), *desk.on(), code=5).stderr
        assert "ERROR PREPARING node=vs002" in said
        assert "data set imagenet is being prepared on the node" in said
        assert "`dlperf-orch data prepare imagenet`" in said
    finally:
        node.must(f"kill -KILL $(grep -lszx DLPERF_TASK={task} /proc/[0-9]*/environ | cut -d/ -f3)")
        node.must("docker rm -f $(docker ps -aq --filter label=dlperf.sweep=data) || true")
