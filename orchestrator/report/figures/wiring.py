"""How the GPUs and adapters of nodes are connected, drawn as the driver tells it."""

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator import nodeset
from orchestrator.report import topology
from orchestrator.report.figures import scales
from orchestrator.report.figures.figure import WIDTH, Drawing, Figure, Table
from orchestrator.report.markdown_page import Page
from orchestrator.report.markup import shown

NEAR = ("PIX", "PXB", "PHB")
_MARGIN, _INNER, _OUTER, _MOST = 16.0, 120.0, 182.0, 32
_LOOKS = {"PIX": "line thin s1 d0", "PXB": "line thin s1 d1", "PHB": "line thin s1 d2"}
Links = Mapping[str, Mapping[str, str]]
Place = tuple[float, float]


def figures(page: Page) -> Iterable[Figure]:
    """One per group of nodes that are wired alike."""
    for number, (nodes, text) in enumerate(topology.folded(page.report.topologies), 1):
        links = topology.links(text)
        gpus = [name for name in links if name.startswith("GPU")]
        if len(gpus) > 1 and len(links) <= _MOST:
            name = "topology" if number == 1 else f"topology-{number}"
            yield _figure(page, name, nodeset.fold(nodes), links)


def _figure(page: Page, name: str, nodes: str, links: Links) -> Figure:
    drawing, places = Drawing(), _places(links)
    kinds: dict[str, None] = {}
    for one, other, word in _edges(links):
        if look := _look(word):
            kinds[word] = None
            drawing.way((places[one], places[other]), look, f"{one} - {other}: {word}")
    for device, (x, y) in places.items():
        half = max(22.0, scales.width(device) / 2 + 4)
        drawing.box((x - half, y - 11), (2 * half, 22), "node")
        drawing.text((x, y + 4.5), scales.fitted(shown(device), 90), "mid small")
    top = max(y for _, y in places.values()) + 40
    _legend(page, drawing, kinds, top)
    return Figure(
        name=name,
        title=page.say("figure.topology", names=shown(nodes)),
        summary=_summary(page, links),
        height=top + 22 * len(kinds),
        shapes=tuple(drawing.shapes),
        table=_table(links),
    )


def _edges(links: Links) -> Iterable[tuple[str, str, str]]:
    """Every pair once, those to draw in front last."""
    pairs = {
        frozenset((one, other)): (one, other, word)
        for one, row in links.items()
        for other, word in row.items()
        if other in links and other != one
    }
    return sorted(pairs.values(), key=lambda pair: pair[2].startswith("NV"))


def _look(word: str) -> str:
    """Of a link that is drawn; empty for one over a processor, which any two devices have."""
    if word.startswith("NV"):
        count = int(word[2:]) if word[2:].isdigit() else 1
        return "line s0 d0 wide" if count > 1 else "line thin s2 d1"
    return _LOOKS.get(word, "")


def _places(links: Links) -> dict[str, Place]:
    """GPUs on a circle, each other device outside of it, beside the GPU that is nearest to it."""
    gpus = [name for name in links if name.startswith("GPU")]
    turn = 2 * math.pi / len(gpus)
    angles = {gpu: turn * (number + 0.5) - math.pi / 2 for number, gpu in enumerate(gpus)}
    places = {gpu: _at(_INNER, angle) for gpu, angle in angles.items()}
    beside: dict[str, list[str]] = {}
    for device in links:
        if device not in angles:
            beside.setdefault(_nearest(links, device, gpus), []).append(device)
    for gpu, devices in beside.items():
        for number, device in enumerate(devices):
            shift = (number - (len(devices) - 1) / 2) * turn / len(devices)
            places[device] = _at(
                _OUTER, angles[gpu] + shift + (turn / 2 if _between(links, device, gpus) else 0)
            )
    down = _MARGIN - min(y for _, y in places.values())
    return {device: (x, y + down) for device, (x, y) in places.items()}


def _nearest(links: Links, device: str, gpus: Sequence[str]) -> str:
    order = (*NEAR, "NODE", "SYS")
    words = [links[device].get(gpu, "SYS") for gpu in gpus]
    ranks = [order.index(word) if word in order else len(order) for word in words]
    return gpus[ranks.index(min(ranks))]


def _between(links: Links, device: str, gpus: Sequence[str]) -> bool:
    """Whether the GPU after the nearest one is as near."""
    nearest = gpus.index(_nearest(links, device, gpus))
    following = gpus[(nearest + 1) % len(gpus)]
    word = links[device].get(gpus[nearest])
    return word in NEAR and links[device].get(following) == word


def _at(radius: float, angle: float) -> Place:
    return WIDTH / 2 + 1.15 * radius * math.cos(angle), radius * math.sin(angle)


def _legend(page: Page, drawing: Drawing, kinds: Iterable[str], top: float) -> None:
    for number, word in enumerate(sorted(kinds)):
        y = top + 22 * number
        drawing.way([(8, y), (44, y)], _look(word))
        drawing.text((52, y + 4), f"{word}: {_meaning(page, word)}", "small")


def _meaning(page: Page, word: str) -> str:
    """What a link's word means, with its own number."""
    meaning = page.say(f"link.{topology.kind(word)}").replace("#", word.removeprefix("NV"))
    return page.say_or(f"link.{word}", meaning)


def _summary(page: Page, links: Links) -> str:
    counts: dict[str, int] = {}
    for _, _, word in _edges(links):
        counts[word] = counts.get(word, 0) + 1
    parts = page.say("comma").join(f"{word} x {count}" for word, count in sorted(counts.items()))
    return shown(page.say("figure.topology.summary", devices=len(links), links=parts))


def _table(links: Links) -> Table:
    names = tuple(links)
    rows = [
        (name, *("X" if name == other else links[name].get(other, "?") for other in names))
        for name in names
    ]
    return Table(("", *names), rows)
