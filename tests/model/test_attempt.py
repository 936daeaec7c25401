"""Which seats a request takes."""

from orchestrator.model.attempt import Request
from orchestrator.model.plan import Seat

SEATS = tuple(Seat(f"n{at}", f"10.0.0.{at}", (0, 1), None, (), {}) for at in range(1, 5))


def names(nodes: int, prefer: tuple[str, ...] = ()) -> list[str]:
    request = Request("t", nodes, 1, (), (20_000,), 60.0, prefer)
    return [seat.node for seat in request.seated(SEATS)]


def test_preferred_nodes_are_taken_first_in_the_order_of_the_inventory() -> None:
    """So ranks of neighbours stay neighbours; without a preference the first ones are taken."""
    assert names(2) == ["n1", "n2"]
    assert names(1, ("n3", "n1")) == ["n3"]
    assert names(2, ("n4", "n2", "n1")) == ["n2", "n4"]
    assert names(3, ("n4",)) == ["n1", "n2", "n4"]
    assert names(9, ("n4",)) == ["n1", "n2", "n3", "n4"]
