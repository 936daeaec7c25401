"""How a benchmark's report is laid out, as the document that first reported it had it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The words and the shape of a workload's final table.

    Args:
        kind: placements: a row a placement, a table for each batch size and precision. groups: a
            row a case by name, in groups, with latency and memory. gpus: a row a number of GPUs, a
            column each precision and batch size.
        nodes, gpus, batch, throughput: heads of the columns.
        decimals: of throughput, when printed.
    """

    kind: Literal["placements", "groups", "gpus"] = "placements"
    nodes: str = "node_num"
    gpus: str = "gpu_num_per_node"
    batch: str = "batch_size_per_device"
    throughput: str = "throughput"
    decimals: int = 2


PLAIN = Layout()
