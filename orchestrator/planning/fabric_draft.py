"""What an inventory should say of adapters, from what a machine says of its ports."""

import json
import re
from collections import Counter
from collections.abc import Sequence

from orchestrator.model.facts import Gid
from orchestrator.model.site import HcaPort, Topology
from orchestrator.probes.discovery import Discovered

_SCALAR = re.compile(r"[A-Za-z~/][A-Za-z0-9 ._/~+-]*[A-Za-z0-9]|[A-Za-z]")
_IPV4 = re.compile(r"[0-9]+(\.[0-9]+){3}")
_NO_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})
_NEAR = frozenset({"PIX", "PXB", "PHB"})


def settings(found: Discovered) -> dict[str, str]:
    """Return the inventory's settings of a node's adapters, as YAML by key."""
    used, _ = adapters(found)
    if not used:
        return {}
    rows = (
        f"{{name: {scalar(port.name)}, rate_gbps: {port.rate_gbps}, link_layer: {port.link_layer}}}"
        for port in used
    )
    said = {"hcas": f"[{', '.join(rows)}]"}
    index = gid_index(found.gids, [port.name for port in used])
    if used[0].link_layer == "Ethernet" and index is not None:
        said["roce"] = f"{{gid_index: {index}}}"
    return said


def adapters(found: Discovered) -> tuple[tuple[HcaPort, ...], tuple[str, ...]]:
    """Return the ports that training should use, and why others are left out.

    Active ones; of those the ones near a GPU, where the topology tells near from far; of one link
    layer, that of the greater bandwidth.
    """
    active = [port for port in found.ports if port.state == "Active"]
    out = [f"{port.name} is not active" for port in found.ports if port.state != "Active"]
    near = [port for port in active if _is_near(port.name, found.topology)]
    if near and len(near) < len(active):
        out += [f"{port.name} is far from every GPU" for port in active if port not in near]
        active = near
    speeds: Counter[str | None] = Counter()
    for port in active:
        speeds[port.link_layer] += int(port.rate_gbps or 0)
    if len(speeds) > 1:
        layer = speeds.most_common(1)[0][0]
        out += [f"{p.name} speaks {p.link_layer}" for p in active if p.link_layer != layer]
        active = [port for port in active if port.link_layer == layer]
    first = {port.name: port for port in reversed(active)}
    return tuple(first[name] for name in sorted(first, key=_by_number)), tuple(out)


def gid_index(gids: Sequence[Gid], hcas: Sequence[str]) -> int | None:
    """Return the lowest index at which each adapter has a routable RoCE v2 address, or None."""
    common: set[int] | None = None
    for hca in hcas:
        own = {
            gid.index
            for gid in gids
            if gid.hca == hca and gid.kind == "RoCE v2" and not gid.address.startswith("fe80:")
        }
        common = own if common is None else common & own
    return min(common) if common else None


def _is_near(hca: str, wires: Topology | None) -> bool:
    if wires is None:
        return False
    return any(wires.links.get(gpu, {}).get(hca) in _NEAR for gpu in wires.gpus)


def _by_number(name: str) -> tuple[str, int]:
    digits = re.search(r"(\d+)$", name)
    return (name[: digits.start()], int(digits[1])) if digits else (name, -1)


def scalar(value: str) -> str:
    """Return a text as strict YAML, quoted where it could mean anything else."""
    plain = _SCALAR.fullmatch(value) and value.casefold() not in _NO_WORDS
    return value if plain or _IPV4.fullmatch(value) else json.dumps(value, ensure_ascii=False)
