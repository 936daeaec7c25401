"""The inventories of a run, as a user would write them."""

from pathlib import Path

from tests.cluster.nodes import fingerprint
from tests.cluster.place import REGISTRY, Place, address

_GPUS = """\
  gpus: {count: 8, model: Tesla V100-SXM2-16GB}
  hcas: [{name: mlx5_0, rate_gbps: 100, link_layer: InfiniBand}]
  data:
    imagenet: /data/image
    imagenet_tfrecord: /data/tfrecords
    dali_idx: /data/dali_idx
    imagenet_ofrecord: /data/ofrecord
    wiki_ofrecord: /data/wiki
    gpt: /data/gpt
"""


def write(place: Place, nodes: tuple[str, ...]) -> None:
    """Write known_hosts and both inventories into the run's folder."""
    keys = {node: _host_key(place.own(node)) for node in nodes}
    known = "".join(f"{address(node)} {key}\n" for node, key in keys.items())
    (place.folder / "known_hosts").write_text(known)
    for path, name, image, hardware in (
        (place.folder / "virtual.yaml", "virtual", "ngc-pytorch-20.03", _GPUS),
        (place.folder / "cpu.yaml", "virtual-cpu", "reference-rn50", ""),
    ):
        entries = "".join(
            f"  - {{name: {node}, address: {address(node)}, host_key: '{fingerprint(key)}'}}\n"
            for node, key in keys.items()
        )
        path.write_text(_text(place, name, image, hardware) + entries)


def _text(place: Place, name: str, image: str, hardware: str) -> str:
    return f"""\
# Run {place.run} of the virtual cluster. What it says of GPUs and InfiniBand is replayed.
name: {name}
defaults:
  user: root
  transport: ssh
  runtime: docker
{hardware}  identity: {place.folder}/id_ed25519
  known_hosts: {place.folder}/known_hosts
  interface: ib0
container:
  shm_size: 1g
  ulimits: {{memlock: 8388608}}
registry: {{mirror: '{REGISTRY}'}}
images: [{image}]
nodes:
"""


def _host_key(own: Path) -> str:
    """Kind and key, as known_hosts has them."""
    words = (own / "etc/ssh/host_key.pub").read_text().split()
    return " ".join(words[:2])
