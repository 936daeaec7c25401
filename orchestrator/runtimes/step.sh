#!/bin/sh
# One task of a step of Slurm's: starts a task of a gang, opens its gate at a word, ends it at
# another, and stays as long as the task runs, so that the step is the gang.
#
# usage: sh step.sh FOLDER LISTENING, with the words `go` and `stop` as lines of standard input
#
# LISTENING is a script of sed, which prints the ports of the kernel's tables that are listened at.
# In FOLDER are rR.task, a script that becomes the task's supervisor, or what stands for it, and
# what supervise.sh leaves. It leaves rR.gone where the supervisor ended without saying how.
# Else it leaves rR.clean where no process of any gang is on the node any more: the word, and ports
# that others listen at, which saves the next gang a step that looks for them.
umask 077
base=$1/r$SLURM_PROCID
held=

end() {
    [ -z "$held" ] || kill -TERM "$held" 2>/dev/null
}
trap end TERM INT HUP

# A session of its own: the supervisor ends its process group, which is not this one.
setsid sh "$base.task" </dev/null >/dev/null 2>"$base.err" &
held=$!
exec 3<&0
(
    opened=
    while read -r word <&3; do
        case $word in
        go) opened=yes; [ -p "$base.gate" ] && echo go 1<>"$base.gate" ;; # <>: never waits
        stop) kill -TERM "$held" ;;
        esac
    done
    # Whoever started the gang is gone: once its gate is open it ends by itself.
    [ -n "$opened" ] || kill -TERM "$held"
) 2>/dev/null &
words=$!
exec 3<&-
while :; do
    wait "$held"
    status=$?
    kill -0 "$held" 2>/dev/null || break
done
kill "$words" 2>/dev/null
if [ ! -s "$base.end" ]; then
    echo "$status" >"$base.gone"
    sleep 2 # srun ends the others for it: their own last words first
    exit 1
fi
# Its watches and its observer see that it is over; what Slurm has to end itself costs a second.
tries=0
while [ $((tries += 1)) -le 25 ]; do
    grep -qszE '^DLPERF_(JOB|TASK|SUPERVISOR|OBSERVER)=' /proc/[0-9]*/environ
    case $? in
    0) sleep 0.01 ;;
    1 | 2) # of processes that ended meanwhile, or are another user's, nothing is read
        echo "clean $(sed -nE "$2" /proc/net/tcp /proc/net/tcp6 2>/dev/null)" >"$base.clean"
        break
        ;;
    *) break ;;
    esac
done
exit 0
