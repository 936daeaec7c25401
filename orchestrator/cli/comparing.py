"""The command that compares what was measured."""

import re
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.command import Face, command
from orchestrator.cli.options import INVENTORIES, SWEEPS, Nodes, Repeats, needs
from orchestrator.signals import SIGNALS

app = typer.Typer()
_PERCENT = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,4})?)%?")
Side = "A sweep (id, its beginning, folder, playbook), an archive, or a results.json."


def percent(text: str) -> float:
    """Parse the share in ``3%`` or ``3``.

    Raises:
        BadParameter: it is not of that form.
    """
    found = _PERCENT.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"got {text!r}; needed percent below 100, such as 3% or 0.5%")
    return float(found[1]) / 100


@command(app)
def compare(
    face: Face,
    first: Annotated[str, typer.Argument(metavar="A", help=Side, autocompletion=SWEEPS)],
    second: Annotated[
        str, typer.Argument(metavar="B", help="What is compared with A.", autocompletion=SWEEPS)
    ],
    bound: Annotated[
        float | None,
        typer.Option(
            parser=percent,
            metavar="PERCENT",
            help="Differences up to this are noise; default: 1%.",
        ),
    ] = None,
    fail_if_slower: Annotated[
        float | None,
        typer.Option(
            parser=percent,
            metavar="PERCENT",
            help="Exit 3 if a case of B is slower by more than this, 5 if that cannot be told.",
        ),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a page of Markdown here.")] = None,
    interleave: Annotated[
        bool,
        typer.Option(
            "--interleave", help="First run playbooks A and B, or PLAYBOOK=IMAGE, in turns."
        ),
    ] = False,
    inventory: Annotated[
        str | None, typer.Option(help="With --interleave: where.", autocompletion=INVENTORIES)
    ] = None,
    repeats: Repeats = None,
    nodes: Nodes = None,
) -> int:
    """Compare two sweeps. Different, the same, or too few trials to tell."""
    needs("--interleave", interleave, inventory=inventory, repeats=repeats, nodes=nodes)
    if interleave:
        from orchestrator.sweeping import turns
        from orchestrator.sweeping.requested import Caller

        options = turns.TurnOptions(first, second, inventory, nodes, repeats)
        ended = turns.take(face.store, options, Caller(face.voice, SIGNALS))
        first, second = (sweep.id for sweep in ended)
    from orchestrator.verbs import compare as verb

    return verb.compare(
        face.store,
        first,
        second,
        face.voice,
        bound=bound,
        slower=fail_if_slower,
        markdown=markdown,
    )
