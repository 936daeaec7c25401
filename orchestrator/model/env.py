"""What a user's files add to the environment of tasks, and what they say of RoCE."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from orchestrator.model.text import Matching, Noun

EnvName = Annotated[
    str,
    Matching(
        re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}"),
        "letters, digits and '_', not beginning with a digit",
    ),
]
EnvText = Annotated[
    str,
    Matching(re.compile(r"[^\x00-\x1f\x7f-\x9f]{0,1000}"), "one line of at most 1000 characters"),
]
EnvValue = EnvText | int


class Roce(Noun):
    """NCCL's settings for RDMA over Ethernet; at least one of both."""

    gid_index: int | None = Field(default=None, ge=0, le=255)
    """NCCL_IB_GID_INDEX: the place of the RoCE v2 address in each adapter's table of GIDs."""
    traffic_class: int | None = Field(default=None, ge=0, le=255)
    """NCCL_IB_TC: the class that the switches carry without loss, DSCP times 4."""


def texts(env: Mapping[str, EnvValue]) -> dict[str, str]:
    """Return the variables as texts, as a program receives them."""
    return {name: str(value) for name, value in env.items()}
