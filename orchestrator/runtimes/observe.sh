#!/bin/sh
# The state of a node beside one task: clocks, power and limits of its GPUs, load, other processes,
# once a second into files of the attempt, as long as the task's supervisor lives.
#
# usage: sh observe.sh FOLDER NODE_RANK SWEEP LIMIT_S GPUS [PID]
#
#   GPUS  their indices, such as 0,1; empty where the task has none
#   PID   of the supervisor as this shell sees it; without it, of the process that carries the mark
#         of DLPERF_OBSERVER and started when rR.pid says, up to a minute from now
#
# It ends as soon as the task does, which rR.alive shows. In FOLDER it leaves its own pid,
# rR.observer, and what `orchestrator/telemetry` reads:
#   rR.state  of the node: a line `node` first, then lines `host` and `process`
#   rR.gpus   what `nvidia-smi --query-gpu=... --format=csv -l 1` printed
# Nothing waits for it, and no failure of it is one of the trial. It needs Linux and awk.
umask 077
export LC_ALL=C # else awk reads and writes numbers as the node's language does: 1,5
folder=$1 rank=$2 sweep=$3 limit_s=$4 gpus=$5 pid=${6-}
base=$folder/r$rank
ulimit -f 131072 # 64 MiB a file
wanted="timestamp index uuid pstate clocks.sm clocks.mem power.draw temperature.gpu utilization.gpu
memory.used clocks_event_reasons.active clocks_throttle_reasons.active
ecc.errors.uncorrected.volatile.total total_energy_consumption
clocks_event_reasons_counters.sw_thermal_slowdown
clocks_event_reasons_counters.hw_thermal_slowdown
clocks_event_reasons_counters.hw_power_brake_slowdown"

cd "$folder" || exit
set -C # no link of the program's is followed
echo $$ >"$base.observer"

started_at() { # START: sets pid, of a supervisor that may see itself by another one
    # Its first children may have started in the same clock tick: the oldest counts.
    for pid in $(grep -lszxF "DLPERF_SUPERVISOR=$DLPERF_OBSERVER" /proc/[0-9]*/environ |
        cut -d / -f 3 | sort -n); do
        read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
        set -- "$1" ${stat##*) }
        [ "${21}" != "$1" ] || return 0
    done
    pid=
}

tries=0
while [ -z "$pid" ] && [ "$tries" -lt 80 ]; do
    read -r _ start _ 2>/dev/null <"$base.pid" && { started_at "$start"; break; }
    [ "$tries" -lt 20 ] && sleep 0.05 || sleep 1
    tries=$((tries + 1))
done
[ -n "$pid" ] && [ -d "/proc/$pid" ] || exit 0
smi=

end() {
    [ -z "$smi" ] || kill "$smi" 2>/dev/null
    exit 0
}
trap end TERM # of a supervisor that ends

fields() { # those of $wanted that this driver knows, by commas; of two names of one, the newer
    help=$(timeout 20 nvidia-smi --help-query-gpu 2>/dev/null)
    chosen=
    for field in $wanted; do
        case $field in
        clocks_throttle_reasons.active) case $chosen in *reasons.active*) continue ;; esac ;;
        esac
        case $help in *"\"$field\""*) chosen=$chosen${chosen:+,}$field ;; esac
    done
    printf '%s' "$chosen"
}

if [ -n "$gpus" ] && command -v nvidia-smi >/dev/null; then
    query=$(fields)
    if [ -n "$query" ]; then
        TZ=UTC0 timeout "$limit_s" nvidia-smi --query-gpu="$query" --format=csv,nounits \
            --id="$gpus" -l 1 >"$base.gpus" 2>/dev/null </dev/null &
        smi=$!
    fi
fi

awk -v pid="$pid" -v gpus="${smi:+$gpus}" -v smi="$smi" -v sweep="$sweep" -v self=$$ \
    -v alive="r$rank.alive" -v sight="$(readlink /proc/self/ns/pid)" \
    -v clock="$(date +%s.%N)" -v hz="$(getconf CLK_TCK 2>/dev/null || echo 100)" '
