"""An image for eight nodes from a registry that is slow, beside one pull of its base."""

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.benchmarks.table import Row, lasting_s, must, spread
from tests.cluster import Cluster, cluster, registry
from tests.cluster.place import REGISTRY
from tests.people import Desk

HERE = Path(__file__).parent
NODES = 8
RATE = "16mbit"  # two million bytes a second, as of a registry across an ocean
BASE = f"{REGISTRY}/nvidia/pytorch:20.03-py3"


def rows(folder: Path) -> Iterator[Row]:
    """The pull on a node that has nothing, then the provisioning of all, which have nothing."""
    with cluster(NODES) as nodes:
        shutil.copytree(HERE / "instant" / "place", folder)
        inventory = folder / "instant.yaml"
        text = nodes.cpu_inventory.read_text()
        inventory.write_text(text.replace("images: [reference-rn50]", "images: [instant]"))
        desk, env = Desk(nodes, folder), {"PYTHONPATH": f"{HERE.parents[1]}:{HERE / 'instant'}"}
        slow(nodes)
        peer_s = lasting_s(lambda: pulled(nodes))
        one = sent(nodes)
        ours_s = lasting_s(
            lambda: must(
                desk.run, "provision", str(inventory), "--lock", "--image", "instant", **env
            )
        )
        ours = sent(nodes) - one
        least_s = unpacked_s(nodes)
        first, everything = nodes.node(0), "docker images --quiet | xargs -r docker rmi --force"
        for node in nodes.nodes:
            node.must(everything)
        first.must(registry.STAND_IN)
        first.must("docker run --detach --name registry --network host registry:2")
        place = f"{first.address}:5000"
        inventory.write_text(
            inventory.read_text().replace("registry: {", f"registry: {{push: '{place}', ")
        )
        pushed_s = lasting_s(
            lambda: must(desk.run, "provision", str(inventory), "--image", "instant", **env)
        )
    print(f"the registry sent {one >> 20} MiB for one pull, {ours >> 20} MiB for all {NODES} nodes")
    print(
        f"{NODES - 1} nodes load the image from files of their own at once in {least_s:.2f} s:"
        f" a ratio of {(peer_s + least_s) / peer_s:.2f} if nothing else took any time"
    )
    spread("image from a slow origin", [ours_s], [peer_s])
    yield Row(f"image on {NODES} nodes, slow origin", ours_s, "one docker pull", peer_s, 1.3)
    name = f"the same, by a registry on node 1 of {NODES}"
    yield Row(name, pushed_s, "one docker pull", peer_s, 1.25)


def pulled(nodes: Cluster) -> None:
    """Pull the base on the last node, and forget it."""
    nodes.node(NODES - 1).must(f"docker pull -q {BASE}", timeout_s=600)
    nodes.node(NODES - 1).must(f"docker rmi {BASE}")


def unpacked_s(nodes: Cluster) -> float:
    """What all nodes but the first need to unpack the image at once, all on one machine."""
    first, *others = nodes.nodes
    tag = first.must("docker images --format '{{.Repository}}:{{.Tag}}' 'dlperf/*'").strip()
    first.must(f"docker save {tag} >/tmp/image.tar")
    for node in others:
        node.must(f"docker rmi {tag}")
        shutil.copy(first.folder / "tmp" / "image.tar", node.folder / "tmp")
    with ThreadPoolExecutor(len(others)) as pool:

        def load() -> None:
            line = "docker load --quiet --input /tmp/image.tar"
            list(pool.map(lambda node: node.must(line, timeout_s=600), others))

        return lasting_s(load)


def slow(nodes: Cluster) -> None:
    """Have what the registry sends be slow, and nothing else."""
    port = REGISTRY.rpartition(":")[2]
    for words in (
        "qdisc add dev br0 root handle 1: htb default 1",
        "class add dev br0 parent 1: classid 1:1 htb rate 10gbit quantum 200000",
        f"class add dev br0 parent 1: classid 1:2 htb rate {RATE} quantum 20000",
        f"filter add dev br0 parent 1: protocol ip u32 match ip sport {port} 0xffff flowid 1:2",
    ):
        done = nodes.run("tc", *words.split())
        assert done.returncode == 0, done.stderr


def sent(nodes: Cluster) -> int:
    """Bytes that the registry has sent since it is slow."""
    shown = nodes.run("tc", "-s", "class", "show", "dev", "br0", "classid", "1:2").stdout
    (count,) = re.findall(r"Sent (\d+) bytes", shown)
    return int(count)
