"""Rules about the health of a node's hardware. Each warns, but for an error of a GPU.

Sources of the bounds: Azure's and Meta's node health checks (two hours for Xids, no swap, the
governor), and the bounds from which ibqueryerrors reports a port's error counters.
"""

from collections.abc import Iterator, Sequence

from orchestrator import words
from orchestrator.model.facts import HcaHealth, HealthFacts, Silent, Xid
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding

XID_WINDOW_S = 2 * 3600
MOST_ERRORS = 10
MOST_SWAP_MIB = 1024
_RECOVERY = 154  # "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
# For which NVIDIA's Xid catalog (numbers to 172) asks for a reset, a reboot or a look at NVLinks or
# power cables, or Azure's node health checks refuse a node. The catalog names no action for 162 to
# 172: 167, 169, 171 and 172 share the words of 158, 62 and 48.
_URGENT = frozenset(
    {46, 48, 54, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 95, 109, 110, 119, 120}
    | {136, 140, *range(143, 152), 154, 155, 156, 158, 167, 169, 171, 172}
)


def health(node: Node, facts: HealthFacts | Silent | None) -> Iterator[Finding]:
    """Find what is wrong in kernel log, CPUs, swap and adapters; nothing where nodes are silent."""
    if facts is None or isinstance(facts, Silent):
        return
    yield from _xids(node, facts.xids or ())
    declared = {hca.name for hca in node.hcas}
    slow = {name: count for name, count in facts.governors.items() if name != "performance"}
    if slow:
        cpus = f"{sum(slow.values())} of {sum(facts.governors.values())} CPUs"
        named = ", ".join(f"{count} with {name}" for name, count in sorted(slow.items()))
        yield found("CPU-GOVERNOR", node.name, f"{cpus} are governed: {named}")
    if facts.swap_used_mib is not None and facts.swap_used_mib > MOST_SWAP_MIB:
        swap, needed = words.sizes(facts.swap_used_mib << 20, MOST_SWAP_MIB << 20)
        yield found("SWAP", node.name, f"{swap} of memory lie in swap", f"at most {needed}")
    for hca in facts.hcas:
        if hca.name in declared:
            yield from _hca(node, hca)


def _xids(node: Node, logged: Sequence[Xid]) -> list[Finding]:
    """Return one finding for each GPU or switch and number, errors first.

    A recovery that changed to None tells of a reset: what was logged before is no error any more.
    """
    recovered = {
        xid.bus_id: at
        for at, xid in enumerate(logged)
        if xid.number == _RECOVERY and xid.words.endswith("(None)")
    }
    groups: dict[tuple[bool, str, int], list[int]] = {}
    for at, xid in enumerate(logged):
        groups.setdefault((xid.of_switch, xid.bus_id, xid.number), []).append(at)
    findings = []
    for (_, bus_id, number), group in groups.items():
        since = [at for at in group if at > recovered.get(bus_id, -1)]
        if since or number != _RECOVERY:
            worst = max(since or group, key=lambda at: (logged[at].fatal is True, at))
            findings.append(_xid(node, logged[worst], is_recovered=not since))
    return sorted(findings, key=lambda finding: finding.severity)


def _xid(node: Node, xid: Xid, *, is_recovered: bool) -> Finding:
    """Return an error for a line that says Fatal, and for an urgent number of two hours."""
    is_urgent = xid.number in _URGENT and not xid.of_switch and xid.fatal is None
    is_fresh = is_urgent and (xid.age_s or 0) <= XID_WINDOW_S
    is_error = not is_recovered and (xid.fatal or is_fresh)
    since = "the driver asks for no recovery" if is_recovered else "no reset or reboot logged"
    ago = "its time is not logged"
    if xid.age_s is not None:
        ago = f"{words.count(round(xid.age_s / 60), 'minute')} ago"
    return found(
        "NVSWITCH-SXID" if xid.of_switch else "GPU-XID",
        node.name,
        f"{xid.words[:200]}; {since} since ({ago})",
        f"no fatal error since the node started, no other within {XID_WINDOW_S // 3600} hours",
        severity="error" if is_error else "warning",
    )


def _hca(node: Node, hca: HcaHealth) -> Iterator[Finding]:
    narrow = hca.width is not None and hca.most_width is not None and hca.width < hca.most_width
    slow = hca.speed is not None and hca.most_speed is not None and hca.speed < hca.most_speed
    if narrow or slow:
        code = "PCIE-WIDTH" if narrow else "PCIE-SPEED"
        seen = f"{hca.name} uses {hca.width} PCIe lanes at {hca.speed} GT/s"
        yield found(code, node.name, seen, f"{hca.most_width} at {hca.most_speed} GT/s")
    many = [f"{name} {count}" for name, count in hca.counters.items() if count > MOST_ERRORS]
    if many:
        needed = f"at most {MOST_ERRORS} of each since they were cleared"
        yield found("IB-ERRORS", node.name, f"{hca.name}: {', '.join(many)}", needed)
