"""The connections to a cluster's nodes, together."""

from collections.abc import Mapping

import pytest

from orchestrator.fleet import Fleet
from orchestrator.runtimes.engine import Engine
from orchestrator.transports.local import LocalTransport
from tests.model.test_cluster import cluster


def unloadable() -> Mapping[str, Engine]:
    """As where the package is not installed whole."""
    raise ImportError("no module docker")


def test_connections_are_closed_also_without_dockers_library() -> None:
    """What was opened ends with the context: `cat` ends with its input, and answers no more."""
    here = LocalTransport("here")
    node: dict[str, object] = {"name": "here", "address": "127.0.0.1", "transport": "local"}
    stream = here.open(("cat",))
    stream.sendall(b"x")
    assert stream.recv(1) == b"x"
    with pytest.raises(ImportError), Fleet(cluster([node]), {"here": here}, unloadable):
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        stream.sendall(b"x")
