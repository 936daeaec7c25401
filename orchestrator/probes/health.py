"""Health of a node's hardware: kernel log, CPU governors, swap, adapters."""

import re
from collections.abc import Iterator, Sequence

from orchestrator import errors
from orchestrator.model.health import HcaHealth, HealthFacts, LinkDown, Xid
from orchestrator.probes import Probe

COUNTERS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors")
# $1: sudo, or nothing. One line a fact; what cannot be read is not there.
SCRIPT = r"""
say() { printf '%s\n' "$*"; }
cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort | uniq -c |
    while read -r count name; do say governor "$name" "$count"; done
sed -n 's/^\(SwapTotal\|SwapFree\): *\([0-9]*\) kB/\1 \2/p' /proc/meminfo
read -r uptime _ </proc/uptime && say uptime "$uptime"
# A printf that is a program of its own, as of mksh, is given no log of 128 KiB.
[ "$(command -v printf)" = printf ] &&
    { log=$(dmesg 2>/dev/null) || log=$([ -z "$1" ] || sudo -n dmesg 2>/dev/null); } &&
    [ -n "$log" ] && {
    say kernel_log
    printf '%s\n' "$log" | grep -E 'NVRM: (Xid |GPU .*fallen off)|nvidia-nvswitch.*: SXid ' |
        tail -n 5000 | sed 's/^/kernel /'
    printf '%s\n' "$log" | grep -iE 'link (is )?down$' | tail -n 1000 | sed 's/^/kernel /'
}
for path in /sys/class/infiniband/*; do
    [ -d "$path/device" ] || continue
    name=${path##*/}
    for fact in current_link_width max_link_width current_link_speed max_link_speed; do
        read -r value 2>/dev/null <"$path/device/$fact" && say hca "$name" "$fact" "$value"
    done
    for fact in symbol_error link_error_recovery link_downed port_rcv_errors; do
        for file in "$path"/ports/*/counters/"$fact"; do
            read -r value 2>/dev/null <"$file" && say hca "$name" "$fact" "$value"
        done
    done
done
exit 0
"""
# Where the kernel says who logged a line, that stands behind the time: [T3356]. With
# printk.time=0 there is neither.
_ENTRY = re.compile(r"(?:\[ *([0-9]+\.[0-9]+)\](?:\[ *[TC][0-9]+\])? )?(.+)")
# "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, ...", where MIG is on with the instance.
# "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up".
_XID = re.compile(
    r"(?:NVRM: Xid|(nvidia-nvswitch[0-9]+: SXid)) \((?:PCI:)?([0-9A-Fa-f:.]+)[^)]*\): ([0-9]+)\b.*"
)
# "NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", beside Xid 79 or in its place.
_GONE = re.compile(
    r"NVRM: GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:]+)\S* (?:GPU )?has fallen off the bus.*"
)
# Not the name of a program: "name=fatal", "/opt/fatal/train".
_FATAL = re.compile(r"(?<![\w=/.-])(?<!non )fatal(?![\w/])", re.IGNORECASE)
_NONFATAL = re.compile(r"\bnon[- ]?fatal\b", re.IGNORECASE)
# Drivers' words differ: "eth0: link down", "eth0 NIC Link is Down", "mlx5_0: Port: 1 Link DOWN".
_LINK_DOWN = re.compile(
    r"(?:.*\s)?((?!NIC\b)[a-z][\w.-]*):? (?:NIC |Port: [0-9]+ )?link (?:is )?down", re.IGNORECASE
)
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?: GT/s.*| PCIe.*)?")


def probe(*, sudo: bool) -> Probe[HealthFacts]:
    """The script that prints what the kernel knows.

    Args:
        sudo: the kernel's log may be read with ``sudo -n`` where the user alone may not.
    """
    return Probe("health", ("sh", "-c", SCRIPT, "sh", "sudo" if sudo else ""), parse)


def parse(text: str) -> HealthFacts:
    """The facts in the script's output.

    Raises:
        LogError: HEALTH-FACTS; it says nothing of the node's uptime, and so is not whole.
    """
    governors: dict[str, int] = {}
    swap: dict[str, int] = {}
    hcas: dict[str, list[tuple[str, str]]] = {}
    log: list[str] = []
    uptime_s, has_log = None, False
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        words = value.split()
        if key == "governor" and len(words) == 2 and words[1].isdecimal():
            governors[words[0]] = int(words[1])
        elif key in ("SwapTotal", "SwapFree") and value.isdecimal():
            swap[key] = int(value)
        elif key == "uptime":
            uptime_s = _number(value)
        elif key == "hca" and len(words) >= 3:
            hcas.setdefault(words[0], []).append((words[1], " ".join(words[2:])))
        elif key == "kernel":
            log.append(value)
        has_log = has_log or key == "kernel_log"
    if uptime_s is None:
        raise errors.LogError("the node did not say how long it is up", code="HEALTH-FACTS")
    return HealthFacts(
        governors=governors,
        swap_used_mib=(swap["SwapTotal"] - swap["SwapFree"]) // 1024 if len(swap) == 2 else None,
        xids=_xids(log, uptime_s) if has_log else None,
        link_downs=_link_downs(log, uptime_s) if has_log else None,
        hcas=tuple(_hca(name, facts) for name, facts in hcas.items()),
    )


def _entries(log: Sequence[str], uptime_s: float) -> Iterator[tuple[float | None, str]]:
    for entry in (_ENTRY.fullmatch(line.strip()) for line in log):
        if entry:
            yield uptime_s - float(entry[1]) if entry[1] else None, entry[2]


def _xids(log: Sequence[str], uptime_s: float) -> tuple[Xid, ...]:
    found = []
    for age_s, words in _entries(log, uptime_s):
        if xid := _XID.fullmatch(words):
            fatal = True if _FATAL.search(words) else False if _NONFATAL.search(words) else None
            found.append(Xid(int(xid[3]), xid[2], age_s, words, bool(xid[1]), fatal))
        elif gone := _GONE.fullmatch(words):
            found.append(Xid(79, gone[1], age_s, words))
    return tuple(found)


def _link_downs(log: Sequence[str], uptime_s: float) -> tuple[LinkDown, ...]:
    found = ((age_s, _LINK_DOWN.fullmatch(words)) for age_s, words in _entries(log, uptime_s))
    return tuple(LinkDown(down[1], age_s) for age_s, down in found if down and age_s is not None)


def _hca(name: str, facts: Sequence[tuple[str, str]]) -> HcaHealth:
    known = dict(facts)
    counters = {
        counter: max(int(value) for key, value in facts if key == counter)
        for counter in COUNTERS
        if any(key == counter for key, _ in facts)
    }
    width, most = (_number(known.get(f"{which}_link_width", "")) for which in ("current", "max"))
    speed, fastest = (_number(known.get(f"{which}_link_speed", "")) for which in ("current", "max"))
    lanes = None if width is None else int(width)
    return HcaHealth(name, lanes, None if most is None else int(most), speed, fastest, counters)


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[1]) if found else None
