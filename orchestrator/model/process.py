"""Identities of processes that outlast the reuse of pids, and the holders of locks."""

import json
from dataclasses import asdict, dataclass

from orchestrator.model.text import shape

_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat, counted from behind the name


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of one machine: pids are used again, and a reboot starts them anew.

    Args:
        pid: as the process sees itself, which in a container is 1.
        started: its start in clock ticks since boot, the same wherever it is seen from.
        boot: the id of the machine's boot.
    """

    host: str
    pid: int
    started: str
    boot: str

    def is_shown_by(self, stat: bytes, boot: str) -> bool:
        """Return True if a line of /proc/PID/stat is about this process, and it has not ended.

        Args:
            boot: of the machine where the line was read.
        """
        fields = stat.rpartition(b") ")[2].split()
        if len(fields) <= _STARTED or fields[_STATE] in (b"Z", b"X"):
            return False
        return fields[_STARTED].decode() == self.started and boot == self.boot


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock, its user, the time it took the lock, and its state folder."""

    process: ProcessIdentity
    user: str
    since: str
    folder: str

    @classmethod
    def read(cls, text: str) -> "Holder | None":
        """Parse the output of ``record``; None for an incomplete line, or one of another origin."""
        try:
            holder = shape(cls).validate_json(text, strict=True)
        except ValueError:
            return None
        process = holder.process
        words = (process.host, process.started, process.boot, holder.user, holder.since)
        return holder if "".join((*words, holder.folder)).isprintable() else None

    def record(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        process = self.process
        return f"pid {process.pid} of {self.user} on {process.host} since {self.since}"
