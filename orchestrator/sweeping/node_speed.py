"""Measure the speed of nodes: on each alone, in pairs, and on all of them together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from orchestrator import errors, nodeset, words
from orchestrator.collecting import report_files
from orchestrator.console import Voice
from orchestrator.inputs import sites, user_files
from orchestrator.measuring import node_speeds
from orchestrator.measuring.node_speeds import Group
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.report import Report
from orchestrator.planning import matrix
from orchestrator.report import document
from orchestrator.state.store import Store
from orchestrator.sweeping import loop
from orchestrator.sweeping.campaign import HeldNodes
from orchestrator.sweeping.requested import SweepOptions, resolve

PLAYBOOKS = ("node-speed", "all-reduce")
BANDWIDTH = "GB/s"
TURNS = 3  # trials of each node: what varies between them tells a slow node from chance
ROUNDS = 6  # of pairs: each node has as many partners, where there are so many


def list_shipped(cluster: Cluster) -> tuple[str, ...]:
    """Return the shipped playbooks that can measure these nodes: one GPU alone has no fabric.

    Raises:
        UsageError: NO-CASE; none of them can.
    """
    found = tuple(name for name in PLAYBOOKS if _cases(user_files.playbook(name), cluster))
    if not found:
        raise _no_case(f"playbooks {' and '.join(PLAYBOOKS)} have", cluster)
    return found


def measure(
    store: Store, inventory: str, nodes: str | None, playbook: str, voice: Voice
) -> tuple[list[int], dict[str, object]]:
    """Run new sweeps of the playbook on the nodes of an inventory, and show what they reached.

    Nodes alone run a case with as many GPUs as every node has. Where the playbook packs
    ``disjoint``, pairs follow, in rounds of new partners; and where it measures a bus bandwidth,
    which is the same for any number of nodes, all of them together. Groups that are slow beside the
    pairs are halved; of an odd number of nodes one is in both halves.

    Returns:
        Exit codes, and what was measured, as JSON.

    Raises:
        UsageError: NO-PACK, NO-CASE; the playbook cannot measure these nodes side by side.
    """
    cluster = sites.narrow(user_files.cluster(inventory)[0], nodes)
    found = user_files.playbook(playbook)
    cases, count = _cases(found, cluster), len(cluster.members)
    if not cases:
        raise _no_case(f"playbook {playbook} has", cluster)
    reports, together, groups = list[Report](), list[Report](), list[Group]()
    with HeldNodes(store, voice) as held:

        def sweep(case: Case, repeats: int, *, new: bool = True, on: Sequence[str] = ()) -> Report:
            options = SweepOptions(
                *(playbook, inventory, (case.placement,), repeats, new),
                nodes=",".join(on) or nodes,
                like=None if case in cases.values() else cases[2].placement,
            )
            return loop.run(held, resolve(store, options, voice))[1]

        if 1 in cases:
            reports.append(sweep(cases[1], TURNS * count))
        if 2 in cases:
            for turn in range(1, ROUNDS + 1):  # in turn, or each pair would meet itself again
                pairs = sweep(cases[2], turn * (count // 2), new=turn == 1)
            reports.append(pairs)
        has_groups = 2 in cases and count > 2 and found.workload.unit == BANDWIDTH
        todo: list[tuple[int, Sequence[str]]] = [(count, ())] if has_groups else []
        for size, on in todo:
            together.append(sweep(replace(cases[2], nodes=size), 2 if on else 1, on=on))
            new = node_speeds.compare_groups(pairs.results[0], together[-1].results)
            groups += new
            half = (size + 1) // 2
            todo += [(half, group.nodes) for group in new if group.is_slow and half > 2]
    for report in reports:
        _show_nodes(report, voice)
    cells = [
        (nodeset.fold(it.nodes), f"{it.busbw:.3g}", f"{it.share:.0%}", "slow" if it.is_slow else "")
        for it in groups
    ]
    head = ("nodes together", "GB/s", "of the median of pairs", "")
    voice.table(f"Nodes together, by {playbook}", head, cells)
    whole = [*reports, *together]
    slow = [*_describe_slow(groups, whole)]
    for line in slow:
        voice.line(line)
    is_slow = bool(slow) or any(it.is_slow for report in reports for it in report.node_speeds)
    are_valid = all(trial.state == "valid" for report in whole for trial in report.trials)
    return [0 if are_valid else 3, 5 if is_slow else 0], {
        "nodes": [document(report) for report in reports],
        "groups": [asdict(group) for group in groups],
    }


def _cases(playbook: user_files.Playbook, cluster: Cluster) -> Mapping[int, Case]:
    """Return, by number of nodes, the case with the most GPUs that every node has."""
    experiment = playbook.experiment
    if experiment.method.pack == "none":
        raise errors.UsageError(
            f"playbook {playbook.name} runs one trial at a time",
            code="NO-PACK",
            fix="give one with `pack: one-node` or `disjoint` in its method, such as the shipped"
            f" {' and '.join(PLAYBOOKS)}",
        )
    most = len(cluster.members) if experiment.method.pack == "disjoint" else 1
    found = {
        case.nodes: case
        for case in sorted(matrix.cases(experiment), key=lambda case: case.gpus_per_node)
        if case.nodes <= most and (case.device != "cuda" or case.gpus_per_node <= _gpus(cluster))
    }
    return found if {1, 2} & {*found} else {}


def _no_case(who: str, cluster: Cluster) -> errors.UsageError:
    return errors.UsageError(
        f"{who} no case that measures {words.count(len(cluster.members), 'node')} with at most"
        f" {_gpus(cluster)} GPUs each",
        code="NO-CASE",
        fix="name one with --by that has a case of one node, or `pack: disjoint` and one of two",
    )


def _gpus(cluster: Cluster) -> int:
    return min(len(node.usable_gpus) for node in cluster.members)


def _show_nodes(found: Report, voice: Voice) -> None:
    result, statistics = found.results[0], found.results[0].statistics
    reached = f", median {statistics.median:.4g} {found.unit}" if statistics else ""
    title = f"Speed of every node, by {found.source}: {result.case.placement}{reached}"
    head = ("node", "trials", "speed over the median node", "")
    rows = [
        (it.node, str(it.trials), f"{it.speed:.3f}", "slow" if it.is_slow else "")
        for it in found.node_speeds
    ]
    voice.table(title, head, rows)
    for mark in found.marks:
        voice.line(f"{mark.code}: {mark.message}")
    report_files.say_reasons(found, voice)


def _describe_slow(groups: Sequence[Group], reports: Sequence[Report]) -> Iterator[str]:
    for group in node_speeds.find_smallest_slow(groups):
        share, least = words.apart(group.share, node_speeds.LEAST_SHARE, "%", 0)
        yield (
            f"FABRIC-SLOW: {nodeset.fold(group.nodes)} together reach {group.busbw:.3g} GB/s,"
            f" {share} of what pairs reach; needed {least}"
        )
    for found in reports:
        published = node_speeds.find_better_published(found)
        if published is not None and found.unit == BANDWIDTH:
            (result,) = found.results
            yield (
                f"BUSBW-LOW: {result.case.placement} reaches {result.median or 0.0:.4g} GB/s;"
                f" needed {node_speeds.LEAST_OF_PUBLISHED:.0%} of {published.throughput:g}, the"
                f" lowest published ({published.source})"
            )
