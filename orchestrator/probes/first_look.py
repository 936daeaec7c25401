"""The short look at data sets before any count: it tells a mount that hangs from a long count."""

from orchestrator.model.site import DataState
from orchestrator.probes.sections import Output, Section

LIMIT_S = 10
# A folder counts as readable if it can be listed in time: a stale mount never answers.
SCRIPT = r"""
[ -e "$1" ] || { echo missing; exit 0; }
[ -r "$1" ] || { echo unreadable; exit 0; }
[ -d "$1" ] || { echo present; exit 0; }
names=$(ls -AU -- "$1" 2>/dev/null) || { echo unreadable; exit 0; }
[ -n "$names" ] && echo present || echo empty
"""


def section(name: str, path: str) -> Section:
    """The question what lies at a path of a node."""
    return Section(name, ("sh", "-c", SCRIPT, "sh", path), LIMIT_S)


def state(output: Output) -> DataState:
    """What lies there; ``hung`` if the look did not end in time."""
    if output.exit_code is None:
        return "hung"
    states: tuple[DataState, ...] = ("present", "empty", "missing")
    return next((state for state in states if output.out.strip() == state), "unreadable")
