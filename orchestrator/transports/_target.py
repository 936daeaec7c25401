"""The address of a node's sshd, the login user, and what its host key is checked against."""

from dataclasses import dataclass, fields, replace

from orchestrator.model.node import Node
from orchestrator.model.text import parse_endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTarget:
    """Everything that reaching a node by SSH needs.

    Args:
        identity: path of the one private key that is offered.
        agent: whether ssh-agent signs with it; without an identity, with the one that it holds.
        host_key: fingerprint of the inventory; if given, ``known_hosts`` is not used.
        known_hosts: file to check host keys against; the jump host's always.
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
    agent: bool = False

    @classmethod
    def of(cls, node: Node) -> "SshTarget":
        """Return the target for a node of the inventory."""
        return cls(**node.model_dump(include={field.name for field in fields(cls)}))

    @property
    def gate(self) -> "SshTarget | None":
        """Return the jump host as a target, with the same identity; None without one."""
        if self.jump is None:
            return None
        jump = parse_endpoint(self.jump)
        return replace(
            self,
            name=str(replace(jump, user=None)),
            address=jump.host,
            port=jump.port or 22,
            user=jump.user or self.user,
            host_key=None,
            jump=None,
        )
