"""Rules about RDMA over Ethernet: is there an address where NCCL will look for it?"""

from collections.abc import Iterator

from orchestrator.model.facts import Gid, Silent
from orchestrator.model.node import Hca, Node
from orchestrator.model.site import Finding

_ROUTABLE = "RoCE v2"


def gids(node: Node, facts: tuple[Gid, ...] | Silent | None) -> Iterator[Finding]:
    """Adapters on Ethernet without a RoCE v2 address, or without one at the inventory's index."""
    if facts is None:
        return
    if isinstance(facts, Silent):
        yield _finding(node, facts.message or f"no list of GIDs ({facts.code})", "a list of GIDs")
        return
    for hca in node.hcas:
        if hca.link_layer == "Ethernet":
            yield from _of(node, hca, [gid for gid in facts if gid.hca == hca.name])


def _of(node: Node, hca: Hca, own: list[Gid]) -> Iterator[Finding]:
    index = node.roce.gid_index if node.roce else None
    at = [gid for gid in own if gid.index == index]
    wanted = at if index is not None else own
    if any(gid.kind == _ROUTABLE and not _is_link_local(gid) for gid in wanted):
        return
    if index is None:
        seen = f"{hca.name} has no routable GID of {_ROUTABLE} among {len(own)}"
        yield _finding(node, seen, "one, which an address of its interface makes")
        return
    there = ", ".join(f"{gid.index} {gid.kind} {gid.address}" for gid in own) or "none at all"
    kinds = ["link-local" if gid.kind == _ROUTABLE else gid.kind for gid in at]
    what = f"is {kinds[0]}" if kinds else "is empty"
    seen = f"{hca.name}: GID {index} {what}; there are {there}"
    yield _finding(node, seen, f"{_ROUTABLE} at gid_index {index}")


def _is_link_local(gid: Gid) -> bool:
    """Such an address reaches the adapter's own subnet at most; NCCL times out on it.

    Source: github NVIDIA/nccl issue #769.
    """
    return gid.address.startswith("fe80:")


def _finding(node: Node, seen: str, expected: str) -> Finding:
    fix = "give the adapter's interface an address, or correct `roce: {gid_index: ...}`"
    return Finding("error", "ROCE-GID", node.name, seen, expected, fix)
