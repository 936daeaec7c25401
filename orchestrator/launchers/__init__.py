"""Launchers: from one command, the command line of every node. Pure.

A new launcher is a function here or in a module of its own, named by the workloads that use it.
"""

from collections.abc import Callable, Mapping

from orchestrator.model.case import Case
from orchestrator.model.plan import Command, Placement, Seat, Task

Launcher = Callable[[Command, Placement], tuple[Task, ...]]
"""A function that returns each node's task, without environment and mounts, leader first."""
# With a proxy, rendezvous ends in ``LoadServer 127.0.0.1 Failed`` (DLPerf issue 103): unset them.
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy")
_NO_PROXIES = tuple(
    word for name in _PROXIES for variant in (name, name.upper()) for word in ("-u", variant)
)


def replicate(command: Command, placement: Placement) -> tuple[Task, ...]:
    """Return the same command line for every node; the program finds its own rank."""
    argv = ("env", *_NO_PROXIES, *command.agent, *command.program)
    return tuple(placement.task(rank, argv) for rank in range(len(placement.seats)))


def torchrun(command: Command, placement: Placement) -> tuple[Task, ...]:
    """Return one agent per node, which gets its node_rank and starts one process per GPU.

    Its options are those that torchrun and multiproc.py share.
    Source: seed 003's run line; ``python -m torch.distributed.run --help``.
    """
    nodes = len(placement.seats)
    address = placement.seats[0].address if nodes > 1 else "127.0.0.1"
    return tuple(
        placement.task(
            node_rank,
            (
                *command.agent,
                *("--nnodes", str(nodes)),
                *("--node_rank", str(node_rank)),
                *("--nproc_per_node", str(placement.gpus_per_node)),
                *("--master_addr", address),
                f"--master_port={placement.port}",
                *command.program,
            ),
        )
        for node_rank in range(nodes)
    )


def gang_env(case: Case, placement: Placement, seat: Seat) -> Mapping[str, str]:
    """Return visible devices and, for several nodes, how NCCL and gloo find each other.

    CUDA_DEVICE_ORDER makes CUDA count GPUs as nvidia-smi does, not the fastest first.
    NCCL_DEBUG=INFO makes the log itself prove which transport was used. A leading ``=`` makes
    NCCL compare names whole, or eth1 would also take eth10, and mlx5_1 mlx5_10; gloo takes one
    whole name and knows no such sign.
    Source: CUDA C++ programming guide; NCCL user guide, environment variables; gloo,
    transport/tcp/device.cc, lookupAddrForIface.
    """
    on_gpus, several = case.device == "cuda", len(placement.seats) > 1
    env = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, seat.gpus)) if on_gpus else ""}
    if on_gpus:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if several and seat.interface and on_gpus:
        env["NCCL_SOCKET_IFNAME"] = f"={seat.interface}"
    elif several and seat.interface:
        env["GLOO_SOCKET_IFNAME"] = seat.interface
    if several and on_gpus:
        env["NCCL_DEBUG"] = "INFO"
        if seat.hcas:
            env["NCCL_IB_HCA"] = "=" + ",".join(seat.hcas)
        if seat.gid_index is not None:
            env["NCCL_IB_GID_INDEX"] = str(seat.gid_index)
        if seat.traffic_class is not None:
            env["NCCL_IB_TC"] = str(seat.traffic_class)
    return env
