"""What tests on a Slurm of virtual nodes share."""

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.login import Login


@pytest.fixture
def login(nodes: Cluster, request: pytest.FixtureRequest) -> Iterator[Login]:
    """A person in a fresh folder; ``nodes`` is the module's own cluster."""
    person = Login.made(nodes, request.node.name)
    yield person
    person.end()
