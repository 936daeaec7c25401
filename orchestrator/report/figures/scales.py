"""Scales and ticks of figures, and widths of words."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

LETTER, IDEOGRAPH = 0.6, 1.0
"""Widths of a letter in its height: of letters on average, of Chinese always."""
TEXT_PX = 13.0
_BETWEEN = 4
"""Pixels between two labels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places in a figure."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def ticks(high: float, count: int) -> list[float]:
    """Return about ``count`` round values from 0 to the first that is not below ``high``."""
    step = _round(high / count)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def _round(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if value <= step * power * 1.001
    )


def tick_text(value: float) -> str:
    """Write a round value in few letters: 25k, 2.5, 0.05."""
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:g}"


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


def apart(labels: Sequence[tuple[float, str]], edge: float) -> list[tuple[float, str]]:
    """Keep labels around ascending places that neither overlap nor reach over the edge."""
    kept: list[tuple[float, str]] = []
    last = -math.inf
    for place, label in labels:
        half = width(label) / 2
        middle = min(place, edge - half)
        if middle - half >= last + _BETWEEN:
            kept.append((middle, label))
            last = middle + half
    return kept
