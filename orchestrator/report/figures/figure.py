"""A figure: its drawing, what it says in words, and its file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.report.figures import style
from orchestrator.report.markup import Child, Element, Style, Value, clean, element

WIDTH = 500
"""Half a screen, which a phone shows whole."""
LINE = 14
"""Pixels from a line of small words to the next."""
_MARKERS = 6
_HATCH = 6


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of some of a report's numbers.

    Args:
        name: of its file, without an ending; unlike any other figure's.
        title: its caption.
        summary: what it shows, for those who do not see it.
        shapes: of the drawing, those in front last.
    """

    name: str
    title: str
    summary: str
    height: float
    shapes: tuple[Element, ...]

    def inline(self) -> Element:
        """Return the drawing for a page that has its style."""
        return self._svg(())

    def file(self) -> str:
        """Return the drawing as a file of its own."""
        return f"{self._svg((element('style', Style(style.CSS)),), xmlns=_NAMESPACE)}"

    def _svg(self, first: Sequence[Element], **attributes: Value) -> Element:
        return element(
            "svg",
            element("title", self.title, id=f"{self.name}-title"),
            element("desc", self.summary, id=f"{self.name}-desc"),
            first,
            element("rect", class_="bg", width=WIDTH, height=self.height),
            self.shapes,
            **attributes,
            class_="fig",
            role="img",
            aria_labelledby=f"{self.name}-title {self.name}-desc",
            viewBox=f"0 0 {WIDTH} {self.height:g}",
            width=WIDTH,
            height=self.height,
        )


_NAMESPACE = "http://www.w3.org/2000/svg"


def numbered(figures: Sequence[Figure]) -> Iterable[Figure]:
    """Figures of one sort, each with a name and a title of its own; a single one as it is."""
    for number, figure in enumerate(figures, 1):
        if len(figures) == 1:
            yield figure
            return
        name = figure.name if number == 1 else f"{figure.name}-{number}"
        yield replace(figure, name=name, title=f"{figure.title} ({number}/{len(figures)})")


@dataclass(slots=True)
class Drawing:
    """Shapes of a figure as they are added."""

    shapes: list[Element] = field(default_factory=list)

    def line(self, start: tuple[float, float], end: tuple[float, float], look: str) -> None:
        """Add a straight line."""
        self.shapes.append(
            element("line", class_=look, x1=start[0], y1=start[1], x2=end[0], y2=end[1])
        )

    def way(self, points: Iterable[tuple[float, float]], look: str, title: str = "") -> None:
        """Add a line through points; a single point is a dot as wide as the stroke."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        children = (element("title", title),) if title else ()
        self.shapes.append(element("polyline", *children, class_=look, points=places))

    def spans(self, spans: Iterable[tuple[float, float, float]], look: str) -> None:
        """Add upright lines as one shape, each by its place across and both of its ends."""
        path = "".join(f"M{x:.1f} {low:.1f}V{high:.1f}" for x, low, high in spans)
        if path:
            self.shapes.append(element("path", class_=look, d=path))

    def box(self, corner: tuple[float, float], size: tuple[float, float], look: str) -> None:
        """Add a rectangle."""
        x, y = corner
        width, height = size
        self.shapes.append(element("rect", class_=look, x=x, y=y, width=width, height=height))

    def hatched(self, corner: tuple[float, float], size: tuple[float, float], look: str) -> None:
        """Add a rectangle of slanted lines, which differs from others without color."""
        (x, y), (width, height) = corner, size
        lines = []
        for shift in range(_HATCH, int(width + height), _HATCH):
            first = max(0.0, shift - height), min(height, shift)
            last = min(width, shift), max(0.0, shift - width)
            lines.append(
                f"M{x + first[0]:.1f} {y + first[1]:.1f}L{x + last[0]:.1f} {y + last[1]:.1f}"
            )
        self.box(corner, size, look)
        self.shapes.append(element("path", class_=look, d="".join(lines)))

    def text(self, place: tuple[float, float], text: Child, look: str | None = None) -> None:
        """Add words; ``place`` is where their line begins, or as ``look`` says."""
        self.shapes.append(element("text", text, class_=look, x=place[0], y=place[1]))

    def lines(self, place: tuple[float, float], lines: Iterable[str], look: str) -> None:
        """Write words in lines below one another."""
        for number, line in enumerate(lines):
            self.text((place[0], place[1] + number * LINE), line, look)

    def point(self, place: tuple[float, float], marker: int, look: str, title: str = "") -> None:
        """Add a marker: circle, square, triangle, diamond, triangle down or cross."""
        x, y = place
        children = (element("title", clean(title)),) if title else ()
        look = f"point {look}"
        marker %= _MARKERS
        if marker == 0:
            self.shapes.append(element("circle", *children, class_=look, cx=x, cy=y, r=4))
            return
        offsets = _OFFSETS[marker - 1]
        path = "M" + "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in offsets) + "Z"
        if marker == 5:
            path = f"M{x - 4:.1f} {y:.1f}H{x + 4:.1f}M{x:.1f} {y - 4:.1f}V{y + 4:.1f}"
        self.shapes.append(element("path", *children, class_=look, d=path))

    def cross(self, place: tuple[float, float], title: str = "") -> None:
        """Add an X, the sign of a trial that does not count."""
        x, y = place
        children = (element("title", clean(title)),) if title else ()
        path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        self.shapes.append(element("path", *children, class_="point out", d=path))


_OFFSETS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
    ((0, -4.6), (4.4, 3.4), (-4.4, 3.4)),
    ((0, -5), (4.6, 0), (0, 5), (-4.6, 0)),
    ((0, 4.6), (4.4, -3.4), (-4.4, -3.4)),
    (),
)
