#!/bin/sh
# One task of a gang: waits at a gate, runs the program in a session of its own, keeps its
# deadline whatever becomes of the controller, and leaves behind how it ended.
#
# usage: sh supervise.sh FOLDER NODE_RANK TOKEN LIMIT_S GRACE_S LOG_BYTES OBSERVE PROGRAM [WORD...]
#
#   OBSERVE  `SWEEP LIMIT_S GPUS` for FOLDER/observe.sh, which observes the node beside the task once
#            that is worth a look. Empty: somebody else does that.
#
# A process that it starts costs the task a millisecond, so shells do here what they can themselves.
# In FOLDER it leaves, each empty until it is whole:
#   rR.pid   its own pid, start time in clock ticks since boot, boot id
#   rR.gate  a FIFO; a line written to it starts the program
#   rR.alive a FIFO that this shell alone holds open: whoever reads it sees the task's end at once
#   rR.go    when the gate opened, in seconds since the epoch, by a process that waits for it and has
#            nothing to load then
#   rR.log   the program's own bytes, standard output and error as they come
#   rR.exit  exit status, and why it ended: exited, deadline, stopped, log-too-large, or
#            log-replaced where something else lay in its place
#   rR.end   size and sha256 of rR.log; where it is, all of the others are on the disk, and nothing
#            more will come
# A log that comes to LOG_BYTES ends the program at once and keeps its first LOG_BYTES. The program
# writes to the file itself: a pipe in between would slow it down, and a limit on the size of files
# (ulimit -f) would hit its checkpoints too. So a log is longer for the moment until it is looked at.
# It needs Linux, a POSIX shell, coreutils, grep and setsid.
umask 077
folder=$1 rank=$2 token=$3 limit_s=$4 grace_s=$5 log_bytes=$6 observe=$7
shift 7
base=$folder/r$rank
why=exited
program=
ended=

cd "$folder" || exit # what a program leaves beside itself must not meet that of another attempt
set -C               # and a link that it plants in the place of a file is not followed

write() { # NAME TEXT
    { [ -e "$base.$1" ] || [ -L "$base.$1" ]; } && rm -rf "$base.$1" # the program's
    printf '%s\n' "$2" >"$base.$1" && return 0 # alone it returns, in a trap, the status from before
    rm -f "$base.$1" # the disk is full
    return 1
}

