"""Facts of a node's machine: system, memory, disk, limits, clock, load, in one script."""

import re
from collections.abc import Mapping, Sequence

from orchestrator import errors
from orchestrator.model.site import HostFacts
from orchestrator.probes import Probe

# One line a fact, `key value`; what cannot be read stays empty and is judged here, not there.
# The shell reads what it can by itself: of many nodes each process costs a millisecond a node.
SCRIPT = r"""
python=$1 folder=$2; shift 2
while [ ! -d "$folder" ] && [ "$folder" != / ]; do folder=$(dirname "$folder"); done
say() { printf '%s %s\n' "$1" "$2"; }
say clock "$(date +%s.%N)"
system=/proc/sys/kernel
read -r hostname <$system/hostname && say hostname "$hostname"
read -r type <$system/ostype && read -r release <$system/osrelease && say kernel "$type $release"
read -r boot_id <$system/random/boot_id && say boot_id "$boot_id"
sed -n '/^PRETTY_NAME=/{s//system /;s/"//g;p;}
    s/^MemTotal: *\([0-9]*\) kB/memory_kib \1/p
    /^model name/{s/[^:]*: */cpu_model /p;q;}
' /etc/os-release /proc/meminfo /proc/cpuinfo 2>/dev/null
say cpus "$(unset OMP_NUM_THREADS OMP_THREAD_LIMIT && exec nproc)"
df -Pk "$folder" /dev/shm 2>/dev/null | {
    read -r _; read -r _ _ _ free _; say free_disk_kib "$free"
    read -r _ size _ && say shm_kib "$size"
}
printf 'open_files '; ulimit -n
read -r load _ </proc/loadavg && say load "$load"
interfaces=
for path in /sys/class/net/*; do interfaces="$interfaces ${path##*/}"; done
say interfaces "$interfaces"
printf 'memlock '; ulimit -l
timeout 5 getent ahosts "$hostname" 2>/dev/null |
    while read -r address _; do say own_address "$address"; done
if command -v ip >/dev/null 2>&1; then
    say told_addresses yes
    ip -o addr show | while read -r _ name family address _; do
        case $family in inet | inet6) say address "$name ${address%%/*}" ;; esac
    done
fi
for name in http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY; do
    eval "[ -z \"\${$name:-}\" ]" || say proxy "$name"
done
for module in "$@"; do
    "$python" - "$module" <<'END' 2>/dev/null || say missing_module "$module"
import importlib.metadata, importlib.util, sys
name = sys.argv[1]
if importlib.util.find_spec(name) is None:
    sys.exit(1)
try:
    print("module", name, importlib.metadata.version(name))
except importlib.metadata.PackageNotFoundError:
    print("module", name)
END
done
exit 0
"""


def probe(python: str, folder: str, modules: tuple[str, ...]) -> Probe[HostFacts]:
    """Return the script that prints a machine's facts.

    Args:
        python: the interpreter that must import the modules.
        folder: where attempts will lie; its free disk is reported.
        modules: Python modules that must be importable.
    """
    return Probe("host", ("sh", "-c", SCRIPT, "sh", python, folder, *modules), parse)


def parse(text: str) -> HostFacts:
    """Return the facts in the script's output.

    Raises:
        LogError: HOST-FACTS; a fact that every Linux node has is missing or no number.
    """
    facts: dict[str, str] = {}
    lists: dict[str, list[str]] = {
        key: [] for key in ("missing_module", "address", "own_address", "proxy")
    }
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key in lists:
            lists[key].append(value)
        elif key == "module":
            name, _, version = value.partition(" ")
            facts[f"module {name}"] = version
        else:
            facts[key] = value.strip()
    open_files, memlock = facts.get("open_files", ""), facts.get("memlock", "")
    return HostFacts(
        hostname=_word(facts, "hostname"),
        boot_id=_word(facts, "boot_id"),
        kernel=_word(facts, "kernel"),
        system=facts.get("system", ""),
        cpu_model=facts.get("cpu_model", ""),
        cpus=_whole(facts, "cpus"),
        memory_mib=_whole(facts, "memory_kib") // 1024,
        free_disk_mib=_whole(facts, "free_disk_kib") // 1024,
        shm_mib=int(facts["shm_kib"]) // 1024 if facts.get("shm_kib", "").isdecimal() else 0,
        open_files=int(open_files) if open_files.isdecimal() else None,
        load=_fraction(facts, "load"),
        clock_s=_fraction(facts, "clock"),
        interfaces=tuple(facts.get("interfaces", "").split()),
        missing_modules=tuple(lists["missing_module"]),
        torch=facts.get("module torch", ""),
        memlock_kib=int(memlock) if memlock.isdecimal() else None,
        addresses=_addresses(lists["address"]) if "told_addresses" in facts else None,
        proxies=tuple(lists["proxy"]),
        own_addresses=tuple(dict.fromkeys(lists["own_address"])),
    )


def _addresses(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses by interface; ``veth0@if3`` is called ``veth0`` by everything else."""
    by_interface: dict[str, tuple[str, ...]] = {}
    for line in lines:
        interface, _, address = line.partition(" ")
        name = interface.partition("@")[0]
        by_interface[name] = (*by_interface.get(name, ()), address)
    return by_interface


def _word(facts: Mapping[str, str], key: str) -> str:
    if not facts.get(key):
        raise errors.LogError(f"the node reported no {key}", code="HOST-FACTS")
    return facts[key]


def _whole(facts: Mapping[str, str], key: str) -> int:
    word = _word(facts, key)
    if not re.fullmatch(r"[0-9]+", word):
        raise errors.LogError(f"the node's {key} is {word!r}; needed a number", code="HOST-FACTS")
    return int(word)


def _fraction(facts: Mapping[str, str], key: str) -> float:
    word = _word(facts, key)
    if not re.fullmatch(r"[0-9]+([.][0-9]+)?", word):
        raise errors.LogError(f"the node's {key} is {word!r}; needed a number", code="HOST-FACTS")
    return float(word)
