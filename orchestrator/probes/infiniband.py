"""Parser of `ibstat`: the InfiniBand adapters of a node and the state of their ports."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator import errors
from orchestrator.model.facts import HcaFacts, InfinibandFacts, PortFacts
from orchestrator.model.problem import Problem
from orchestrator.probes import Probe

_CA = re.compile(r"CA '([^']+)'")
_PORT = re.compile(r"Port ([0-9]{1,4}):")
_PAIR = re.compile(r"([A-Za-z ]+):\s*(.*)")
_TEXT = re.compile(r".+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_CA_KEYS: Mapping[str, re.Pattern[str]] = {
    # Blank for software adapters (rxe, siw): the kernel has no such files for them.
    "CA type": re.compile(r".*"),
    "Firmware version": re.compile(r".*"),
    "Node GUID": re.compile(r"0x[0-9a-fA-F]{16}"),
    "Number of ports": _NUMBER,
}
_PORT_KEYS: Mapping[str, re.Pattern[str]] = {
    "State": _TEXT,
    "Physical state": _TEXT,
    # "100"; "2.5", one lane of SDR; "40 (FDR10)", whose signalling differs.
    "Rate": re.compile(r"[0-9]{1,9}(\.[0-9])?( \(FDR10\))?"),
    "Base lid": _NUMBER,
    "SM lid": _NUMBER,
    # "IB" is libibumad's word where the kernel has no link_layer file.
    "Link layer": re.compile(r"InfiniBand|Ethernet|IB|Unknown|Unspecified"),
}
_KEYS = {**_CA_KEYS, **_PORT_KEYS}
_FIX = "install the InfiniBand user space (rdma-core or OFED), then record `ibstat > FILE`"


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines under the title of a CA or of a port, as far as the next title."""

    title: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Adapter:
    name: str
    own: _Block
    ports: tuple[_Block, ...]


def parse(text: str) -> InfinibandFacts:
    """The HCAs of a node, with a problem per thing that cannot be read safely.

    Raises:
        LogError: no adapter is described.

    Source:
        infiniband-diags, ``ibstat.c``: a block for each CA, and in it one for each port.
        Indentation decides nothing, because pastes lose it.
    """
    lines, cut = _whole([line.strip() for line in text.split("\n")])
    adapters = _adapters(lines)
    if not adapters:
        raise _nothing(text)
    return InfinibandFacts(
        hcas=tuple(_hca(adapter) for adapter in adapters),
        problems=(
            *(Problem("IBPANIC", line) for line in lines if "ibpanic:" in line),
            *cut,
            *_orphans(lines),
            *_repeated(adapters),
            *(problem for adapter in adapters for problem in _problems(adapter)),
        ),
    )


PROBE = Probe(name="infiniband", argv=("ibstat",), parse=parse)


def _whole(lines: Sequence[str]) -> tuple[Sequence[str], list[Problem]]:
    """The lines without a last one that the end of the text may have cut.

    A cut rate of 100 is a rate of 10. Only a title and a link layer show that they are whole.
    """
    *before, last = lines
    key, _, value = last.partition(":")
    whole = key == "Link layer" and _PORT_KEYS[key].fullmatch(value.strip())
    of_ours = last.startswith("CA '") or "CA '".startswith(last)
    if not last or whole or _CA.fullmatch(last) or not (of_ours or key in _KEYS):
        return lines, []
    return before, [Problem("TRUNCATED", f"the text ends within {last!r}, which is not used")]


def _adapters(lines: Sequence[str]) -> list[_Adapter]:
    marks = [at for at, line in enumerate(lines) if _CA.fullmatch(line) or _PORT.fullmatch(line)]
    blocks = [_block(lines[at:end]) for at, end in pairwise([*marks, len(lines)])]
    starts = [at for at, block in enumerate(blocks) if _CA.fullmatch(block.title)]
    return [
        _Adapter(blocks[at].title[4:-1], blocks[at], tuple(blocks[at + 1 : end]))
        for at, end in pairwise([*starts, len(blocks)])
    ]


