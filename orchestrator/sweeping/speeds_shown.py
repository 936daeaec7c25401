"""Show what ``provision --measure`` found, as tables and as a document."""

from collections.abc import Sequence
from dataclasses import asdict

from orchestrator import nodeset, report, words
from orchestrator.collecting import show as sweep_shown
from orchestrator.console import Voice
from orchestrator.measuring import node_speeds
from orchestrator.measuring.node_speeds import Group
from orchestrator.model.problem import Problem
from orchestrator.model.report import PublishedResult, Report
from orchestrator.sweeping.node_speed import Speeds


def show(voice: Voice, playbook: str, speeds: Speeds) -> None:
    """Print tables of nodes and of groups of nodes, and their problems."""
    for found in speeds.nodes:
        _show_nodes(voice, found)
    if groups := speeds.groups:
        _show_groups(voice, playbook, groups)
    for problem in map(_short, speeds.short):
        voice.line(f"{problem.code}: {problem.message}")


def document(speeds: Speeds) -> dict[str, object]:
    return {
        "nodes": [report.document(found) for found in speeds.nodes],
        "groups": [asdict(group) for group in speeds.groups],
    }


def _show_groups(voice: Voice, playbook: str, groups: Sequence[Group]) -> None:
    rows = [
        (
            nodeset.fold(group.nodes),
            f"{group.busbw:.3g}",
            f"{group.share:.0%}",
            "slow" if group.is_slow else "",
        )
        for group in groups
    ]
    head = ("nodes together", "GB/s", "of the median of pairs", "")
    voice.table(f"Nodes together, by {playbook}", head, rows)
    for group in node_speeds.find_smallest_slow(groups):
        problem = _slow(group)
        voice.line(f"{problem.code}: {problem.message}")


def _slow(group: Group) -> Problem:
    share, least = words.apart(group.share, node_speeds.LEAST_SHARE, "%", 0)
    return Problem(
        "FABRIC-SLOW",
        f"{nodeset.fold(group.nodes)} together reach {group.busbw:.3g} GB/s,"
        f" {share} of what pairs reach; needed {least}",
    )


def _short(found: tuple[Report, PublishedResult]) -> Problem:
    (result,), published = found[0].results, found[1]
    median = result.median or 0.0
    return Problem(
        "BUSBW-LOW",
        f"{result.case.placement} reaches {median:.4g} GB/s; needed"
        f" {node_speeds.LEAST_OF_PUBLISHED:.0%} of {published.throughput:g}, the lowest published"
        f" ({published.source})",
    )


def _show_nodes(voice: Voice, found: Report) -> None:
    result = found.results[0]
    reached = f", median {result.statistics.median:.4g} {found.unit}" if result.statistics else ""
    rows = [
        (it.node, str(it.trials), f"{it.speed:.3f}", "slow" if it.is_slow else "")
        for it in found.node_speeds
    ]
    head = ("node", "trials", "speed over the median node", "")
    title = f"Speed of every node, by {found.source}: {result.case.placement}{reached}"
    voice.table(title, head, rows)
    for mark in found.marks:
        voice.line(f"{mark.code}: {mark.message}")
    sweep_shown.say_reasons(found, voice)
