"""The same command line on every node; the program finds its own rank.

Rendezvous by proxy ends in ``LoadServer 127.0.0.1 Failed`` (DLPerf issue 103): the proxy variables
that an image or a node may set are taken out of the program's environment.
"""

from orchestrator.model.plan import Command, Placement, Task

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy")
_NO_PROXIES = tuple(
    word for name in _PROXIES for variant in (name, name.upper()) for word in ("-u", variant)
)


def launch(command: Command, placement: Placement) -> tuple[Task, ...]:
    argv = ("env", *_NO_PROXIES, *command.agent, *command.program)
    return tuple(placement.task(rank, argv) for rank in range(len(placement.seats)))
