"""A figure: its drawing, what it says in words, and its file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from orchestrator.report.figures import style
from orchestrator.report.markup import Element, Value, clean, element

WIDTH = 500
"""Half a screen, which a phone shows whole."""
LINE = 14
"""Pixels from a line of small words to the next."""
SIGNS = (
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",  # circle
    "m-3.6-3.6h7.2v7.2h-7.2z",  # square
    "m0-4.6l4.4 8h-8.8z",  # triangle
    "m0 4.6l4.4-8h-8.8z",  # triangle down
    "m-4 0h8m-4-4v8",  # plus
    "m-4.8 0v-3.2h9.6v6.4h-9.6z",  # flat box
    "m0-5l4.6 5l-4.6 5l-4.6-5z",  # diamond
    "m-4-4l8 8m0-8l-8 8",  # X
)
"""Paths around a place: one for each series, then these two."""
DIAMOND, CROSS = 6, 7
WINDOW = ("window that is measured", "测量窗口")
INTERVAL = ("interval of the median", "中位数的区间")
Place: TypeAlias = tuple[float, float]


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
    shapes: Sequence[Element]

    def file(self) -> str:
        """Return the drawing as a file of its own."""
        css = element("style", Element(style.CSS))
        return self.svg(css, xmlns="http://www.w3.org/2000/svg")

    def svg(self, *first: Element, **attributes: Value) -> Element:
        """Return the drawing for a page that has its style, or with its style as first element."""
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


def number_figures(figures: Sequence[Figure]) -> Iterator[Figure]:
    """Give figures of one sort names and titles of their own; a single one stays as it is."""
    for number, figure in enumerate(figures, 1):
        name = figure.name if number == 1 else f"{figure.name}-{number}"
        title = f"{figure.title} ({number}/{len(figures)})" if len(figures) > 1 else figure.title
        yield replace(figure, name=name, title=title)


@dataclass(slots=True)
class Drawing:
    """Shapes of a figure as they are added; ``look`` is the class that the style sheet knows."""

    shapes: list[Element] = field(default_factory=list)

    def path(self, steps: str, look: str, title: str = "") -> None:
        """Add a shape; those who point at it are shown its title."""
        titles = (element("title", clean(title)),) if title else ()
        self.shapes.append(element("path", *titles, class_=look, d=steps))

    def line(self, points: Iterable[Place], look: str, title: str = "") -> None:
        self.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), look, title)

    def sign(self, place: Place, number: int, look: str, title: str = "") -> None:
        """Add one of ``SIGNS``."""
        self.path(f"M{place[0]:.1f} {place[1]:.1f}{SIGNS[number]}", f"point {look}", title)

    def box(self, corner: Place, size: Place, look: str) -> None:
        (x, y), (width, height) = corner, size
        self.shapes.append(element("rect", class_=look, x=x, y=y, width=width, height=height))

    def text(self, place: Place, words: str | Sequence[str], look: str | None = None) -> None:
        """Add words, or lines of words; the first begins at ``place``, or as ``look`` says."""
        for number, line in enumerate([words] if isinstance(words, str) else words):
            y = place[1] + number * LINE
            self.shapes.append(element("text", line, class_=look, x=place[0], y=y))
