"""What a trial needs of a scheduler, and what the scheduler gave."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from orchestrator.model.plan import Seat


@dataclass(frozen=True, slots=True)
class Request:
    """The resources that one attempt needs.

    Args:
        gpus_per_node: of each node; 0 where ranks compute on CPUs.
        data: names of the data sets that every node must have.
        ports: candidates for the port at which ranks meet, the best first.
        time_s: how long the attempt may take, from its start to the end of its program.
        prefer: names of nodes, those to take first at the beginning; others come after them.
    """

    trial: str
    nodes: int
    gpus_per_node: int
    data: tuple[str, ...]
    ports: tuple[int, ...]
    time_s: float
    prefer: tuple[str, ...] = ()

    def fits(self, seat: Seat) -> bool:
        """Return True if a node has the GPUs and data sets that each node of the gang needs."""
        return len(seat.gpus) >= self.gpus_per_node and {*self.data} <= {*seat.data}

    def seated(self, seats: Iterable[Seat]) -> tuple[Seat, ...]:
        """Return the first seats that fit, each with the GPUs to use; too few if not enough fit.

        The preferred ones are taken first; they stand in the order of ``seats`` all the same.
        """
        fitting = [
            replace(seat, gpus=seat.gpus[: self.gpus_per_node]) for seat in seats if self.fits(seat)
        ]
        place = {node: index for index, node in enumerate(self.prefer)}
        by_preference = sorted(fitting, key=lambda seat: place.get(seat.node, len(place)))
        taken = {seat.node for seat in by_preference[: self.nodes]}
        return tuple(seat for seat in fitting if seat.node in taken)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes in rank order, and a port that is free on all of them.

    Args:
        handle: the scheduler's own id of it, such as a job id; empty where it has none.
    """

    seats: tuple[Seat, ...]
    port: int
    handle: str = ""
