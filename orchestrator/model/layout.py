"""How a benchmark's report is laid out, as the document that first reported it had it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a workload's numbers are named and printed.

    Args:
        kind: placements: cases are named by placement. groups: by names of the benchmark's own.
        decimals: of throughput, when printed.
    """

    kind: Literal["placements", "groups"] = "placements"
    decimals: int = 2


PLAIN = Layout()
