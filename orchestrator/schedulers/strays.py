"""Find tasks on nodes by their marks and labels alone, and end those of given sweeps.

Every function raises a NodeError where a node does not answer, and those that end tasks a
LeftoverError where some processes could not be ended.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator import errors, nodeset, words
from orchestrator.deadlines import COMMAND_S
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.model.findings import found
from orchestrator.model.plan import Seat
from orchestrator.model.process import Holder
from orchestrator.model.site import Finding
from orchestrator.runtimes import marks
from orchestrator.state.store import SWEEP_ID

LABEL, JOB = "dlperf.sweep", "dlperf.job"
DATA = "data"  # in place of a sweep's id: the preparation of a data set
_TASK = re.compile(rf"dlp-({DATA}|{SWEEP_ID.pattern})-", re.ASCII)
_DATA_SET = re.compile(rf"dlp-{DATA}-(\w+)-", re.ASCII)  # any process may have any mark
# $1: the folder of a sweep on a node. Removes private keys and the gates of killed supervisors.
FORGET_KEYS = """
find "$1/attempts" -xdev \\( -type f \\( -name id -o -name "*host_key" \\) -o -type p \\) \
    -exec rm -f -- {} + 2>/dev/null
true
"""


@dataclass(frozen=True, slots=True)
class MarkedTask:
    """A task on a node: processes that carry its mark, or a container that carries its label.

    Args:
        marks: what is known of it: owner (the record of who started it), deadline (when it ends by
            itself, in seconds since the epoch), job (of Slurm's), and of processes lock, where its
            controller has this machine's lock, if not at its usual place.
    """

    name: str
    sweep: str  # its id, or ``DATA``; empty if the name is in no form of ours
    marks: Mapping[str, str]
    state: str = ""  # of its container, such as ``exited``; empty without one


def find_tasks(fleet: Fleet, node: str, label: str = LABEL) -> tuple[MarkedTask, ...]:
    """Find the tasks on a node, of any sweep and state folder; containers by a label.

    A silent engine hides only containers that have ended: processes in the others have their marks.
    """
    found: dict[str, MarkedTask] = {}
    for known in marks.listed(fleet.transports[node]):
        name, sweep = known["task"], _TASK.match(known["task"])
        if name in found:  # an observer has fewer marks than a supervisor
            known |= found[name].marks
        found[name] = MarkedTask(name, sweep[1] if sweep else "", known)
    with contextlib.suppress(errors.UnfitError):
        for listed in fleet.containers[node].labelled(label) if node in fleet.engines else ():
            known = {name.removeprefix("dlperf."): value for name, value in listed.labels.items()}
            found[listed.name] = MarkedTask(
                listed.name, known.get("sweep", ""), known, listed.state
            )
    # A name that contains the sweep's id or the data set says more than a launcher's.
    return tuple(found[name] for name in sorted(found, key=lambda it: (not _TASK.match(it), it)))


def others(fleet: Fleet, ours: Collection[str], inventory: str) -> tuple[Finding, ...]:
    """Return a finding per sweep of another state folder that runs on nodes, and per preparation.

    Measuring at the same time would give a wrong number. Processes under another lock of this
    machine (``DLPERF_LOCK``) are none of ours, as of tests beside a sweep.

    Args:
        ours: ids of this state folder's sweeps.
    """
    answers = ask_all(list(fleet.transports), lambda node: find_tasks(fleet, node))
    settled(answers)
    lock, by_sweep = os.environ.get("DLPERF_LOCK", ""), dict[str, dict[str, MarkedTask]]()
    for answer in answers:
        for task in answer.checked():
            is_apart = task.sweep != DATA and task.marks.get("lock", "") != lock
            is_running = task.state in ("", "running", "paused", "restarting")
            if is_running and task.sweep not in ours and not is_apart:
                by_sweep.setdefault(task.sweep, {}).setdefault(answer.node, task)
    return tuple(_finding(sweep, tasks, inventory) for sweep, tasks in by_sweep.items())


def _finding(sweep: str, tasks: Mapping[str, MarkedTask], inventory: str) -> Finding:
    """Describe what runs of a sweep by one of its tasks on each node."""
    where, task = nodeset.fold(tasks), next(iter(tasks.values()))
    owner = Holder.read(task.marks.get("owner", ""))
    if sweep == DATA:
        named = _DATA_SET.match(task.name)
        dataset = named[1] if named else "NAME"
        return found(
            "PREPARING",
            where,
            f"data set {dataset} is being prepared on the node, by {owner or 'an unknown user'}",
            "nodes that do nothing else",
            f"wait for its end; or run `dlperf-orch data prepare {dataset}` again, which finds the"
            " work, and press Ctrl-C",
        )
    by = f"{owner}, state folder {owner.folder}" if owner else "an unknown user"
    until, deadline = "it has no known deadline", task.marks.get("deadline", "")
    if deadline.isdecimal() and len(deadline) < 12:
        at = datetime.fromtimestamp(int(deadline), UTC)
        until = f"it ends by itself at {at:%Y-%m-%d %H:%M:%S} UTC at the latest"
    fix = f"find out whose it is, then `docker rm --force {shlex.quote(task.name)}` there"
    if SWEEP_ID.fullmatch(sweep):
        there = "` where it was started"
        if owner is not None:
            there = f" --state {shlex.quote(owner.folder)}` on {owner.process.host}"
        lost = f"if that folder is lost: `dlperf-orch stop {sweep} --on {shlex.quote(inventory)}`"
        fix = f"`dlperf-orch stop {sweep}{there}; {lost}"
    task_name, name = words.printable(task.name), words.printable(sweep or task.name)
    seen = f"{task_name} of sweep {name} runs on the node, started by {by}; {until}"
    return found("OTHER-GANG", where, seen, "no gang of another state folder", fix)


def end(
    fleet: Fleet, seats: Iterable[Seat], sweep_ids: Collection[str]
) -> Mapping[str, tuple[str, ...]]:
    """End what runs for these sweeps, and remove its private keys and gates; logs stay.

    Return the names of the tasks that were ended or removed, by node.
    """
    folders = {seat.node: [f"{seat.root}/{sweep_id}" for sweep_id in sweep_ids] for seat in seats}
    return _end(fleet, folders, lambda _, task: task.sweep in sweep_ids)


def end_jobs(fleet: Fleet, nodes: Sequence[str], job: str, live: Collection[str]) -> None:
    """End what earlier gangs of a job left on its nodes, and gangs of jobs that are over.

    Args:
        live: ids of the user's jobs that are not over.
    """
    user = f"{os.getuid()}:{os.getgid()}"

    def is_left(node: str, task: MarkedTask) -> bool:
        of = task.marks.get("job", "")
        if not of or (of != job and of in live):
            return False
        if not task.state:
            return True
        with contextlib.suppress(errors.UnfitError):
            state = fleet.containers[node].find(task.name)
            return state is not None and state.user == user  # else its user may end it
        return False

    _end(fleet, dict.fromkeys(nodes, ()), is_left, JOB)


def _end(
    fleet: Fleet,
    folders: Mapping[str, Iterable[str]],
    is_left: Callable[[str, MarkedTask], bool],
    label: str = LABEL,
) -> Mapping[str, tuple[str, ...]]:
    """End tasks of which ``is_left`` is true, on all nodes at once; return their names by node.

    A silent engine keeps the containers, in which nothing runs then; another call removes them.
    """

    def end_on(node: str) -> tuple[str, ...]:
        names = tuple(task.name for task in find_tasks(fleet, node, label) if is_left(node, task))
        for name in names:
            with contextlib.suppress(errors.UnfitError):
                if node in fleet.engines:
                    fleet.containers[node].remove(name)
            marks.kill(fleet.transports[node], name, node=node)
        for folder in folders[node]:
            argv = ("sh", "-c", FORGET_KEYS, "sh", folder)
            fleet.transports[node].run(argv, timeout_s=COMMAND_S)
        return names

    answers = ask_all(list(folders), end_on)
    settled(answers)
    return {answer.node: answer.value for answer in answers if answer.value}
