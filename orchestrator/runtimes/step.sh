#!/bin/sh
# One task of a step of Slurm's: starts a task of a gang, opens its gate at a word, ends it at
# another, and stays as long as the task runs, so that the step is the gang.
#
# usage: sh step.sh FOLDER, with the words `go` and `stop` as lines of standard input
#
# In FOLDER are rR.task, a script that becomes the task's supervisor, or what stands for it, and
# what supervise.sh leaves. It leaves rR.gone where the supervisor ended without saying how.
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
        go) opened=yes; timeout 5 sh -c 'echo go >"$0"' "$base.gate" ;;
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
# What Slurm has to end itself when a task is over costs a second.
observer=
read -r observer 2>/dev/null <"$base.observer"
tries=0
while [ -n "$observer" ] && kill -0 "$observer" 2>/dev/null && [ $((tries += 1)) -le 25 ]; do
    sleep 0.02
done
[ -e "$base.end" ] && exit 0
echo "$status" >"$base.gone"
sleep 2 # srun ends the others for it: their own last words first
exit 1