function first(path,    text) { # line of a file; empty where it cannot be read
    text = ""
    if ((getline text < path) < 0) text = ""
    close(path)
    return text
}
function born(    text, part, n) { # start time of the supervisor; empty once it has ended
    text = first("/proc/" pid "/stat")
    n = split(text, part, ") ")
    split(part[n], part, " ")
    return part[1] == "Z" ? "" : part[20]
}
function uptime(    part) {
    split(first("/proc/uptime"), part, " ")
    return part[1]
}
function count() { # processor time of the node, and when that was
    now = uptime()
    split(first("/proc/stat"), cpu, " ")
}
function pressure(what,    text) { # microseconds in which some task waited, since boot
    text = first("/proc/pressure/" what)
    return sub(/.*total=/, "", text) ? text : ""
}
function memory(    text, found) { # KiB: available, swap in use
    found["MemAvailable:"] = found["SwapTotal:"] = found["SwapFree:"] = ""
    while ((getline text < "/proc/meminfo") > 0) {
        split(text, word, " ")
        if (word[1] in found) found[word[1]] = word[2]
        if (word[1] == "SwapFree:") break
    }
    close("/proc/meminfo")
    return found["MemAvailable:"] "," (found["SwapTotal:"] - found["SwapFree:"])
}
function cgroup(    text, path) { # of the task in a container: cpu.stat of cgroup v2
    path = ""
    while ((getline text < ("/proc/" pid "/cgroup")) > 0)
        if (text ~ /^0::\/./) path = "/sys/fs/cgroup" substr(text, 4) "/cpu.stat"
    close("/proc/" pid "/cgroup")
    return path
}
function quota(    text, found) { # microseconds: used, held back by a quota
    found["usage_usec"] = found["throttled_usec"] = ""
    if (group == "") return ","
    while ((getline text < group) > 0) {
        split(text, word, " ")
        if (word[1] in found) found[word[1]] = word[2]
    }
    close(group)
    return found["usage_usec"] "," found["throttled_usec"]
}
function clean(text) {
    gsub(/[^A-Za-z0-9_.+:\/@-]/, "_", text)
    return substr(text, 1, 80)
}
function below(one,    depth) { # whether a process descends from the supervisor
    for (depth = 0; depth < 64 && one in parent; depth++) {
        if (one == pid || one == self) return 1
        one = parent[one]
    }
    return 0
}
function marked(one, start) { # whether its environment says that it is of this sweep
    if (!((one, start) in known))
        known[one, start] = !system("grep -qszE \"^DLPERF_(TASK|SUPERVISOR|OBSERVER)=dlp-" \
            sweep "-\" /proc/" one "/environ")
    return known[one, start]
}
function scan(    text, n, part, one, used, rate, name, shown) { # who used the processors
    delete parent
    while ((look | getline text) > 0) {
        n = split(text, part, ") ")
        if (n < 2 || text !~ /^[0-9]+ \(/) continue
        name = substr(text, index(text, "(") + 1)
        sub(/\) [A-Z] .*/, "", name)
        one = text + 0
        split(part[n], part, " ")
        parent[one] = part[2]
        start[one] = part[20]
        comm[one] = name
        ticks[one] = part[12] + part[13]
        waited[one] = part[14] + part[15]
    }
    close(look)
    count() # before what takes its time on a loaded node
    task = 0
    shown = 0
    for (one in parent) {
        used = scanned ? ticks[one] : 0 # of one that was born since
        if ((one, start[one]) in before) used = ticks[one] - before[one, start[one]]
        if (below(one)) {
            task += ticks[one] + waited[one]
        } else if (used > 2 && marked(one, start[one])) {
            kin += used # kept when it ends: nobody here waits for it
        } else if (scanned && used > 0.2 * hz * (now - scanned) && shown < 20 && \
                one != 2 && parent[one] != 2) {
            shown++
            rate = used / hz / (now - scanned)
            printf "process,%s,%s,cpu,%d,%.2f,%s\n", scanned, now, one, rate, clean(comm[one])
        }
    }
    task += kin
    delete before
    for (one in parent) before[one, start[one]] = ticks[one]
    scanned = now
}
function holders(now,    text, part, n) { # who else has memory on the GPUs in use
    while ((apps | getline text) > 0) {
        n = split(text, part, ", *")
        if (n < 3 || part[1] !~ /^[0-9]+$/) continue
        if (first("/proc/" part[1] "/stat") == "") continue # ended, or of another PID namespace
        if (below(part[1]) || marked(part[1], start[part[1]])) continue
        printf "process,%s,%s,gpu,%d,%s,%s\n", now, now, part[1], part[2] + 0, clean(part[3])
    }
    close(apps)
}
BEGIN {
    look = "cat /proc/[0-9]*/stat 2>/dev/null"
    apps = "timeout 5 nvidia-smi --query-compute-apps=pid,used_memory,process_name" \
        " --format=csv,noheader,nounits --id=" gpus " 2>/dev/null"
    begun = born()
    group = cgroup()
    while ((getline text < "/proc/stat") > 0 && text ~ /^cpu/) cpus++
    close("/proc/stat")
    printf "node,1,%s,%s,%d,%d,%s,%s\n", clock, uptime(), cpus - 1, hz, \
        first("/proc/sys/kernel/random/boot_id"), sight
    for (second = 0; begun != "" && born() == begun; second++) {
        task = ""
        if (second % 3 == 0) scan()
        else count()
        if (gpus != "" && second % 9 == 0) holders(now)
        split(first("/proc/loadavg"), load, " ")
        printf "host,%s", now
        for (n = 2; n <= 9; n++) printf ",%s", cpu[n]
        printf ",%s,%s,%s,%s,%s,%s,%s\n", task, quota(), load[1], memory(), pressure("cpu"), \
            pressure("memory"), pressure("io")
        fflush()
        if (system("exec timeout 1 cat " alive " >/dev/null 2>&1") != 124) break
    }
    if (smi != "") system("kill " smi " 2>/dev/null")
}' >"$base.state" 2>/dev/null </dev/null
end
