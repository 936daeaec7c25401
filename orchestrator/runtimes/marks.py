"""Find and end the processes of tasks by the marks in their environment."""

import os
import time
from collections.abc import Iterator

from orchestrator import errors
from orchestrator.deadlines import SUPERVISOR_S
from orchestrator.model.attempt import Limits
from orchestrator.transports import Transport

# Processes of a task are identified by the environment variable DLPERF_TASK, its supervisor by
# DLPERF_SUPERVISOR, its observer by DLPERF_OBSERVER: torchrun's workers leave every process group,
# and pids are used again. The kernel takes back a GPU's memory before a killed process is gone:
# 20 s, not 1 s.
KILL = """
tries=0
while [ $((tries += 1)) -le 200 ]; do
    left=$(grep -lzxF -e "DLPERF_TASK=$1" -e "DLPERF_SUPERVISOR=$1" -e "DLPERF_OBSERVER=$1" \
        /proc/[0-9]*/environ 2>/dev/null | sed 's,/proc/\\([0-9]*\\)/environ,\\1,')
    [ -n "$left" ] || exit 0
    for pid in $left; do kill -KILL "$pid" 2>/dev/null; done
    [ "$tries" -lt 6 ] && sleep 0.02 || sleep 0.1 # an observer is always there, and quickly gone
done
echo $left
exit 1
"""
# Prints the marks of each process that has one, a line each, and an empty line behind them. Of
# another user's processes root alone can read them.
LIST = """
for path in $(grep -lsz '^DLPERF_[TSO][A-Z]*=dlp-' /proc/[0-9]*/environ); do
    tr '\\0' '\\n' <"$path" 2>/dev/null |
        grep -aE '^DLPERF_(TASK|SUPERVISOR|OBSERVER|OWNER|DEADLINE|LOCK|JOB)='
    echo
done
true
"""


def kill(transport: Transport, token: str, *, fix: str = "", **where: str) -> None:
    """Kill every process that has the mark; raise LeftoverError if some live on after 20 s.

    Args:
        fix: what to do about them; by default to kill them by their pids.
    """
    done = transport.run(("sh", "-c", KILL, "sh", token), timeout_s=SUPERVISOR_S)
    if done.exit_code != 0:
        pids = done.stdout.decode(errors="replace").strip()
        raise errors.LeftoverError(
            f"processes {pids} of {token} do not end",
            code="LEFTOVER",
            fix=fix or f"kill -KILL {pids}",
            **where,
        )


def of_controller(owner: str, limits: Limits) -> dict[str, str]:
    """Return the marks that tell others who started a task, and when it ends by itself."""
    lock = {"DLPERF_LOCK": os.environ["DLPERF_LOCK"]} if "DLPERF_LOCK" in os.environ else {}
    return {"DLPERF_OWNER": owner, "DLPERF_DEADLINE": deadline(limits), **lock}


def deadline(limits: Limits) -> str:
    """Return when a task that is created now has ended, in seconds since the epoch."""
    return f"{time.time() + limits.create_s + limits.time_s + limits.grace_s:.0f}"


def listed(transport: Transport) -> Iterator[dict[str, str]]:
    """Yield the marks of each process on a node that has any, by name such as ``owner``.

    The name of its task is ``task``; ``owner``, ``deadline``, ``lock`` and ``job`` may be missing.
    """
    done = transport.run(("sh", "-c", LIST, "sh"), timeout_s=SUPERVISOR_S)
    for process in done.stdout.decode(errors="replace").split("\n\n"):
        lines = (line.partition("=") for line in process.strip().splitlines())
        marks = {name.removeprefix("DLPERF_").lower(): value for name, _, value in lines}
        of = [marks.pop(name, "") for name in ("task", "supervisor", "observer")]
        if any(of):
            yield {**marks, "task": next(filter(None, of))}
