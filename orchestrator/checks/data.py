"""Rules about data sets: present, readable, and the same on every node."""

from collections.abc import Iterator, Mapping

from orchestrator.checks.nodes import deviants
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import DataDigest, DataState, Finding
from orchestrator.probes.data import LIMIT_S

# ImageNet's training set of 2012, as PyTorch's and DALI's readers count it.
IMAGENET_FILES, IMAGENET_FOLDERS = 1_281_167, 1000


def states(node: Node, data: Mapping[str, DataState], where: str = "") -> Iterator[Finding]:
    """Find data sets that cannot be read; ``where`` stands before their paths."""
    confined = " without special rights, as in a container" if node.has_engine else ""
    for name, state in data.items():
        path = node.data.get(name, "?")
        if state == "hung":
            seen = f"{where}{path}: no answer in {LIMIT_S} s"
            yield found("MOUNT-HUNG", node.name, seen, f"data set {name}")
        elif state != "present":
            fix = "put the data set there, or correct the inventory"
            if state == "unreadable":
                fix = f"chmod -R o+rX {path}"
            needed = f"data set {name}, readable for user {node.user}{confined}"
            yield found("DATA-MISSING", node.name, f"{where}{path}: {state}", needed, fix)


def digests(name: str, by_node: Mapping[str, DataDigest]) -> Iterator[Finding]:
    """Find nodes whose data set differs from most nodes', or is not all of ImageNet."""
    contents = {
        node: f"{held.files} files, {held.size_bytes} bytes, digest {held.digest[:16]}"
        for node, held in by_node.items()
    }
    for node, seen, expected in deviants(contents):
        yield found("DATA-DIFF", node, f"{by_node[node].path}: {seen}", expected)
    if "imagenet" not in name.casefold() or name.endswith("record"):  # records have other counts
        return
    for node, held in by_node.items():
        files, folders = held.train_files, held.train_folders
        if files not in (None, IMAGENET_FILES) or folders not in (None, IMAGENET_FOLDERS):
            seen = f"{files} files in {folders} folders of {held.path}/train"
            yield found("DATA-INCOMPLETE", node, seen, f"{IMAGENET_FILES} in {IMAGENET_FOLDERS}")