def _block(lines: Sequence[str]) -> _Block:
    pairs = filter(None, map(_PAIR.fullmatch, lines[1:]))
    return _Block(lines[0], tuple((pair[1], pair[2]) for pair in pairs))


def _nothing(text: str) -> errors.LogError:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return errors.LogError("the text is empty: ibstat saw no HCA", code="EMPTY", fix=_FIX)
    failures = [line for line in lines if "ibpanic:" in line or "command not found" in line]
    first = (failures or lines)[0][:160]
    code = "NO-IBSTAT" if "command not found" in first else "NO-HCA"
    cause = f"no line like CA 'mlx5_0' begins an adapter; the text says {first!r}"
    return errors.LogError(cause, code=code, fix=_FIX)


def _hca(adapter: _Adapter) -> HcaFacts:
    return HcaFacts(
        name=adapter.name,
        type=_text(adapter.own, "CA type"),
        firmware=_text(adapter.own, "Firmware version"),
        node_guid=_text(adapter.own, "Node GUID"),
        ports=tuple(map(_port, adapter.ports)),
    )


def _port(block: _Block) -> PortFacts:
    return PortFacts(
        port=_number_of(block),
        state=_text(block, "State"),
        physical_state=_text(block, "Physical state"),
        rate_gbps=_rate(block),
        base_lid=_number(block, "Base lid"),
        sm_lid=_number(block, "SM lid"),
        link_layer=_text(block, "Link layer"),
    )


def _number_of(port: _Block) -> int:
    return int(port.title[5:-1])


def _text(block: _Block, key: str) -> str | None:
    return None if _problem(block, key) else dict(block.pairs)[key] or None


def _rate(port: _Block) -> int | float | None:
    rate = (_text(port, "Rate") or "").partition(" ")[0]
    return float(rate) if "." in rate else int(rate) if rate else None


def _number(block: _Block, key: str) -> int | None:
    text = _text(block, key)
    return None if text is None else int(text)


def _problem(block: _Block, key: str) -> str:
    """Why the value of ``key`` cannot be used, or nothing."""
    values = [value for name, value in block.pairs if name == key]
    if not values:
        return "missing"
    if len(set(values)) > 1:
        return f"said twice: {', '.join(values)}"
    readable = _KEYS[key].fullmatch(values[0])
    return "" if readable else f"cannot read {values[0][:60]!r}"


def _problems(adapter: _Adapter) -> Iterator[Problem]:
    yield from _block_problems(adapter.own, adapter.name, _CA_KEYS)
    for port in adapter.ports:
        where = f"{adapter.name} port {_number_of(port)}"
        yield from _block_problems(port, where, _PORT_KEYS)
    promised = _number(adapter.own, "Number of ports")
    numbers = list(map(_number_of, adapter.ports))
    if promised not in (None, len(numbers)):
        message = f"{adapter.name}: {len(numbers)} ports shown of {promised}"
        yield Problem("PORT-COUNT", message)
    if len(set(numbers)) < len(numbers):
        yield Problem("REPEATED-PORT", f"{adapter.name}: ports {numbers} repeat a number")


def _block_problems(block: _Block, where: str, keys: Mapping[str, object]) -> Iterator[Problem]:
    for key in keys:
        problem = _problem(block, key)
        if problem:
            code = "MISSING" if problem == "missing" else "UNREADABLE"
            yield Problem(code, f"{where}: {key}: {problem}")


def _repeated(adapters: Sequence[_Adapter]) -> Iterator[Problem]:
    for name, times in Counter(adapter.name for adapter in adapters).items():
        if times > 1:
            yield Problem("REPEATED-HCA", f"{name}: described {times} times")


def _orphans(lines: Sequence[str]) -> Iterator[Problem]:
    first = next(at for at, line in enumerate(lines) if _CA.fullmatch(line))
    for line in lines[:first]:
        if _PORT.fullmatch(line) or line.partition(":")[0] in _CA_KEYS:
            yield Problem("NO-TITLE", f"{line!r} stands before the name of any HCA; not used")
