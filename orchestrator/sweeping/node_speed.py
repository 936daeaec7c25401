"""Measure the speed of nodes: on each alone, in pairs, and on all of them together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from orchestrator import errors, nodeset, report, words
from orchestrator.collecting import report_files
from orchestrator.console import Voice
from orchestrator.inputs import sites, user_files
from orchestrator.measuring import node_speeds
from orchestrator.measuring.node_speeds import Group
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.report import PublishedResult, Report
from orchestrator.planning import matrix
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import run
from orchestrator.sweeping.requested import Caller, SweepOptions
from orchestrator.sweeping.under_way import HeldNodes

PLAYBOOKS = ("node-speed", "all-reduce")
BANDWIDTH = "GB/s"
TURNS = 3  # trials of each node: what varies between them tells a slow node from chance
ROUNDS = 6  # of pairs: each node has as many partners, where there are so many


@dataclass(frozen=True, slots=True)
class Speeds:
    """Hold the reports of one playbook.

    Args:
        nodes: a report of the nodes alone, and one of them in pairs, where the playbook has cases.
        together: reports of more nodes, the most first; of halves only where a group is slow.
    """

    nodes: tuple[Report, ...]
    together: tuple[Report, ...] = ()

    @property
    def groups(self) -> tuple[Group, ...]:
        """Return the groups of nodes that ran together, compared with the pairs."""
        together = (result for report in self.together for result in report.results)
        return node_speeds.compare_groups(self.nodes[-1].results[0], together)

    @property
    def short(self) -> tuple[tuple[Report, PublishedResult], ...]:
        """Return the reports of bandwidths below a published one, each with that result."""
        reports = (*self.nodes, *self.together)
        rows = ((report, node_speeds.find_better_published(report)) for report in reports)
        return tuple((report, row) for report, row in rows if row and report.unit == BANDWIDTH)

    @property
    def is_slow(self) -> bool:
        """Return True if any node, any group or the bandwidth of all nodes is too low."""
        slow = any(it.is_slow for report in self.nodes for it in report.node_speeds)
        return slow or any(group.is_slow for group in self.groups) or bool(self.short)

    @property
    def is_whole(self) -> bool:
        reports = (*self.nodes, *self.together)
        return all(trial.state == "valid" for report in reports for trial in report.trials)


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
    store: Store, inventory: str, nodes: str | None, playbook: str, caller: Caller
) -> Speeds:
    """Run new sweeps of the playbook on the nodes of an inventory; return their reports.

    Nodes alone run a case with as many GPUs as every node has. Where the playbook packs
    ``disjoint``, pairs follow, in rounds of new partners; and where it measures a bus bandwidth,
    which is the same for any number of nodes, all of them together. Groups that are slow beside the
    pairs are halved; of an odd number of nodes one is in both halves.

    Raises:
        UsageError: NO-PACK, NO-CASE; the playbook cannot measure these nodes side by side.
        DlperfError: as of any sweep.
    """
    cluster = sites.narrow(user_files.cluster(inventory)[0], nodes)
    found = user_files.playbook(playbook)
    cases, count = _cases(found, cluster), len(cluster.members)
    if not cases:
        raise _no_case(f"playbook {playbook} has", cluster)
    with HeldNodes(store, caller) as held:

        def sweep(case: Case, repeats: int, *, new: bool = True, on: Sequence[str] = ()) -> Report:
            options = SweepOptions(
                *(playbook, inventory, (case.placement,), repeats, new),
                nodes=",".join(on) or nodes,
                like=None if case in cases.values() else cases[2].placement,
            )
            return run.run(store, options, caller, _write_report, nodes=held)

        alone = [sweep(cases[1], TURNS * count)] if 1 in cases else []
        if 2 not in cases:
            return Speeds(tuple(alone))
        for turn in range(1, ROUNDS + 1):  # one after another, or each pair would meet itself again
            pairs = sweep(cases[2], turn * (count // 2), new=turn == 1)
        together = []
        todo: list[tuple[int, Sequence[str]]] = [(count, ())]
        if count == 2 or found.workload.unit != BANDWIDTH:
            todo = []
        for size, on in todo:
            report = sweep(replace(cases[2], nodes=size), 2 if on else 1, on=on)
            together.append(report)
            groups = node_speeds.compare_groups(pairs.results[0], report.results)
            half = (size + 1) // 2
            todo += [(half, group.nodes) for group in groups if group.is_slow and half > 2]
        return Speeds((*alone, pairs), tuple(together))


def _write_report(opened: Sweep, found: Report, _names: frozenset[str]) -> Report:
    report_files.write(opened, found)
    return found


def _cases(playbook: user_files.Playbook, cluster: Cluster) -> Mapping[int, Case]:
    """Return, by number of nodes, the case with the most GPUs that every node has.

    Raises:
        UsageError: NO-PACK.
    """
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


def show_speeds(voice: Voice, playbook: str, speeds: Speeds) -> None:
    """Print tables of nodes and of groups of nodes, and their problems."""
    for found in speeds.nodes:
        result, statistics = found.results[0], found.results[0].statistics
        reached = f", median {statistics.median:.4g} {found.unit}" if statistics else ""
        head = ("node", "trials", "speed over the median node", "")
        title = f"Speed of every node, by {found.source}: {result.case.placement}{reached}"
        rows = [
            (it.node, str(it.trials), f"{it.speed:.3f}", "slow" if it.is_slow else "")
            for it in found.node_speeds
        ]
        voice.table(title, head, rows)
        for mark in found.marks:
            voice.line(f"{mark.code}: {mark.message}")
        report_files.say_reasons(found, voice)
    cells = [
        (nodeset.fold(it.nodes), f"{it.busbw:.3g}", f"{it.share:.0%}", "slow" if it.is_slow else "")
        for it in speeds.groups
    ]
    head = ("nodes together", "GB/s", "of the median of pairs", "")
    voice.table(f"Nodes together, by {playbook}", head, cells)
    for group in node_speeds.find_smallest_slow(speeds.groups):
        share, least = words.apart(group.share, node_speeds.LEAST_SHARE, "%", 0)
        voice.line(
            f"FABRIC-SLOW: {nodeset.fold(group.nodes)} together reach {group.busbw:.3g} GB/s,"
            f" {share} of what pairs reach; needed {least}"
        )
    for found, published in speeds.short:
        (result,) = found.results
        voice.line(
            f"BUSBW-LOW: {result.case.placement} reaches {result.median or 0.0:.4g} GB/s; needed"
            f" {node_speeds.LEAST_OF_PUBLISHED:.0%} of {published.throughput:g}, the lowest"
            f" published ({published.source})"
        )


def document_speeds(speeds: Speeds) -> dict[str, object]:
    return {
        "nodes": [report.document(found) for found in speeds.nodes],
        "groups": [asdict(group) for group in speeds.groups],
    }
