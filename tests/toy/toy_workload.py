"""A workload of a second or less that behaves, or misbehaves, as its parameters say."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from orchestrator import logs
from orchestrator.launchers import torchrun
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Command, Mount, Placement, Seat
from orchestrator.model.text import Noun
from orchestrator.workloads import Workload

PORT = int(os.environ.get("TOY_PORT", "23333"))
Behaviour = Literal[
    "good",
    "fails",
    "hangs",
    "mute",
    "deaf",
    "killed",
    "crashes",
    "noisy",
    "short",
    "detached",
    "wordy",
    "greedy",  # its last rank takes 600 MB
    "slow-right",  # three times slower on the node of that name
    "slow-fabric",  # thirty times slower where more than two nodes run, one of them n8
]


class Params(Noun):
    """How the program behaves, and how long a step takes."""

    behaviour: Behaviour = "good"
    step_s: float = Field(default=0.005, ge=0)


def command(case: Case, method: Method, placement: Placement) -> Command:
    """The toy's own agent; it forks the ranks itself."""
    params = Params.model_validate(case.given)
    return Command(
        agent=(placement.python, "-S", f"{placement.code}/program.py"),
        program=(
            f"--behaviour={params.behaviour}",
            f"--step-s={params.step_s}",
            f"--batch={case.micro_batch_size}",
            f"--prof={method.iterations}",
        ),
    )


def env(_case: Case, _placement: Placement, _seat: Seat) -> Mapping[str, str]:
    """Nothing."""
    return {}


def mounts(_case: Case, seat: Seat) -> tuple[Mount, ...]:
    """Whatever data the inventory names, which the toy never reads."""
    return tuple(Mount(path, f"/data/{name}", read_only=True) for name, path in seat.data.items())


WORKLOAD = Workload(
    name="toy",
    title="A toy of the tests",
    params=Params,
    unit="images/s",
    last_iteration=lambda asked: asked - 1,
    launcher=torchrun,
    port=lambda _: PORT,
    command=command,
    env=env,
    mounts=mounts,
    devices=frozenset({"cpu"}),
    axes=frozenset(),
    log_prefix="toy",
    read=logs.reader(logs.DLLOGGER, (2, 8)),
    fabric=logs.fabric,
    progress=logs.progress(logs.DLLOGGER),
)


def last_speaks(case: Case, method: Method, placement: Placement) -> Command:
    """The toy whose last rank prints, as Megatron-LM's does."""
    said = command(case, method, placement)
    return replace(said, program=(*said.program, "--last-speaks"))


LAST = replace(WORKLOAD, name="toy_last", command=last_speaks, log_node="last")


def _format_of_the_docs() -> logs.Format:
    """Return the format that the only block of Python in the page about formats describes."""
    page = Path(__file__).parents[2] / "docs/adding-a-log-format.md"
    (text,) = re.findall(
        r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    names: dict[str, object] = {}
    exec(compile(text, page.name, "exec"), names)
    found = names["PLAIN"]
    assert isinstance(found, logs.Format)
    return found


def plain(case: Case, method: Method, placement: Placement) -> Command:
    """Start the toy so that it prints that format."""
    started = command(case, method, placement)
    return replace(started, program=(*started.program, "--plain"))


PLAIN = replace(
    WORKLOAD,
    name="toy_plain",
    command=plain,
    last_iteration=lambda steps: steps,
    read=logs.reader(_format_of_the_docs(), (2, 8)),
    progress=logs.progress(_format_of_the_docs()),
)

# It claims a unit that is the same for any number of ranks, which its throughput is not.
FABRIC = replace(WORKLOAD, name="toy_fabric", unit="GB/s")
