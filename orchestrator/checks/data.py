"""Rules about data sets: present, readable, and the same on every node."""

from collections.abc import Iterator, Mapping

from orchestrator.checks.nodes import deviants
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import DataDigest, DataState, Finding
from orchestrator.probes import first_look

# ImageNet's training set of 2012, as PyTorch's and DALI's readers count it.
IMAGENET_FILES, IMAGENET_FOLDERS = 1_281_167, 1000


def states(node: Node, data: Mapping[str, DataState], where: str = "") -> Iterator[Finding]:
    """Find data sets that cannot be read.

    Args:
        data: their states by name.
        where: they were looked at, before the path.
    """
    confined = " without special rights, as in a container" if node.has_engine else ""
    for name, state in data.items():
        path = node.data.get(name, "?")
        if state == "hung":
            yield found(
                "MOUNT-HUNG",
                node.name,
                f"{where}{path}: no answer in {first_look.LIMIT_S} s",
                f"data set {name}",
            )
        elif state != "present":
            yield found(
                "DATA-MISSING",
                node.name,
                f"{where}{path}: {state}",
                f"data set {name}, readable for user {node.user}{confined}",
                f"`find {path} ! -perm -o+r` lists what others cannot read; chmod -R o+rX {path}"
                if state == "unreadable"
                else "put the data set there, or correct the inventory",
            )


def digests(name: str, by_node: Mapping[str, DataDigest]) -> Iterator[Finding]:
    """Nodes whose data set differs from most nodes', or is not all of ImageNet.

    Args:
        by_node: digests by node name, in rank order.
    """
    for odd in deviants({node: _content(digest) for node, digest in by_node.items()}):
        yield found(
            "DATA-DIFF",
            odd.node,
            f"{by_node[odd.node].path}: {odd.seen}",
            f"{odd.expected}",
            f"copy data set {name} again, with rsync --checksum",
        )
    for node, digest in by_node.items():
        counted = (digest.train_files, digest.train_folders)
        whole = (None, IMAGENET_FILES), (None, IMAGENET_FOLDERS)
        if _is_imagenet(name) and not all(
            count in allowed for count, allowed in zip(counted, whole, strict=True)
        ):
            yield found(
                "DATA-INCOMPLETE",
                node,
                f"{digest.train_files} files in {digest.train_folders} folders"
                f" of {digest.path}/train",
                f"{IMAGENET_FILES} in {IMAGENET_FOLDERS}",
            )


def _is_imagenet(name: str) -> bool:
    """Return True for ImageNet as single image files, False for record files."""
    return "imagenet" in name.casefold() and not name.endswith("record")


def _content(digest: DataDigest) -> str:
    return f"{digest.files} files, {digest.size_bytes} bytes, digest {digest.digest[:16]}"
