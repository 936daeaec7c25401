"""Nodes of a Slurm job: their states, and made ready for a gang: swept, and a port chosen."""

import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from orchestrator import errors, nodeset
from orchestrator.deadlines import COMMAND_S, PATIENCE, SUPERVISOR_S
from orchestrator.fleet import Fleet, settled
from orchestrator.model.attempt import Request
from orchestrator.schedulers import slurm_queue

LOGGER = logging.getLogger("dlperf.slurm")
_DOWN = ("DOWN", "FAIL", "ERROR", "UNKNOWN", "FUTURE", "POWERED_DOWN", "REBOOT")
# $1: the job; $2: the user's jobs that live, with blanks between; $3: the docker command, or
# nothing. Ends what earlier gangs of this job or of jobs that are over left, by environment and
# label, and prints what; then the lines of the kernel's tables for ports at which somebody listens.
READY = """
job=$1 live=$2 docker=$3
left() { # JOB: whether nothing of it should run
    case " $live " in *" $1 "*) [ "$1" = "$job" ] ;; esac
}
for path in $(grep -lzE '^DLPERF_JOB=' /proc/[0-9]*/environ 2>/dev/null); do
    words=$(tr '\\0' '\\n' <"$path" 2>/dev/null | sed -nE 's/^DLPERF_(TASK|SUPERVISOR)=//p')
    left "$(tr '\\0' '\\n' <"$path" 2>/dev/null | sed -n 's/^DLPERF_JOB=//p')" || continue
    pid=${path#/proc/}
    kill -KILL "${pid%/environ}" 2>/dev/null && echo "ended $words"
done
[ -z "$docker" ] || $docker ps --all --filter label=dlperf.job \\
    --format '{{.Names}} {{.Label "dlperf.job"}}' | while read -r name of; do
    left "$of" || continue
    user=$($docker inspect --format '{{.Config.User}}' "$name" 2>/dev/null)
    [ "$user" = "$(id -u):$(id -g)" ] || continue # another user's, who may end it
    $docker rm --force --volumes "$name" >/dev/null && echo "ended $name" || echo "left $name"
done
sed -n '/ 0A /p' /proc/net/tcp /proc/net/tcp6 2>/dev/null
true
"""
_LISTENS = re.compile(r"^ *[0-9]+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ")
FRESH_S = 2.0  # in which what was seen of a node at the end of a gang holds for the next one


@dataclass(slots=True)
class Looks:
    """Busy ports of nodes, as seen at the end of a gang's step; each is used once, while fresh.

    Args:
        seen: by node, when nothing of any gang ran there, and the ports that were busy.
    """

    seen: dict[str, tuple[float, frozenset[int]]] = field(default_factory=dict)

    def take(self, nodes: Sequence[str]) -> frozenset[int] | None:
        """Return the ports busy on any of these nodes; None if a node has to be inspected."""
        looks = [self.seen.pop(node, (-inf, frozenset[int]())) for node in nodes]
        oldest = min(at for at, _ in looks)
        if time.monotonic() - oldest > FRESH_S:
            return None
        return frozenset().union(*(ports for _, ports in looks))


def parse_listening(lines: Iterable[str]) -> frozenset[int]:
    """Parse the listening ports in lines of the kernel's tables."""
    return frozenset(int(found[1], 16) for line in lines if (found := _LISTENS.match(line)))


def free_port(request: Request, nodes: Sequence[str], busy: Collection[int]) -> int:
    """Return the first port of a request that is free.

    Raises:
        UnfitError: PORT-BUSY.
    """
    free = next((port for port in request.ports if port not in busy), None)
    if free is None:
        raise errors.UnfitError(
            f"ports {request.ports[0]} to {request.ports[-1]} are all taken",
            code="PORT-BUSY",
            node=nodeset.fold(nodes),
            trial=request.trial,
        )
    return free


def sweep(fleet: Fleet, job: str, request: Request, names: Sequence[str]) -> frozenset[int]:
    """Remove what earlier gangs left on these nodes; return ports busy on any of them.

    Raises:
        LeftoverError: a container that an earlier gang left cannot be ended.
        NodeError: a node does not answer.
    """
    live = " ".join(found.id for found in slurm_queue.jobs() if not found.is_over)
    docker = {name: " ".join(engine.command) for name, engine in fleet.engines.items()}
    argv = {
        name: ("sh", "-c", READY, "sh", job, f"{job} {live}", docker.get(name, ""))
        for name in names
    }
    limit_s = COMMAND_S + (PATIENCE.end_s if fleet.engines else SUPERVISOR_S)
    answers = fleet.ask(argv, limit_s)
    settled(answers)
    said = {
        answer.node: answer.checked().stdout.decode(errors="replace").splitlines()
        for answer in answers
    }
    _check_leftovers(said, request)
    return parse_listening(line for lines in said.values() for line in lines)


def node_states(nodes: Sequence[str]) -> dict[str, str]:
    """Query the states of nodes, such as ``ALLOCATED`` or ``DOWN*``; ``*``: it is silent."""
    said = slurm_queue.call(
        "sinfo", "-h", "-N", "-n", ",".join(nodes), "-o", "%N|%T", patience_s=0.0
    )
    lines = (line.partition("|") for line in said.splitlines())
    return {name.strip(): state.strip().upper() for name, _, state in lines}


def health(job: Mapping[str, str], nodes: Sequence[str]) -> dict[str, str]:
    """Query the states of nodes; DOWN for a node that Slurm has taken from the job.

    A job with ``--no-kill`` loses a node that fails, which may be up again a moment later.

    Args:
        job: its fields.
    """
    states = node_states(nodes)
    kept = slurm_queue.names(job["NodeList"]) if "NodeList" in job else nodes
    return {node: states.get(node, "") if node in kept else "DOWN" for node in nodes}


def is_down(state: str) -> bool:
    """Return whether a node in this state cannot be relied on to run a task."""
    return state.startswith(_DOWN) or state.endswith("*")


def are_down(listed: str) -> bool:
    """Return True if Slurm can rely on none of these nodes, listed as squeue prints them."""
    nodes = slurm_queue.names(listed)
    states = node_states(nodes) if nodes else {}
    return bool(states) and all(map(is_down, states.values()))


def _check_leftovers(said: dict[str, list[str]], request: Request) -> None:
    """Log what was ended; refuse nodes on which something is left."""
    for node, lines in said.items():
        for line in lines:
            if line.startswith("ended "):
                LOGGER.debug("%s: left by an earlier gang: %s", node, line)
            elif line.startswith("left "):
                name = line.removeprefix("left ")
                raise errors.LeftoverError(
                    f"container {name} of an earlier gang does not end",
                    code="UNKILLABLE",
                    node=node,
                    trial=request.trial,
                    fix=f"docker rm --force {name}",
                )
