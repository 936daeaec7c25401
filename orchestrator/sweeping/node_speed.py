"""Measure the speed of nodes: on each alone, in pairs, and on all of them together."""

from collections.abc import Iterator, Mapping, Sequence
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

    All of them hold and observe the nodes once, but for halves of slow groups.

    Nodes alone run a case with as many GPUs as every node has. Where the playbook packs
    ``disjoint``, pairs follow, in rounds of new partners; and where it measures a bus bandwidth,
    which is the same for any number of nodes, all of them together. Groups that are slow beside the
    pairs are halved.

    Raises:
        UsageError: NO-PACK, NO-CASE; the playbook cannot measure these nodes side by side.
        DlperfError: as of any sweep.
    """
    cluster = sites.narrow(user_files.cluster(inventory)[0], nodes)
    found = user_files.playbook(playbook)
    cases = _cases(found, cluster)
    if not cases:
        raise _no_case(f"playbook {playbook} has", cluster)
    with HeldNodes(store, caller) as held:
        runs = _Runs(store, inventory, nodes, playbook, caller, cases, held)
        reports = []
        if 1 in cases:
            reports.append(runs.sweep(cases[1], TURNS * len(cluster.members)))
        if 2 not in cases:
            return Speeds(tuple(reports))
        count = len(cluster.members)
        at_once = count // 2
        for turn in range(1, ROUNDS + 1):  # one after another, or each pair would meet itself again
            pairs = runs.sweep(cases[2], turn * at_once, new=turn == 1)
        together = _together(runs, count, pairs) if found.workload.unit == BANDWIDTH else ()
        return Speeds((*reports, pairs), tuple(together))


@dataclass(frozen=True, slots=True)
class _Runs:
    """Run new sweeps of one playbook.

    Args:
        cases: of the playbook, by number of nodes.
    """

    store: Store
    inventory: str
    nodes: str | None
    playbook: str
    caller: Caller
    cases: Mapping[int, Case]
    held: HeldNodes

    def sweep(
        self, case: Case, repeats: int, *, new: bool = True, nodes: Sequence[str] = ()
    ) -> Report:
        """Run a case, on these nodes if any are named; return its report."""
        options = SweepOptions(
            playbook=self.playbook,
            inventory=self.inventory,
            cases=(case.placement,),
            repeats=repeats,
            new=new,
            max_fail=None,
            nodes=",".join(nodes) or self.nodes,
            strict=False,
            like=None if case in self.cases.values() else self.cases[2].placement,
        )

        def write_report(opened: Sweep, found: Report, _names: frozenset[str]) -> Report:
            report_files.write(opened, found)
            return found

        return run.run(self.store, options, self.caller, write_report, nodes=self.held)


def _together(runs: _Runs, count: int, pairs: Report) -> Iterator[Report]:
    """Measure all nodes at once, if they are more than a pair; then the halves of slow groups.

    Of an odd number of nodes one is in both halves.
    """
    todo: list[tuple[int, Sequence[str]]] = [(count, ())] if count > 2 else []
    for size, nodes in todo:
        case = replace(runs.cases[2], nodes=size)
        report = runs.sweep(case, 2 if nodes else 1, nodes=nodes)
        yield report
        half = (size + 1) // 2
        if half > 2:
            found = node_speeds.compare_groups(pairs.results[0], report.results)
            todo += [(half, group.nodes) for group in found if group.is_slow]


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
        _show_nodes(voice, found)
    if groups := speeds.groups:
        _show_groups(voice, playbook, groups)
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
        share, least = words.apart(group.share, node_speeds.LEAST_SHARE, "%", 0)
        voice.line(
            f"FABRIC-SLOW: {nodeset.fold(group.nodes)} together reach {group.busbw:.3g} GB/s,"
            f" {share} of what pairs reach; needed {least}"
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
    report_files.say_reasons(found, voice)
