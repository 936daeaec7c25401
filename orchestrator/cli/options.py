"""Options of several commands, their completion and checks; what they do is in ``command``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.model.log import Rule

if TYPE_CHECKING:
    from orchestrator.collecting.logs import Reading
    from orchestrator.files import shipped

DEFAULT_STATE = Path(".dlperf")
_WINDOW = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


def _shipped(kind: "shipped.Kind") -> Callable[[], list[str]]:
    def names() -> list[str]:
        from orchestrator.files import shipped

        return list(shipped.names(kind))

    return names


def _workloads() -> list[str]:
    from orchestrator import workloads

    return list(workloads.names())


def _sweeps(context: typer.Context) -> list[str]:
    # By folder name: no record is read for a TAB.
    folder = Path(context.params.get("state") or DEFAULT_STATE)
    return sorted(path.parent.name for path in folder.glob("sweeps/*/sweep.json"))


def _state_folder(named: str | Path) -> Path:
    if not str(named):  # as from `--state "$UNSET"`; Path takes it for the working folder
        raise typer.BadParameter("got nothing; needed a folder, such as .dlperf")
    return Path(named)


def window(text: str | None) -> tuple[int, int] | None:
    """Parse the first and the last iteration of ``first:last``."""
    if text is None:
        return None
    found = _WINDOW.fullmatch(text)
    if not found or int(found[1]) >= int(found[2]):
        needed = "first:last iteration with the first before the last, such as 20:120"
        raise typer.BadParameter(f"got {text!r}; needed {needed}", param_hint="--window")
    return int(found[1]), int(found[2])


WHICH = "A sweep's id or its beginning, its folder, or a playbook's name; default: the newest."
PLAYBOOKS, INVENTORIES = _shipped("playbooks"), _shipped("inventory")
IMAGES = _shipped("images")
SWEEPS, WORKLOADS = _sweeps, _workloads

State = Annotated[
    Path,
    typer.Option(envvar="DLPERF_STATE", metavar="PATH", parser=_state_folder, help="State folder."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the debug log's lines.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Inventory = Annotated[str, typer.Argument(help="Path or name.", autocompletion=INVENTORIES)]
FitInventory = Annotated[
    str | None, typer.Option(help="Default: the last one fit.", autocompletion=INVENTORIES)
]
WHICH_FILE = "A sweep's id or its beginning, folder, playbook or archive; default: the newest."
Which = Annotated[str | None, typer.Argument(metavar="SWEEP", help=WHICH, autocompletion=SWEEPS)]
WhichFile = Annotated[
    str | None, typer.Argument(metavar="SWEEP", help=WHICH_FILE, autocompletion=SWEEPS)
]
Nodes = Annotated[str | None, typer.Option(help="Only these: names, globs, !NAME for all but one.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]
Repeats = Annotated[int | None, typer.Option(min=1, max=1000, metavar="N", help="Per case.")]
Strict = Annotated[bool, typer.Option("--strict", help="Leave out trials on marked nodes.")]
DataSet = Annotated[str, typer.Argument(help="Its name in inventories, such as imagenet.")]
Window = Annotated[str | None, typer.Option("--window", help="first:last iteration.")]
Logs = Annotated[Path | None, typer.Option(help="A folder of logs, without a sweep.")]
LogWorkload = Annotated[str | None, typer.Option(help="Their writer.", autocompletion=WORKLOADS)]
LogRule = Annotated[Rule | None, typer.Option(help="How throughput is taken from logs.")]


def needs(partner: str, given: bool, **options: object) -> None:
    """Refuse options, by their names in Python, that mean nothing without another."""
    for name, value in options.items():
        if value and not given:
            named = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{named} means nothing without {partner}")


def reading(
    sweep_id: str | Path | None,
    logs: Path | None,
    workload: str | None,
    between: str | None,
    rule: Rule | None,
) -> "Reading | None":
    """Return how to read a folder of logs, None for a sweep; refuse options of both."""
    from orchestrator.collecting.logs import Reading

    span = window(between)
    if (logs is None) != (workload is None) or (logs is None and (between or rule)):
        raise typer.BadParameter("--logs DIR and --workload NAME belong together")
    if logs is not None and sweep_id is not None:
        raise typer.BadParameter("either a sweep or --logs DIR")
    return None if workload is None else Reading(workload, span, rule)
