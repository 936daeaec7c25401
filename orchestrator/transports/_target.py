"""Where a node's sshd is, as whom we log in, and what vouches for its host key."""

from dataclasses import dataclass, replace

from orchestrator.model.cluster import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTarget:
    """Everything that reaching a node by SSH needs.

    Args:
        identity: path of the one private key that is offered.
        host_key: fingerprint that the inventory gives; it decides alone.
        known_hosts: file that decides otherwise, for the jump host always.
        jump: ``[user@]host[:port]`` of the machine in between.
    """

    name: str
    address: str
    port: int = 22
    user: str = "root"
    identity: str | None = None
    host_key: str | None = None
    known_hosts: str = "~/.ssh/known_hosts"
    jump: str | None = None

    @classmethod
    def of(cls, node: Node) -> "SshTarget":
        """The target that an inventory's node is."""
        return cls(
            name=node.name,
            address=node.address,
            port=node.port,
            user=node.user,
            identity=node.identity,
            host_key=node.host_key,
            known_hosts=node.known_hosts,
            jump=node.jump,
        )

    @property
    def gate(self) -> "SshTarget | None":
        """The machine in between, reached with the same identity; None where there is none."""
        if self.jump is None:
            return None
        user, at, place = self.jump.rpartition("@")
        address, _, port = place.partition(":")
        return replace(
            self,
            name=place,
            address=address,
            port=int(port or 22),
            user=user if at else self.user,
            host_key=None,
            jump=None,
        )
