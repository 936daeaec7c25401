"""What would spoil a sweep that is about to start on its nodes."""

from orchestrator import errors, nodeset
from orchestrator.deadlines import PREPARING_S
from orchestrator.fleet import settled
from orchestrator.model.cluster import Cluster
from orchestrator.schedulers import Scheduler

# Exit 0 if some process belongs to the preparation of a data set.
PREPARING = "grep -lsz '^DLPERF_TASK=dlp-data-' /proc/[0-9]*/environ | grep -q ."


def no_preparation(cluster: Cluster, scheduler: Scheduler) -> None:
    """Refuse nodes where a data set is being prepared, by any controller.

    Raises:
        UnfitError: PREPARING; measuring at the same time would give a wrong number.
    """
    argv = {node.name: ("sh", "-c", PREPARING) for node in cluster.members}
    answers = scheduler.ask(argv, PREPARING_S)
    settled(answers)
    busy = [answer.node for answer in answers if answer.checked().exit_code == 0]
    if busy:
        raise errors.UnfitError(
            "a data set is being prepared on the node",
            code="PREPARING",
            node=nodeset.fold(busy),
            fix="wait for `dlperf-orch data prepare` to end, or run it again and press Ctrl-C",
        )
