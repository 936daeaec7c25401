"""Parser of `ibstat`: the InfiniBand adapters of a node and the state of their ports."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator import errors
from orchestrator.model.facts import HcaFacts, InfinibandFacts, PortFacts
from orchestrator.model.problem import Problem
from orchestrator.probes import Probe

_CA = re.compile(r"CA '([^']+)'")
_PORT = re.compile(r"Port ([0-9]{1,4}):")
_PAIR = re.compile(r"([A-Za-z ]+):\s*(.*)")
_NUMBER = re.compile(r"[0-9]{1,9}")
_CA_KEYS: Mapping[str, re.Pattern[str]] = {
    # Blank for software adapters (rxe, siw): the kernel has no such files for them.
    "CA type": re.compile(r".*"),
    "Firmware version": re.compile(r".*"),
    "Node GUID": re.compile(r"0x[0-9a-fA-F]{16}"),
    "Number of ports": _NUMBER,
}
_PORT_KEYS: Mapping[str, re.Pattern[str]] = {
    "State": re.compile(r".+"),
    "Physical state": re.compile(r".+"),
    # "100"; "2.5", one lane of SDR; "40 (FDR10)", whose signalling differs.
    "Rate": re.compile(r"[0-9]{1,9}(\.[0-9])?( \(FDR10\))?"),
    "Base lid": _NUMBER,
    "SM lid": _NUMBER,
    # "IB" is libibumad's word where the kernel has no link_layer file.
    "Link layer": re.compile(r"InfiniBand|Ethernet|IB|Unknown|Unspecified"),
}
_FIX = "install the InfiniBand user space (rdma-core or OFED), then record `ibstat > FILE`"


@dataclass(frozen=True, slots=True)
class _Block:
    """The values under the title of a CA or of a port, with what is wrong with them."""

    where: str
    port: int
    keys: Mapping[str, re.Pattern[str]]
    values: dict[str, list[str]] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        """Return a value that is there, once, and readable."""
        return None if self.problem(key) else self.values[key][0] or None

    def number(self, key: str) -> int | None:
        text = self.text(key)
        return None if text is None else int(text)

    def problem(self, key: str) -> Problem | None:
        """Return why the value of ``key`` cannot be used."""
        values = self.values.get(key, [])
        if not values:
            return Problem("MISSING", f"{self.where}: {key}: missing")
        if len(set(values)) > 1:
            return Problem("UNREADABLE", f"{self.where}: {key}: said twice: {', '.join(values)}")
        if not self.keys[key].fullmatch(values[0]):
            cannot = f"{self.where}: {key}: cannot read {values[0][:60]!r}"
            return Problem("UNREADABLE", cannot)
        return None


def parse(text: str) -> InfinibandFacts:
    """The HCAs of a node, with a problem per thing that cannot be read safely.

    Raises:
        LogError: no adapter is described.

    Source:
        infiniband-diags, ``ibstat.c``: a block for each CA, and in it one for each port.
        Indentation decides nothing, because pastes lose it.
    """
    lines, cut = _whole([line.strip() for line in text.split("\n")])
    adapters: list[list[_Block]] = []
    for line in lines:
        if title := _CA.fullmatch(line):
            adapters.append([_Block(title[1], 0, _CA_KEYS)])
        elif adapters and (title := _PORT.fullmatch(line)):
            where = f"{adapters[-1][0].where} port {title[1]}"
            adapters[-1].append(_Block(where, int(title[1]), _PORT_KEYS))
        elif adapters and (pair := _PAIR.fullmatch(line)):
            adapters[-1][-1].values.setdefault(pair[1], []).append(pair[2])
        elif _PORT.fullmatch(line) or line.partition(":")[0] in _CA_KEYS:
            cut = [Problem("UNREADABLE", "values stand before the name of any HCA; not used"), *cut]
    if not adapters:
        raise _nothing(text)
    return InfinibandFacts(
        hcas=tuple(_hca(*blocks) for blocks in adapters),
        problems=(
            *(Problem("IBPANIC", line) for line in lines if "ibpanic:" in line),
            *dict.fromkeys(cut),
            *(problem for blocks in adapters for problem in _problems(*blocks)),
            *_repeated([own.where for own, *_ in adapters]),
        ),
    )


PROBE = Probe(name="infiniband", argv=("ibstat",), parse=parse)


def _whole(lines: Sequence[str]) -> tuple[Sequence[str], list[Problem]]:
    """Return the lines without a last one that the end of the text may have cut.

    A cut rate of 100 is a rate of 10. Only a title and a link layer show that they are whole.
    """
    *before, last = lines
    key, _, value = last.partition(":")
    is_whole = key == "Link layer" and _PORT_KEYS[key].fullmatch(value.strip())
    is_of_ours = key in _CA_KEYS or key in _PORT_KEYS or last.startswith("CA '")
    if not last or is_whole or _CA.fullmatch(last) or not (is_of_ours or "CA '".startswith(last)):
        return lines, []
    return before, [Problem("TRUNCATED", f"the text ends within {last!r}, which is not used")]


def _nothing(text: str) -> errors.LogError:
    said = text.strip().splitlines()
    if not said:
        return errors.LogError("the text is empty: ibstat saw no HCA", code="EMPTY", fix=_FIX)
    cause = f"no line like CA 'mlx5_0' begins an adapter; the text says {said[-1].strip()[:160]!r}"
    return errors.LogError(cause, code="NO-HCA", fix=_FIX)


def _hca(own: _Block, *ports: _Block) -> HcaFacts:
    return HcaFacts(
        name=own.where,
        type=own.text("CA type"),
        firmware=own.text("Firmware version"),
        node_guid=own.text("Node GUID"),
        ports=tuple(map(_port, ports)),
    )


def _port(block: _Block) -> PortFacts:
    rate = (block.text("Rate") or "").partition(" ")[0]
    return PortFacts(
        port=block.port,
        state=block.text("State"),
        physical_state=block.text("Physical state"),
        rate_gbps=float(rate) if "." in rate else int(rate) if rate else None,
        base_lid=block.number("Base lid"),
        sm_lid=block.number("SM lid"),
        link_layer=block.text("Link layer"),
    )


def _problems(own: _Block, *ports: _Block) -> Iterator[Problem]:
    for block in (own, *ports):
        yield from filter(None, map(block.problem, block.keys))
    promised = own.number("Number of ports")
    if promised not in (None, len(ports)):
        yield Problem("PORT-COUNT", f"{own.where}: {len(ports)} ports shown of {promised}")
    yield from _repeated([port.where for port in ports])


def _repeated(names: Sequence[str]) -> Iterator[Problem]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem("UNREADABLE", f"{name}: described {times} times")
