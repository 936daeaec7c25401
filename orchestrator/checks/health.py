"""Rules about the health of a node's hardware. Each warns, but for an error of a GPU.

Sources of the bounds: Azure's and Meta's node health checks (two hours for Xids, no swap, the
governor; a link that goes down five times a day), and the bounds from which ibqueryerrors
reports a port's error counters. Remedies of Xids: NVIDIA, "Analyzing Xid Errors with the Xid
Catalog" (numbers to 172, immediate actions), which names no action for 162 to 172: 167, 169, 171
and 172 are treated as 158, 62 and 48, whose words they share. Azure's node health checks refuse a
node for the numbers of _BY_AZURE too.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator import words
from orchestrator.model.facts import HcaHealth, HealthFacts, Silent, Xid
from orchestrator.model.findings import found
from orchestrator.model.node import Node
from orchestrator.model.site import Finding

XID_WINDOW_S = 2 * 3600
FLAPPING = 5
FLAP_WINDOW_S = 24 * 3600
MOST_ERRORS = 10
MOST_SWAP_MIB = 1024
_RECOVERY = 154  # "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_BY_AZURE = frozenset({56, 57, 58, 63, 65, 68, 69, 73, 80, 81, 92})
_RESTART = "run the program again; if it comes back with other programs, have the GPU checked"
_RESET = "reset the GPU (nvidia-smi --gpu-reset) or reboot the node; if it comes back, replace it"
_REBOOT = "reboot the node; if the GPU stays away, reseat or replace it"
_NVLINK = "check the NVLinks (nvidia-smi nvlink -s, -e), then reset all GPUs or reboot the node"
_REPLACE = "ask the vendor of the machine whether the GPU must be replaced"
_CABLE = "check the power cables of the GPU's board"
_WATCH = "nothing for now; look at the other Xids of this GPU"
_URGENT = frozenset({_RESET, _REBOOT, _NVLINK, _CABLE})
_CATALOG = (
    (_RESTART, (8, 11, 13, 25, 31, 32, 39, 40, 41, 60, *range(68, 73), 75, 76, 77, 80)),
    (_RESTART, (*range(82, 87), 88, 89, 94, *range(96, 106), *range(126, 136), 139)),
    (_WATCH, (37, 38, 43, 44, 45, 63, 66, 67, 92, 93, 106, 107, 121, 137, 141, 152, 153)),
    (_WATCH, (*range(159, 163), 166, 170)),
    (_RESET, (46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 154, 155, 156, 158, 167)),
    (_RESET, (169, 171, 172)),
    (_CABLE, (54,)),
    (_NVLINK, (74, *range(144, 151))),
    ("update the driver and the firmware", (78,)),
    (_REBOOT, (79, 151)),
    (_REPLACE, (142, 157, 163, 164, 165, 168)),
)
_FIXES = {number: fix for fix, numbers in _CATALOG for number in numbers}


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
    """Count a line that says Fatal since the node's start, an urgent number for two hours."""
    unknown = f"unknown Xid {xid.number}: see the driver's documentation of Xid errors"
    fix = _FIXES.get(xid.number, unknown)
    is_urgent = fix in _URGENT or xid.number in _BY_AZURE
    is_fresh = is_urgent and xid.fatal is None and (xid.age_s or 0) <= XID_WINDOW_S
    is_error = not is_recovered and (xid.fatal or (is_fresh and not xid.of_switch))
    fix = "" if xid.of_switch else fix
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
