"""A virtual cluster: several real nodes, with sshd and Docker, on one machine.

For people ``python -m tests.cluster up``; for tests ``with cluster(4) as nodes:``.
"""

from tests.cluster.cluster import Cluster, Completed, Node, cluster
from tests.cluster.place import Place, TestbedError

__all__ = ["Cluster", "Completed", "Node", "Place", "TestbedError", "cluster"]
