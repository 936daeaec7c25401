"""compare: whether two sweeps differ, case by case, and whether that can be told."""

from pathlib import Path

from orchestrator import disk, errors, words
from orchestrator.collecting import sides
from orchestrator.comparing import forms
from orchestrator.comparing.comparison import Comparison, compare_sides
from orchestrator.console import Voice
from orchestrator.state.store import Store


def compare(
    store: Store,
    first: str,
    second: str,
    voice: Voice,
    *,
    bound: float | None = None,
    slower: float | None = None,
    markdown: Path | None = None,
) -> int:
    """Compare two sides, show and write what was found; exit code.

    Args:
        bound: up to which a difference is noise, such as 0.02; None: the usual one.
        slower: the gate's limit, such as 0.03; None without a gate.
        markdown: file to write.

    Raises:
        UsageError: a side cannot be found, they cannot be compared, or have no case in common.
    """
    here, there = sides.both(store, first, second)
    comparison = compare_sides(here, there, slower, bound)
    if not comparison.rows:
        raise errors.UsageError(
            f"{first} and {second} have no case in common",
            code="NOT-COMPARABLE",
            fix="compare sweeps of the same cases: `dlperf-orch collect` shows those of each",
        )
    show(comparison, voice)
    if markdown:
        fix = "choose another --markdown"
        with disk.on_disk(markdown, fix=fix), disk.replacing(markdown) as file:
            file.write(forms.render_markdown(comparison).encode())
    voice.document(forms.build_document(comparison))
    return comparison.exit_code


def show(comparison: Comparison, voice: Voice) -> None:
    """Print a comparison as a table with its remarks."""
    for line in forms.describe_sides(comparison):
        voice.result(line)
    title = f"{words.count(len(comparison.rows), 'case')}, {comparison.first.unit}; {forms.HIGHER}"
    voice.table(title, forms.HEAD, forms.build_rows(comparison), spare=forms.SPARE)
    for text in forms.list_remarks(comparison):
        voice.result(text)
    if comparison.gate:
        voice.result(comparison.gate)
