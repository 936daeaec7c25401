"""How fast nodes are: a short run of a case of a single node, on every node at once."""

from dataclasses import dataclass

from orchestrator import errors
from orchestrator.collecting import show
from orchestrator.inputs import sites, user_files
from orchestrator.model.case import Case
from orchestrator.model.cluster import Cluster
from orchestrator.model.report import Report
from orchestrator.planning import matrix
from orchestrator.state.store import Store, Sweep
from orchestrator.sweeping import run
from orchestrator.sweeping.campaign import Caller
from orchestrator.sweeping.requested import SweepOptions

PLAYBOOK = "node-speed"
TURNS = 3  # trials of each node: what varies between them tells a slow node from chance


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose speed: the nodes of an inventory, by names and globs; None for all."""

    inventory: str
    nodes: str | None


def measured(store: Store, whose: Whose, playbook: str, caller: Caller) -> Report:
    """What a new sweep of the playbook's largest fitting case of one node found on every node.

    Raises:
        UsageError: NO-PACK, NO-CASE; the playbook cannot measure nodes side by side.
        DlperfError: as of any sweep.
    """
    cluster = sites.narrowed(user_files.cluster(whose.inventory)[0], whose.nodes)
    case = _case(user_files.playbook(playbook), cluster)
    turns = TURNS * len(cluster.members)
    options = SweepOptions(
        playbook=playbook,
        inventory=whose.inventory,
        cases=(case.placement,),
        repeats=turns,
        new=True,
        max_fail=None,
        nodes=whose.nodes,
        strict=False,
    )

    def written(opened: Sweep, found: Report, _names: frozenset[str]) -> Report:
        show.write(opened, found, show.Out(opened.folder))
        return found

    return run.run(store, options, caller, run.Ways(written))


def _case(playbook: user_files.Playbook, cluster: Cluster) -> Case:
    """The case of one node with the most GPUs that every node has."""
    experiment = playbook.experiment
    if experiment.method.pack == "none":
        raise errors.UsageError(
            f"playbook {playbook.name} runs one trial at a time",
            code="NO-PACK",
            fix="give one with `pack: one-node` in its method, such as the shipped node-speed",
        )
    least = min(len(node.usable_gpus) for node in cluster.members)
    fitting = [
        case
        for case in matrix.cases(experiment)
        if case.nodes == 1 and (case.device != "cuda" or case.gpus_per_node <= least)
    ]
    if not fitting:
        raise errors.UsageError(
            f"playbook {playbook.name} has no case of one node with at most {least} GPUs",
            code="NO-CASE",
            fix="give a playbook that has one",
        )
    return max(fitting, key=lambda case: case.gpus_per_node)
