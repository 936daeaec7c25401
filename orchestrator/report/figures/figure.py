"""Figures and what they are drawn of: style, signs, scales, shapes and widths of words."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

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
SERIES = 6
"""Series of one figure, which differ in color, marker and dashes."""
LETTER, IDEOGRAPH = 0.6, 1.0
"""Widths of a letter in its height: of letters on average, of Chinese always."""
TEXT_PX = 13.0
_SHAPES = """\
.fig text{font:13px system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC",sans-serif}
.fig .small{font-size:12px}
.fig .end{text-anchor:end}.fig .mid{text-anchor:middle}
.fig path{fill:none}
.fig .line{stroke-width:2}.fig .thin{stroke-width:1.2}.fig .point{stroke-width:1.6}
.fig .bar{stroke-width:10;stroke-opacity:.35}
.fig .ideal{stroke-width:1.2;stroke-dasharray:1 4;stroke-linecap:round}
.fig .bad{paint-order:stroke;stroke-width:5}
.fig .d1{stroke-dasharray:7 3}.fig .d2{stroke-dasharray:2 3}.fig .d3{stroke-dasharray:9 3 2 3}
.fig .d4{stroke-dasharray:12 5}.fig .d5{stroke-dasharray:4 2}
"""


def _colors(
    *series: str, background: str, ink: str, soft: str, grid: str, window: str, wrong: str
) -> str:
    shapes = (
        f".fig .bg{{fill:{background}}}.fig text{{fill:{ink}}}.fig text.soft{{fill:{soft}}}\n"
        f".fig .axis{{stroke:{soft}}}.fig .grid{{stroke:{grid}}}.fig .window{{fill:{window}}}\n"
        f".fig .edge{{stroke:{series[0]}}}.fig .out{{stroke:{wrong}}}.fig .held{{fill:{wrong}}}\n"
        f".fig text.bad{{fill:{wrong};stroke:{background}}}\n"
    )
    return shapes + "".join(
        f".fig .s{number}{{stroke:{color}}}.fig .s{number}.full{{fill:{color}}}"
        f".fig .s{number}.open{{fill:{background}}}\n"
        for number, color in enumerate(series)
    )


_LIGHT = _colors(
    *("#0b5fa5", "#b34700", "#1b7837", "#7b3294", "#7a6000", "#4b5563"),
    **{"background": "#fff", "ink": "#1f2328", "soft": "#57606a"},
    **{"grid": "#d8dee4", "window": "#dbe9f6", "wrong": "#b3261e"},
)
_DARK = _colors(
    *("#6cb6ff", "#ffa657", "#7ee787", "#d2a8ff", "#e3c04b", "#b1bac4"),
    **{"background": "#0d1117", "ink": "#e6edf3", "soft": "#9aa4af"},
    **{"grid": "#2d343c", "window": "#16304a", "wrong": "#ff8f88"},
)
CSS = f"{_SHAPES}{_LIGHT}@media screen and (prefers-color-scheme:dark){{\n{_DARK}}}\n"


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of some of a report's numbers; ``summary`` is for those who do not see it.

    ``name`` is that of its file, without an ending; shapes in front come last.
    """

    name: str
    title: str
    summary: str
    height: float
    shapes: Sequence[Element]

    def file(self) -> str:
        """Return the drawing as a file of its own."""
        css = element("style", Element(CSS))
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


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels; values beyond an end are drawn at that end."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def ticks(high: float, count: int) -> list[float]:
    """Return about ``count`` round values from 0 to the first that is not below ``high``."""
    power = 10.0 ** math.floor(math.log10(high / count))
    steps = (step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0))
    step = next(step for step in steps if high / count <= step * 1.001)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def width(text: str) -> float:
    """Estimate the pixels that a text takes."""
    return sum(IDEOGRAPH if ord(letter) > 0x2E7F else LETTER for letter in text) * TEXT_PX


def wrapped(text: str, pixels: float) -> list[str]:
    """Split a text into lines of at most so many pixels, behind blanks and marks if possible."""
    lines = [""]
    for part in re.findall(r"[^ ,_/=-]*[ ,_/=-]?", text):
        if lines[-1] and width(lines[-1] + part.rstrip()) > pixels:
            lines.append("")
        for letter in part:
            if width(lines[-1] + letter) > pixels and letter != " ":
                lines.append("")
            lines[-1] += letter
    return [line.rstrip() for line in lines]
