"""One controller at a time on a node, whatever machine or state folder it works from."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator import errors
from orchestrator.deadlines import BEAT_S, LOCK_S, LOCK_SILENCE_S
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.model.process import Holder
from orchestrator.state import lock
from orchestrator.transports import Stream

LONGEST_ANSWER = 4096

# Whatever user and folder: GPUs are the machine's. DLPERF_LOCK puts this machine's elsewhere.
MACHINE = "/var/tmp/dlperf.lock"
# The lock is the process's: it ends with the connection. A node that lost its network does not
# see that end, for hours; so the lock also ends when its holder has been silent for a while.
HOLD = """
umask 077
mkdir -p -- "$1" || exit 1
# Its parent may be everybody's: a folder or a link that somebody else put there is not used.
if [ -L "$1" ] || [ ! -O "$1" ]; then echo "$1 is not this user's own"; exit 1; fi
chmod 700 "$1" || exit 1
# Everybody's to hold, and opened for reading only: others' files there may not be written.
[ -e "$4" ] || (umask 0111; set -C; : >"$4") 2>/dev/null
# What was opened must be what has the name, and no link: others may exchange it meanwhile.
if [ ! -f "$4" ] || ! command exec 9<"$4" || [ -L "$4" ] || [ ! "$4" -ef /proc/self/fd/9 ]; then
    echo "$4 cannot be opened"; exit 1
fi
if ! flock -n 9; then printf 'taken '; cat <&9; exit 0; fi
# Not by `>`, which the kernel refuses for others' files in such a folder, even to root.
printf '%s\\n' "$2" | dd of=/proc/self/fd/9 conv=nocreat 2>/dev/null
echo held
while [ -n "$(timeout "$3" head -n 1)" ]; do :; done
"""


class _Locks:
    """The locks of all nodes but this machine; one that is lost is taken again."""

    def __init__(self, fleet: Fleet, me: Holder) -> None:
        self._transports, self._me = fleet.transports, me
        self.folders = {it.name: it.folder for it in fleet.cluster.members if not it.shares_files}
        self.left = threading.Event()
        self.streams: dict[str, Stream] = {}
        self.lost: list[errors.DlperfError] = []

    def keep(self, name: str) -> None:
        held_at = time.monotonic()
        while not self.left.is_set():
            if _beats(self.streams[name]) or self.left.is_set():
                held_at = time.monotonic()
                continue
            self.streams[name].close()
            try:
                self.streams[name] = self.lock(name)
            except errors.DlperfError as error:
                # The lock we lost ends by itself; until then its holder is ourselves.
                if isinstance(error, errors.StoreError) and str(self._me) not in error.cause:
                    self.lost.append(error)
                    return
                if time.monotonic() - held_at > 2 * LOCK_SILENCE_S:
                    cause = f"the lock of the node was lost, and cannot be had again: {error.cause}"
                    fix = error.fix or "look at the node, then run the same command again"
                    self.lost.append(errors.UnfitError(cause, code="LOCK", node=name, fix=fix))
                    return
                self.left.wait(BEAT_S)
        self.streams[name].close()

    def lock(self, name: str) -> Stream:
        given = (self.folders[name], self._me.record(), f"{LOCK_SILENCE_S:g}", MACHINE)
        stream = self._transports[name].open(("sh", "-c", HOLD, "sh", *given))
        stream.settimeout(LOCK_S)
        answered = b""
        with contextlib.suppress(TimeoutError):
            while not answered.endswith(b"\n") and (piece := stream.recv(LONGEST_ANSWER)):
                answered += piece
        answer = answered.decode(errors="replace").strip()
        if answer == "held":
            return stream
        stream.close()
        holder = Holder.read(answer.removeprefix("taken "))
        if holder == self._me and name not in self.streams:
            raise errors.UnfitError(
                "another node of this inventory is the same machine",
                code="SAME-MACHINE",
                fix="leave one of them out: tasks of both would share what is measured",
                node=name,
            )
        if answer.startswith("taken"):
            raise lock.refused("", holder, node=name)
        raise errors.UnfitError(
            f"the node cannot be locked: {answer or 'no answer'}",
            code="LOCK",
            node=name,
            fix="check that flock (util-linux) is installed and the folder can be written",
        )


@contextlib.contextmanager
def held(fleet: Fleet, state: Path) -> Iterator[Sequence[errors.DlperfError]]:
    """Hold the lock of every node; nodes that are this machine share one.

    Yields:
        Why a lock was lost for good, as soon as one is. LOCKED: another controller has taken it
        meanwhile. LOCK: what was measured since may be disturbed.

    Raises:
        StoreError: LOCKED, by whom and since when; nothing is held.
        NodeError: a node does not answer.
    """
    path = Path(os.environ.get("DLPERF_LOCK", MACHINE))
    local = any(node.is_here for node in fleet.cluster.members)
    here = lock.MachineLock(path, "this machine", state) if local else contextlib.nullcontext()
    locks = _Locks(fleet, lock.own(state))
    with here:
        try:
            answers = ask_all(list(locks.folders), locks.lock)
            locks.streams = {answer.node: answer.value for answer in answers if answer.value}
            settled(answers)
            for name in locks.streams:
                threading.Thread(target=locks.keep, args=(name,), daemon=True).start()
            yield locks.lost
        finally:
            locks.left.set()
            for stream in list(locks.streams.values()):
                stream.close()


def _beats(stream: Stream) -> bool:
    """Send one sign of life, and wait ``BEAT_S`` at most; False once the lock has ended."""
    try:
        stream.settimeout(BEAT_S)
        stream.sendall(b".\n")
        stream.recv(1)  # it says nothing more until it ends
    except TimeoutError:
        return True
    except (OSError, errors.NodeError):
        return False
    return False
