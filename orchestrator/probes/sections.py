"""Many questions in one round trip: each with its own time limit, independent of the others."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from orchestrator import errors
from orchestrator.model.facts import Silent
from orchestrator.probes import Probe
from orchestrator.words import printable

Fact = TypeVar("Fact")
GRACE_S = 2
# Each question runs by itself and writes into files. A program in uninterruptible sleep outlives
# its limit and SIGKILL too; then it holds a file and not the pipe that the controller reads. Each
# question writes to a FIFO when it ends, and so does a watch when the longest limit is over.
SCRIPT = r"""
nonce=$1 longest_s=$2; shift 2
work= named= watch=
trap 'rm -rf "$work" "$named"; [ -z "$watch" ] || kill "$watch"' EXIT
trap 'exit 1' HUP INT TERM PIPE # dash runs no EXIT trap when one of these ends it
for place in /dev/shm /tmp; do # either may be full, by bytes or by inodes
    work=$(mktemp -d "$place/.dlperf-$nonce.XXXXXX") && head -c 262144 /dev/zero >"$work/room" &&
        rm "$work/room" && break
    rm -rf "$work" && work=
done 2>/dev/null
[ -n "$work" ] || { printf '%s full -\n' "$nonce"; exit 1; }
named=${work%/*}/${work##*/.} # a signal may come between the two names
mkfifo "$work/over" && exec 3<>"$work/over" && # before it has the name of what may be stale
    mv "$work" "$named" && work=$named || exit 1
