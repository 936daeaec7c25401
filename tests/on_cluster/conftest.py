"""What tests on a Slurm of virtual nodes share."""

import os
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, cluster
from tests.cluster.slurm import lacking
from tests.people import Login


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Four virtual nodes with a Slurm over them; a module may have others."""
    if words := lacking():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    with cluster(4, slurm=True) as up:
        yield up


@pytest.fixture
def login(nodes: Cluster, request: pytest.FixtureRequest) -> Iterator[Login]:
    """A person in a fresh folder; ``nodes`` is the module's own cluster."""
    person = Login.made(nodes, request.node.name)
    yield person
    person.end()
