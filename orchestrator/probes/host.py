"""Facts of a node's machine: system, memory, disk, limits, clock, load, in one script."""

import re
from collections.abc import Mapping

from orchestrator import errors
from orchestrator.model.site import HostFacts
from orchestrator.probes import number, read_values

_WHOLE, _FRACTION = r"[0-9]+", r"[0-9]+(?:[.][0-9]+)?"
# By key, the pattern of each fact that every Linux machine has.
_NEEDED: Mapping[str, str] = {
    **dict.fromkeys(("hostname", "boot_id", "kernel"), r".+"),
    **dict.fromkeys(("cpus", "memory_kib", "free_disk_kib"), _WHOLE),
    **dict.fromkeys(("load", "clock"), _FRACTION),
}

# Prints one line a fact, `key value`; an unreadable value stays empty, and the parser judges it.
# The shell itself reads what it can: each process costs a millisecond a node.
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


def argv(python: str, folder: str, modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that prints a machine's facts.

    Args:
        python: the interpreter that must import the modules.
        folder: where attempts will lie; its free disk is reported.
    """
    return ("sh", "-c", SCRIPT, "sh", python, folder, *modules)


def parse(text: str) -> HostFacts:
    """Return the facts in the script's output.

    Raises:
        LogError: HOST-FACTS; a fact that every Linux node has is missing or no number.
    """
    values = read_values(text)
    last = {key: words[-1] for key, words in values.items()}
    for key, pattern in _NEEDED.items():
        if not last.get(key):
            raise errors.LogError(f"the node reported no {key}", code="HOST-FACTS")
        if not re.fullmatch(pattern, last[key]):
            seen = f"the node's {key} is {last[key]!r}; needed a number"
            raise errors.LogError(seen, code="HOST-FACTS")
    addresses: dict[str, tuple[str, ...]] = {}
    for line in values.get("address", ()):
        interface, _, address = line.partition(" ")
        name = interface.partition("@")[0]  # veth0@if3 is called veth0 by everything else
        addresses[name] = (*addresses.get(name, ()), address)
    modules = dict(line.partition(" ")[::2] for line in values.get("module", ()))
    return HostFacts(
        hostname=last["hostname"],
        boot_id=last["boot_id"],
        kernel=last["kernel"],
        system=last.get("system", ""),
        cpu_model=last.get("cpu_model", ""),
        cpus=int(last["cpus"]),
        memory_mib=int(last["memory_kib"]) // 1024,
        free_disk_mib=int(last["free_disk_kib"]) // 1024,
        shm_mib=(number(values, "shm_kib") or 0) // 1024,
        open_files=number(values, "open_files"),
        load=float(last["load"]),
        clock_s=float(last["clock"]),
        interfaces=tuple(last.get("interfaces", "").split()),
        missing_modules=tuple(values.get("missing_module", ())),
        torch=modules.get("torch", ""),
        memlock_kib=number(values, "memlock"),
        addresses=addresses if "told_addresses" in values else None,
        proxies=tuple(values.get("proxy", ())),
        own_addresses=tuple(dict.fromkeys(values.get("own_address", ()))),
    )
