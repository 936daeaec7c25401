"""Rules about the health of a node's hardware. Each warns, but for an error of a GPU.

Sources of the bounds: Azure's and Meta's node health checks (two hours for Xids, no swap, the
governor; a link that goes down five times a day), and the defaults of ibqueryerrors, at which
error counters of a port are told.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator import words
from orchestrator.checks import xids
from orchestrator.model.facts import HcaHealth, HealthFacts, Silent, Xid
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding

XID_WINDOW_S = 2 * 3600
FLAPPING = 5
FLAP_WINDOW_S = 24 * 3600
MOST_ERRORS = 10
MOST_SWAP_MIB = 1024


def health(node: Node, facts: HealthFacts | Silent | None) -> Iterator[Finding]:
    """Yield findings about kernel log, CPUs, swap and adapters; none where the node is silent."""
    if facts is None or isinstance(facts, Silent):
        return
    yield from _xids(node, facts.xids or ())
    declared = {hca.name for hca in node.hcas}
    spare = {hca.name for hca in facts.hcas} - declared
    late = [name for name, age_s in facts.link_downs or () if age_s <= FLAP_WINDOW_S]
    downs = Counter(name for name in late if name not in spare).most_common()
    often = [f"{name} {words.count(n, 'time')}" for name, n in downs if n >= FLAPPING]
    if often:
        seen = f"links went down within {FLAP_WINDOW_S // 3600} hours: {', '.join(often)}"
        yield found("LINK-FLAPS", node.name, seen, f"fewer than {FLAPPING} times each")
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
        if xid.number == xids.RECOVERY and xid.words.endswith("(None)")
    }
    groups: dict[tuple[bool, str, int], list[int]] = {}
    for at, xid in enumerate(logged):
        groups.setdefault((xid.of_switch, xid.bus_id, xid.number), []).append(at)
    findings = []
    for (_, bus_id, number), group in groups.items():
        since = [at for at in group if at > recovered.get(bus_id, -1)]
        if since or number != xids.RECOVERY:
            worst = max(since or group, key=lambda at: (logged[at].fatal is True, at))
            findings.append(_xid(node, logged[worst], is_recovered=not since))
    return sorted(findings, key=lambda finding: finding.severity)


def _xid(node: Node, xid: Xid, *, is_recovered: bool) -> Finding:
    """Count a line that says Fatal since the node's start, an urgent number for two hours."""
    meaning, fix, is_urgent = xids.explain(xid.number)
    is_fresh = is_urgent and xid.fatal is None and (xid.age_s or 0) <= XID_WINDOW_S
    is_error = not is_recovered and (xid.fatal or (is_fresh and not xid.of_switch))
    fix = "" if xid.of_switch else f"{meaning}: {fix}"
    if is_error and xid.fatal and fix:
        fix += "; after a reset alone, clear the kernel's log (dmesg -C)"
    since = "the driver asks for no recovery" if is_recovered else "no reset or reboot logged"
    ago = "its time is not logged" if xid.age_s is None else f"{xid.age_s / 60:.0f} minutes ago"
    return found(
        "NVSWITCH-SXID" if xid.of_switch else "GPU-XID",
        node.name,
        f"{xid.words[:200]}; {since} since ({ago})",
        f"no fatal error since the node started, no other within {XID_WINDOW_S // 3600} hours",
        fix,
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
