"""compare: whether two sweeps differ, case by case, and whether that can be told."""

import re
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import disk, errors, report, words
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import INVENTORIES, SWEEPS, Nodes, Repeats, needs
from orchestrator.collecting.sweep import measured
from orchestrator.comparing import forms, sides
from orchestrator.comparing.comparison import compare_sides
from orchestrator.state import records
from orchestrator.state.archives import opened
from orchestrator.state.store import Store

_PERCENT = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,4})?)%?")
Side = "A sweep (id, its beginning, folder, playbook), an archive, or a results.json."


def percent(text: str) -> float:
    """Parse the share in ``3%`` or ``3``."""
    found = _PERCENT.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"got {text!r}; needed percent below 100, such as 3% or 0.5%")
    return float(found[1]) / 100


@command(
    "compare",
    "compare before.tar.zst after.tar.zst --fail-if-slower 3%",
    "compare today yesterday.tar.zst --bound 2%",
)
def compare(
    face: Face,
    first: Annotated[str, typer.Argument(metavar="A", help=Side, autocompletion=SWEEPS)],
    second: Annotated[str, typer.Argument(metavar="B", help=Side, autocompletion=SWEEPS)],
    bound: Annotated[
        float | None,
        typer.Option(parser=percent, metavar="PERCENT", help="Noise; default: 1%."),
    ] = None,
    fail_if_slower: Annotated[
        float | None,
        typer.Option(parser=percent, metavar="PERCENT", help="Exit 3 if B is slower by more."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a page of Markdown here.")] = None,
    interleave: Annotated[
        bool, typer.Option("--interleave", help="First run A and B, or PLAYBOOK=IMAGE, in turns.")
    ] = False,
    inventory: Annotated[
        str | None, typer.Option(help="With --interleave: where.", autocompletion=INVENTORIES)
    ] = None,
    repeats: Repeats = None,
    nodes: Nodes = None,
) -> int:
    needs("--interleave", interleave, inventory=inventory, repeats=repeats, nodes=nodes)
    store, voice = face.store, face.voice
    if interleave:
        from orchestrator.sweeping import turns

        ended = turns.take(store, (first, second), inventory, nodes, repeats, voice)
        first, second = (sweep.id for sweep in ended)
    read = {name: _read_side(store, name) for name in dict.fromkeys((first, second))}
    here, there = read[first], read[second]
    comparison = compare_sides(here, there, fail_if_slower, bound)
    if here.unit != there.unit or not comparison.rows:
        raise errors.UsageError(
            f"{first} (in {here.unit}) and {second} (in {there.unit}) have no case in common",
            code="NOT-COMPARABLE",
            fix="compare sweeps of the same cases: `dlperf-orch collect` shows those of each",
        )
    for line in forms.describe_sides(comparison):
        voice.result(line)
    title = f"{words.count(len(comparison.rows), 'case')}, {comparison.first.unit}; {forms.HIGHER}"
    voice.table(title, forms.HEAD, forms.build_rows(comparison), spare=forms.SPARE)
    for text in forms.list_remarks(comparison):
        voice.result(text)
    if comparison.gate:
        voice.result(comparison.gate)
    if markdown:
        with disk.replacing(markdown, fix="choose another --markdown") as file:
            file.write(forms.render_markdown(comparison).encode())
    voice.document(forms.build_document(comparison))
    return comparison.exit_code


def _read_side(store: Store, name: str) -> sides.Side:
    """Measure a sweep or an archive again from its logs, or read a results.json."""
    path = Path(name)
    if not name.endswith(".json") or not path.is_file():
        with opened(store, name) as opening:
            return sides.measured(report.document(measured(opening.sweep)), name)
    with disk.on_disk(path, "LOCAL-FILE", "make it readable for this user"):
        content = path.read_bytes()
    try:
        return sides.measured(records.document(content), name)
    except ValueError as error:
        raise errors.UsageError(
            f"{name} is no results.json: {error}",
            code="NO-RESULTS",
            fix="name a results.json or a sweep",
        ) from error
