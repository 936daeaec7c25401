"""Tasks found on nodes by their sweep's id alone, for sweeps whose files cannot be read."""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.deadlines import COMMAND_S
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.runtimes.process import kill
from orchestrator.state.store import SWEEP_ID

LABEL = "dlperf.sweep"

# $1: sweeps, as an extended regular expression. Prints the task of each process, by the environment
# variables DLPERF_TASK and DLPERF_SUPERVISOR.
TASKS = """
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' |
    sed -nE "s/^DLPERF_(TASK|SUPERVISOR)=(dlp-($1)-.*)/\\2/p" | sort -u
"""


def running(fleet: Fleet, node: str, sweep_ids: Iterable[str]) -> tuple[str, ...]:
    """Names of the containers and processes that run on a node for these sweeps.

    Raises:
        NodeError: the node does not answer.
    """
    ids = [sweep_id for sweep_id in sweep_ids if SWEEP_ID.fullmatch(sweep_id)]
    if not ids:
        return ()
    pattern = "|".join(sweep_id.replace(".", "[.]") for sweep_id in ids)
    done = fleet.transports[node].run(("sh", "-c", TASKS, "sh", pattern), timeout_s=COMMAND_S)
    return tuple(done.stdout.decode(errors="replace").split())


def end(fleet: Fleet, sweep_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """End what runs for these sweeps, which would disturb what is measured. Files stay.

    Returns:
        By node, the names of the tasks that were ended.

    Raises:
        NodeError: a node does not answer.
        LeftoverError: some processes could not be ended.
    """
    answers = ask_all(list(fleet.transports), lambda node: _ended(fleet, node, sweep_ids))
    settled(answers)
    return {answer.node: answer.value for answer in answers if answer.value}


def _ended(fleet: Fleet, node: str, sweep_ids: Sequence[str]) -> tuple[str, ...]:
    names = running(fleet, node, sweep_ids)
    for name in names:
        if node in fleet.engines:
            fleet.containers[node].remove(name)
        kill(fleet.transports[node], name, node=node)
    return names
