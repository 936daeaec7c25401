"""Parser of `ibstat`: the ports of a node's InfiniBand adapters."""

import re
from collections.abc import Mapping

from orchestrator import errors
from orchestrator.model.facts import InfinibandFacts
from orchestrator.model.problem import Problem
from orchestrator.model.site import HcaPort
from orchestrator.probes import Probe

_CA = re.compile(r"CA '([^']+)'")
_PORT = re.compile(r"Port ([0-9]{1,4}):")
_NUMBER = re.compile(r"[0-9]{1,9}")
_KEYS: Mapping[str, re.Pattern[str]] = {
    # Blank for software adapters (rxe, siw): the kernel has no such files for them.
    "CA type": re.compile(r".*"),
    "Firmware version": re.compile(r".*"),
    "Node GUID": re.compile(r"0x[0-9a-fA-F]{16}"),
    "State": re.compile(r".+"),
    "Physical state": re.compile(r".+"),
    # "100"; "2.5", one lane of SDR; "40 (FDR10)", whose signalling differs.
    "Rate": re.compile(r"[0-9]{1,9}(\.[0-9])?( \(FDR10\))?"),
    "Base lid": _NUMBER,
    "SM lid": _NUMBER,
    # "IB" is libibumad's word where the kernel has no link_layer file.
    "Link layer": re.compile(r"InfiniBand|Ethernet|IB|Unknown|Unspecified"),
}


def parse(text: str) -> InfinibandFacts:
    """The ports of a node, with a problem per line that cannot be read safely.

    Raises:
        LogError: UNREADABLE; no port is described.

    Source:
        infiniband-diags, ``ibstat.c``: a block for each CA, and in it one for each port.
    """
    problems = []
    adapter: dict[str, str] = {}
    found: list[dict[str, str]] = []
    block = adapter
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        words = line.strip()
        key, _, value = (part.strip() for part in words.partition(":"))
        if title := _CA.fullmatch(words):
            adapter = block = {"name": title[1]}
        elif adapter and (title := _PORT.fullmatch(words)):
            block = {**adapter, "port": title[1]}
            found.append(block)
        elif key in _KEYS:
            # Where the text ends, a rate of 10 may be one of 100.
            is_whole = line.endswith("\n") or key == "Link layer"
            is_readable = is_whole and _KEYS[key].fullmatch(value)
            block[key] = value if is_readable else ""
            if not is_readable:
                problems.append(_problem(f"line {number}: cannot read {words[:60]!r}"))
        elif key == "ibpanic":
            problems.append(_problem(f"line {number}: {words}"))
    if not found:
        said = (text.strip().splitlines() or ["nothing"])[-1].strip()[:160]
        raise errors.LogError(
            f"ibstat: no line like CA 'mlx5_0' begins an adapter; the text says {said!r}",
            code="UNREADABLE",
            fix="install the InfiniBand user space (rdma-core or OFED), then `ibstat > FILE`",
        )
    for block in found:
        if lacking := [key for key in _KEYS if key not in block]:
            where = f"{block['name']} port {block['port']}"
            problems.append(_problem(f"{where}: no {', '.join(lacking)}"))
    return InfinibandFacts(tuple(map(_port, found)), tuple(problems))


PROBE = Probe(name="infiniband", argv=("ibstat",), parse=parse)


def _port(block: Mapping[str, str]) -> HcaPort:
    rate = block.get("Rate", "").partition(" ")[0]
    base_lid, sm_lid = block.get("Base lid"), block.get("SM lid")
    known = {key: value or None for key, value in block.items()}
    return HcaPort(
        name=block["name"],
        port=int(block["port"]),
        type=known.get("CA type"),
        firmware=known.get("Firmware version"),
        state=known.get("State"),
        rate_gbps=float(rate) if "." in rate else int(rate) if rate else None,
        link_layer=known.get("Link layer"),
        node_guid=known.get("Node GUID"),
        physical_state=known.get("Physical state"),
        base_lid=int(base_lid) if base_lid else None,
        sm_lid=int(sm_lid) if sm_lid else None,
    )


def _problem(seen: str) -> Problem:
    return Problem("UNREADABLE", f"ibstat, {seen}")
