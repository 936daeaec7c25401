"""An agent on every node that starts one process per GPU and is told its node_rank."""

from orchestrator.model.plan import Command, Placement, Task


def launch(command: Command, placement: Placement) -> tuple[Task, ...]:
    """Return the agent of each node, with options that torchrun and multiproc.py share.

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
