"""A program that prints a whole log and exits at once, for measuring what a trial costs besides."""

from collections.abc import Mapping

from orchestrator import logs
from orchestrator.launchers import replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Mount, Placement, Seat
from orchestrator.model.text import Noun
from orchestrator.workloads import Workload


class Params(Noun):
    """None."""


def command(case: Case, _method: Method, placement: Placement) -> Command:
    """Print a log and exit."""
    program = ("sh", f"{placement.code}/print.sh", str(case.world_size))
    return Command(agent=(), program=program)


def env(_case: Case, _placement: Placement, _seat: Seat) -> Mapping[str, str]:
    """Nothing."""
    return {}


def mounts(_case: Case, _seat: Seat) -> tuple[Mount, ...]:
    """None."""
    return ()


WORKLOAD = Workload(
    name="instant",
    title="A log, printed at once",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked - 1,
    launcher=replicate.launch,
    port=lambda _: 24333,
    command=command,
    env=env,
    mounts=mounts,
    data=lambda _: (),
    devices=frozenset({"cpu"}),
    axes=frozenset(),
    log_prefix="instant",
    read=logs.reader(logs.DLLOGGER, (2, 8)),
    progress=logs.progress(logs.DLLOGGER),
)
