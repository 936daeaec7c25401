"""Parsers of `ibv_devinfo`, the InfiniBand adapters that programs can open, and `ofed_info`.

`ibstat` reads the kernel's files only. NCCL cannot use an active adapter whose user-space driver
is missing; this command does not list such an adapter.
"""

import re

from orchestrator import errors
from orchestrator.model.facts import VerbsFacts

_OFED = re.compile(r"(?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED)-([0-9][0-9.-]*[0-9]):?")
_HCA = re.compile(r"hca_id:\s*([A-Za-z0-9_.-]+)")
_NONE = re.compile(r"No IB devices found|0 HCAs? found:?")
_COMPLAINT = re.compile(r"libibverbs: Warning: .+|Failed to .+|Unable to .+")


def parse(text: str) -> VerbsFacts:
    """The adapters by name, in the order printed, and every mistake once.

    Raises:
        LogError: the text is neither a list of adapters nor says that there are none.

    Source:
        rdma-core, ``libibverbs/examples/devinfo.c``: a line ``hca_id:`` for each adapter opened.
    """
    lines = [line.strip() for line in text.splitlines()]
    hcas = tuple(match[1] for match in map(_HCA.fullmatch, lines) if match)
    warnings = tuple(dict.fromkeys(line for line in lines if _COMPLAINT.fullmatch(line)))
    if not hcas and not warnings and not any(map(_NONE.fullmatch, lines)):
        raise errors.LogError(
            "no line like hca_id: mlx5_0, and none that says there are no adapters",
            code="NO-VERBS",
            fix="record it with `ibv_devinfo > FILE 2>&1`",
        )
    return VerbsFacts(hcas, warnings)


def ofed_version(text: str) -> str | None:
    """Return the version that ``ofed_info -s`` prints, such as ``4.9-0.1.7.0``."""
    versions = [match[1] for match in map(_OFED.fullmatch, text.split()) if match]
    return versions[0] if len(versions) == 1 else None
