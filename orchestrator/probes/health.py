"""Health of a node's hardware: kernel log, CPU governors, swap, adapters."""

import re
from collections.abc import Iterable, Iterator, Mapping

from orchestrator import errors
from orchestrator.model.facts import HcaHealth, HealthFacts, Xid
from orchestrator.probes import number, read_values

COUNTERS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors")
# $1: sudo, or nothing. Prints one line a fact; facts that cannot be read are left out.
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
# "[   12.100000][T3356] NVRM: ..."; some kernels name no thread, and with printk.time=0 no time.
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
# "mlx5_0 max_link_speed 16.0 GT/s PCIe"; "mlx5_9 max_link_width Unknown".
_FACT = re.compile(r"(\S+) (\S+) (?:([0-9]+(?:\.[0-9]+)?)(?: GT/s.*| PCIe.*)?|.*)")


def argv(*, sudo: bool) -> tuple[str, ...]:
    """Return the command; with ``sudo -n`` it reads a log that the user alone may not."""
    return ("sh", "-c", SCRIPT, "sh", "sudo" if sudo else "")


def parse(text: str) -> HealthFacts:
    """Return the facts in the script's output.

    Raises:
        LogError: HEALTH-FACTS; it says nothing of the node's uptime, and so is not whole.
    """
    values = read_values(text)
    *_, uptime = values.get("uptime", ("",))
    if not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", uptime):
        raise errors.LogError("the node did not say how long it is up", code="HEALTH-FACTS")
    uptime_s = float(uptime)
    governors = (line.rpartition(" ") for line in values.get("governor", ()))
    swap_kib, free_kib = number(values, "SwapTotal"), number(values, "SwapFree")
    hcas: dict[str, dict[str, float]] = {}
    for line in filter(None, map(_FACT.fullmatch, values.get("hca", ()))):
        known = hcas.setdefault(line[1], {})
        if line[3]:  # of the ports of an adapter the largest counter
            known[line[2]] = max(float(line[3]), known.get(line[2], 0))
    return HealthFacts(
        governors={name: int(count) for name, _, count in governors if count.isdecimal()},
        swap_used_mib=None
        if swap_kib is None or free_kib is None
        else (swap_kib - free_kib) // 1024,
        xids=tuple(_read_xids(values.get("kernel", ()), uptime_s))
        if "kernel_log" in values
        else None,
        hcas=tuple(
            HcaHealth(
                name=name,
                width=_lanes(facts, "current"),
                most_width=_lanes(facts, "max"),
                speed=facts.get("current_link_speed"),
                most_speed=facts.get("max_link_speed"),
                counters={key: int(facts[key]) for key in COUNTERS if key in facts},
            )
            for name, facts in hcas.items()
        ),
    )


def _lanes(facts: Mapping[str, float], which: str) -> int | None:
    lanes = facts.get(f"{which}_link_width")
    return None if lanes is None else int(lanes)


def _read_xids(log: Iterable[str], uptime_s: float) -> Iterator[Xid]:
    for entry in filter(None, map(_ENTRY.fullmatch, log)):
        age_s, words = uptime_s - float(entry[1]) if entry[1] else None, entry[2]
        if xid := _XID.fullmatch(words):
            fatal = True if _FATAL.search(words) else False if _NONFATAL.search(words) else None
            yield Xid(int(xid[3]), xid[2], age_s, words, bool(xid[1]), fatal)
        elif gone := _GONE.fullmatch(words):
            yield Xid(79, gone[1], age_s, words)
