"""Shared by OneFlow's programs: how ranks find each other, and unsupported versions."""

from collections.abc import Iterator, Mapping
from typing import Literal

from orchestrator.launchers import gang_env
from orchestrator.model.case import Case
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Placement, Seat
from orchestrator.model.text import Count, Noun
from orchestrator.workloads import Published

_PRINT_EVERY = 20


class Params(Noun):
    """The parameters that a playbook may give ResNet-50 and BERT."""

    release: Literal["0.1.9", "0.2.0"] = "0.1.9"
    """The version of OneFlow in the image; its options differ."""
    print_every: Count = _PRINT_EVERY
    """Iterations from one line of the log to the next; windows begin and end at such lines."""


def is_old(case: Case) -> bool:
    """Return True for 0.1.9, which measured the reports of August 2020, with a fixed port.

    0.2.0 measured those from October on, AMP among them.
    """
    return case.given.get("release") != "0.2.0"


def port(case: Case) -> int:
    """Return the control port, which is fixed in the program of 0.1.9."""
    return 12138 if is_old(case) else 50051


def node_ips(placement: Placement) -> str:
    """Join the nodes' addresses, leader first: a rank is a place in it, and blanks break it."""
    return ",".join(seat.address for seat in placement.seats)


def environment(case: Case, placement: Placement, seat: Seat) -> Mapping[str, str]:
    """Return the common environment with the variables of OneFlow-Benchmark's scripts.

    Source: OneFlow-Benchmark, rn50_train.sh and bert_base_pretrain.sh.
    """
    ours = {"PYTHONUNBUFFERED": "1", "NCCL_LAUNCH_MODE": "PARALLEL"}
    return {**gang_env.environment(case, placement, seat), **ours}


def unsupported(case: Case, method: Method, *, base: int) -> Iterator[str]:
    """Yield AMP if the version has none, and windows that end between printed lines.

    Args:
        base: the number of the first iteration.
    """
    if is_old(case) and case.precision != "fp32":
        yield f"precision {case.precision} with OneFlow 0.1.9; needed fp32, or release 0.2.0"
    every = int(case.given.get("print_every", _PRINT_EVERY))
    printed = range(base + every - 1, base + method.iterations, every)
    off = [end for end in method.window or () if end not in printed]
    if off and method.window:
        first, last = method.window
        nearest = [min(printed, key=lambda number: abs(number - end)) for end in method.window]
        yield (
            f"window [{first}, {last}]; the program prints every {every} iterations from"
            f" {printed.start} on, needed such as {nearest}"
        )


def published(case: Case, model: str) -> Published:
    """Return the published names of a case: of its release, or of all if none is given.

    Logs do not say the release that wrote them. Reports of 0.3.1 call AMP by its loss scale.
    """
    patterns = {
        "0.1.9": ("oneflow-0.1.9",),
        "0.2.0": ("oneflow-0.2.0*", "oneflow-0.3.1*", "oneflow-0.4.0*"),
    }
    words = ("fp32",) if case.precision == "fp32" else ("amp", "amp-dynamic")
    return Published(patterns.get(str(case.given.get("release")), ("oneflow-*",)), model, words)