started() { # PID: sets since, its start time
    read -r stat 2>/dev/null <"/proc/$1/stat" || return
    set -- ${stat##*) }
    shift 19
    since=$1
}

ours() { # sets left, the pids of the program, whatever session its processes have moved to
    left=
    for path in $(grep -lzxF "DLPERF_TASK=$token" /proc/[0-9]*/environ 2>/dev/null); do
        path=${path#/proc/}
        left="$left ${path%/environ}"
    done
}

# In a shell that was only just forked a signal may be lost, since its traps are still ours. So who
# signals closes a descriptor first, and the new shell looks for that once its traps are its own.
watch() { # begins a shell that watches: not where the end has begun meanwhile
    [ -e "/proc/$$/fd/7" ] || exit
    exec 3<&- 4<&- 5<&- 7<&- 8<&-
}

end() { # WHY: asks the program to end, and insists after the grace
    heard=yes
    exec 8<&-
    [ "$why" = exited ] && why=$1
    [ -n "$program" ] || finish 143
    kill -TERM "-$program" 2>/dev/null || kill -TERM "$program" 2>/dev/null
    ( watch; sleep "$grace_s"; ours; for pid in $left; do kill -KILL "$pid"; done ) 2>/dev/null &
}

overflow() { # the log is as large as it may become; a program that floods gets no grace
    heard=yes
    why=log-too-large
    ours
    for pid in $left; do kill -KILL "$pid" 2>/dev/null; done
}

size() { # sets bytes, those of the log; 0 for what is no plain file
    bytes=0
    [ ! -f "$base.log" ] || [ -L "$base.log" ] || bytes=$(wc -c <"$base.log") || bytes=0
}

finish() { # STATUS
    trap '' TERM INT HUP ALRM USR1
    exec 7<&-
    kill -TERM 0 # watches and the observer, which share this process group: gone before it ends
    exec 3<&-    # a gate that nobody watches takes no line
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        ours
        [ -n "$left" ] || break
        for pid in $left; do kill -KILL "$pid" 2>/dev/null; done
        sleep 0.02
    done
    if [ -n "$program" ] && { [ ! -f "$base.log" ] || [ -L "$base.log" ]; }; then
        why=log-replaced
        rm -rf "$base.log"
    fi
    [ -e "$base.log" ] || : >"$base.log"
    size
    if [ "$bytes" -ge "$log_bytes" ]; then
        why=log-too-large
        dd if=/dev/null of="$base.log" bs=1 seek="$log_bytes" 2>/dev/null # cuts it there
        size
    fi
    digest=$(sha256sum <"$base.log") # without one, as where it cannot be read, nobody can vouch
    [ -n "$digest" ] && write exit "$1 $why" && ended=yes && sync "$base.log" "$base.exit"
    set -- "$base.gate" "$base.alive" "$base.clock" "$base.go.new"
    [ -s "$base.err" ] || set -- "$@" "$base.err"
    rm -f "$@"
    exec 4<&- # not before its FIFO is gone: an observer that opened it then would wait
    [ -n "$ended" ] && write end "$bytes ${digest%% *}" && sync "$base.end" "$folder"
    kill -TERM 0 # bash loses one that comes between its fork and what it runs then
    exit 0
}

trap 'end stopped' TERM INT HUP
trap 'end deadline' ALRM
trap overflow USR1

started $$
start=$since
read -r boot </proc/sys/kernel/random/boot_id
# Without a gate it would begin before the others.
mkfifo "$base.gate" "$base.alive" "$base.clock" || exit 1
exec 3<>"$base.gate" 4<>"$base.alive" 5<>"$base.clock" 6<"$base.clock"
date -f - +%s.%N <&6 >"$base.go.new" 3<&- 4<&- 5<&- 6<&- & # tells the time at each line that comes
clock=$!
exec 6<&- 7</dev/null 8</dev/null
( watch; sleep "$limit_s"; started $$ && [ "$since" = "$start" ] && kill -ALRM $$ ) &
write pid "$$ $start $boot"
echo now >&5 # twice: a date that says the same both times took its own start for now
read -r _ <&3
echo now >&5
exec 3<&- 5<&- # no more lines come: then it writes what it has
printf '' >"$base.log" # a program that is ended before it can open its log has replaced none
{
    unset DLPERF_SUPERVISOR
    export "DLPERF_TASK=$token"
    [ -e "/proc/$$/fd/8" ] || exit 143
    exec setsid "$@"
} >>"$base.log" 2>&1 </dev/null 4<&- 7<&- 8<&- &
program=$!
wait "$clock"
{ read -r came && read -r went; } 2>/dev/null <"$base.go.new"
case $went in '' | "$came") went=$(date +%s.%N) ;; esac
write go "$went"
(
    watch
    sleep 0.2 # what ends sooner has no state that is worth a look
    [ -z "$observe" ] || {
        unset DLPERF_SUPERVISOR
        export "DLPERF_OBSERVER=$token"
        set -- $observe
        exec sh "$folder/observe.sh" "$folder" "$rank" "$1" "$2" "${3-}" $$
    } </dev/null &
    while :; do # a look costs 2 ms of processor time
        read -r _ _ _ parent _ </proc/self/stat
        [ "$parent" = $$ ] || exit # killed: its pid may be another's by now
        size
        [ "$bytes" -lt "$log_bytes" ] || break
        sleep 1
    done
    kill -USR1 $$
) >/dev/null 2>&1 &
status=
while :; do
    heard=
    wait "$program"
    now=$?
    # Not known any more: then the answer before was the program's own.
    [ "$now" = 127 ] && [ -n "$status" ] && break
    status=$now
    [ -n "$heard" ] || break # else a signal may have ended the wait, not the program
done
finish "$status"