start() {
    while [ $# -ge 3 ]; do
        (
            eval "exec timeout -k 1 $2 $3" >"$work/$1.out" 2>"$work/$1.err" 3<&- &
            group=$! status=0
            wait "$group" || status=$?
            # Its first process may have obeyed TERM, and a child of that not.
            [ "$status" -ne 124 ] || kill -s KILL -- "-$group"
            echo "$status" >"$work/$1.rc"
            echo >&3
        ) </dev/null >/dev/null 2>&1 &
        left=$((left + 1))
        shift 3
    done
}
tell() {
    count=$#
    echo >"$work/break"
    while [ "$count" -ge 3 ]; do
        status=hung
        [ ! -s "$work/$1.rc" ] || read -r status <"$work/$1.rc"
        printf '%s %s %s\n' "$nonce" "$1" "$status" >"$work/$1.mark"
        printf '\n%s %s said\n' "$nonce" "$1" >"$work/$1.said"
        set -- "$@" "$work/$1.mark" "$work/$1.out" "$work/$1.said" "$work/$1.err" "$work/break"
        shift 3
        count=$((count - 3))
    done
    head -q -c 2097152 -- "$@"
}
left=0
start "$@"
(
    trap exit TERM
    while kill -0 $$ && [ "$longest_s" -gt 0 ]; do # killed, nobody waits any more
        sleep 1 3<&- &
        trap 'kill $!; exit' TERM
        wait $!
        longest_s=$((longest_s - 1))
    done
    echo late >&3
) </dev/null >/dev/null 2>&1 &
watch=$!
while [ "$left" -gt 0 ] && read -r word <&3 && [ -z "$word" ]; do left=$((left - 1)); done
tell "$@"
printf '%s end %s\n' "$nonce" "$(date +%s.%N)"
"""
# Prints our folders that a SIGKILL left: no shell holds their FIFO open any more.
STALE = """
for path in /dev/shm/dlperf-*.?????? /tmp/dlperf-*.??????; do
    [ -d "$path" ] && [ ! -L "$path" ] && [ -O "$path" ] || continue
    dd if=/dev/null of="$path/over" oflag=nonblock conv=nocreat 2>/dev/null ||
        printf "%s\\n" "$path"
done
true
"""
_HUNG = ("hung", "124", "137")  # `timeout` exits 124 after TERM and 137 after KILL
_NOT_FOUND = 127
# "timeout: failed to run command 'ibstat': No such file or directory": nothing took too long.
_BY_TIMEOUT = re.compile(r"^\S*timeout: failed to run command .(.+?).(?=: )", re.MULTILINE)
_LONGEST = 300
_CLOCK = re.compile(r"[0-9]+[.][0-9]+")


@dataclass(frozen=True, slots=True)
class Section:
    """One question of many; ``name`` finds its output again."""

    name: str
    argv: tuple[str, ...]
    limit_s: int = 10


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a question's command; ``exit_code`` is None if it did not end in time."""

    exit_code: int | None
    out: str
    err: str

    @property
    def message(self) -> str:
        """Return one line for a person: standard error, else the output, at most 300 characters."""
        text = _BY_TIMEOUT.sub(r"\1", self.err.strip() or self.out)
        lines = [line.strip() for line in text.splitlines()]
        return printable("; ".join(filter(None, lines))[:_LONGEST])


@dataclass(frozen=True, slots=True)
class Answers:
    """Outputs by section name, and the node's clock (Unix time) after the last one."""

    outputs: Mapping[str, Output]
    clock_s: float


def probe(
    name: str, sections: Sequence[Section], parse: Callable[[Answers], Fact], *, nonce: str
) -> Probe[Fact]:
    """Return all sections as one probe; its timeout is ``timeout_s``, its nonce as of ``argv``."""
    command = argv(sections, nonce=nonce)
    return Probe(name, command, lambda text: parse(split(text, sections, nonce=nonce)))


def argv(sections: Sequence[Section], *, nonce: str) -> tuple[str, ...]:
    """Return the command that runs all sections at once.

    Args:
        nonce: letters and digits that no answer can hold by chance, new for every call.
    """
    words = [str(max((section.limit_s for section in sections), default=0) + GRACE_S)]
    for section in sections:
        words += [section.name, str(section.limit_s), shlex.join(section.argv)]
    return ("sh", "-c", SCRIPT, "sh", nonce, *words)


def timeout_s(sections: Sequence[Section]) -> float:
    """Return the seconds that a transport must wait for all answers."""
    return max((section.limit_s for section in sections), default=0) * 1.5 + GRACE_S + 10


def split(text: str, sections: Sequence[Section], *, nonce: str) -> Answers:
    """Return the outputs in the text that ``argv`` printed, byte for byte.

    Raises:
        LogError: ANSWER-CUT; the text is not the whole answer to these sections. DISK-FULL; the
            node has no room for answers.
    """
    if text == f"{nonce} full -\n":
        raise errors.LogError(
            "neither /dev/shm nor /tmp of the node can be written",
            code="DISK-FULL",
            fix="remove files there (see `df /dev/shm /tmp` and `df -i /dev/shm /tmp`)",
        )
    marks = list(re.finditer(rf"^{re.escape(nonce)} (\S+) (\S+)$", text, re.MULTILINE))
    names = [name for section in sections for name in (section.name, section.name)]
    if [mark[1] for mark in marks] != [*names, "end"] or not _CLOCK.fullmatch(marks[-1][2]):
        raise errors.LogError(
            f"the node's answer is not whole: {len(marks)} of {len(names) + 1} marks",
            code="ANSWER-CUT",
            fix="look at the node's /dev/shm and its temporary folder",
        )
    outputs = {
        marks[at][1]: Output(
            exit_code=None if marks[at][2] in _HUNG else int(marks[at][2]),
            out=text[marks[at].end() + 1 : marks[at + 1].start() - 1],
            err=text[marks[at + 1].end() + 1 : marks[at + 2].start() - 1],
        )
        for at in range(0, len(names), 2)
    }
    return Answers(outputs, float(marks[-1][2]))


def read(output: Output | None, parse: Callable[[str], Fact]) -> Fact | Silent | None:
    """Return the parsed fact, or why there is none; None if it was not asked."""
    if output is None:
        return None
    if output.exit_code is None:
        return Silent("HUNG", output.message)
    if output.exit_code == _NOT_FOUND:
        return Silent("ABSENT", output.message)
    try:
        return parse(output.out)
    except errors.LogError as error:
        return Silent(error.code, output.message or error.cause)
