"""A program that prints a whole log and exits, at once or after a sleep, for what a trial costs."""

from collections.abc import Mapping

from pydantic import Field

from orchestrator import logs
from orchestrator.launchers import replicate
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Placement, Seat
from orchestrator.model.text import Noun
from orchestrator.workloads import Workload


class Params(Noun):
    """How long the program sleeps: with a number of ranks that 3 divides; else up to twice that."""

    seconds: float = Field(default=0, ge=0)


def command(case: Case, _method: Method, placement: Placement) -> Command:
    """Sleep, print a log and exit."""
    seconds = Params.model_validate(case.given).seconds * (1 + case.world_size % 3 / 2)
    program = ("sh", f"{placement.code}/print.sh", str(case.world_size), f"{seconds:g}")
    return Command(agent=(), program=program)


def env(_case: Case, _placement: Placement, _seat: Seat) -> Mapping[str, str]:
    """Nothing."""
    return {}


WORKLOAD = Workload(
    name="instant",
    title="A log, printed at once",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked - 1,
    launcher=replicate,
    port=lambda _: 24333,
    command=command,
    env=env,
    devices=frozenset({"cpu"}),
    axes=frozenset(),
    log_prefix="instant",
    read=logs.reader(logs.DLLOGGER, (2, 8)),
    progress=logs.progress(logs.DLLOGGER),
)
