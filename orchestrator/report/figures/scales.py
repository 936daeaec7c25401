"""Scales and ticks of figures, and widths of words."""

import math
import re
from dataclasses import dataclass

LETTER, IDEOGRAPH = 0.6, 1.0
"""Widths of a letter in its height: of letters on average, of Chinese always."""
TEXT_PX = 13.0


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
