"""How often a case is measured: as often as it takes, and a canary beside it."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from orchestrator.model.text import Conflict, Matching, Noun

_PERCENT = re.compile(r"(?!0*\.?0*%)[0-9]{1,2}(\.[0-9]{1,3})?%")
Percent = Annotated[str, Matching(_PERCENT, "more than 0 % and less than 100 %, such as 1%")]
Times = Annotated[int, Field(ge=1, le=1000)]
Place = Literal["start", "middle", "end"]


class Repeats(Noun):
    """Trials of a case until its interval is narrow."""

    min: Times
    """Trials of each case, however near to each other they are; at least 2."""
    max: Times
    """Trials of a case whose interval stays wider; it is marked UNSETTLED then."""
    until_interval: Percent
    """A case needs no further trial once the interval of its median is at most so wide, as a share
    of the median."""

    @property
    def share(self) -> float:
        """Return ``until_interval`` as a number, 0.01 for 1%."""
        return float(self.until_interval.removesuffix("%")) / 100

    def conflicts(self) -> Iterator[Conflict]:
        """Yield a minimum of one trial, which has no interval; a maximum below the minimum."""
        if self.min < 2:
            text = f"{self.min}; needed at least 2, since one trial has no interval"
            yield Conflict(("method", "repeats", "min"), text)
        if self.max < self.min:
            text = f"{self.max} with min: {self.min}; needed at least as many"
            yield Conflict(("method", "repeats", "max"), text)


class Canary(Noun):
    """One case that is measured again and again while a sweep goes on, outside of the medians."""

    case: str | None = None
    """A placement or a case's name, maybe with `*`, of which the smallest match is measured.
    Default: the smallest case, single-node if there is one."""
    at: tuple[Place, ...] = Field(default=("start", "middle", "end"), min_length=1)
    """Before the first trial, after half of those that run for certain, after the last."""

    def conflicts(self) -> Iterator[Conflict]:
        """Yield each place that is there twice."""
        for index, place in enumerate(self.at):
            if self.at.index(place) < index:
                text = f"{place!r} is there twice; needed each place once"
                yield Conflict(("method", "canary", "at", index), text)


def _kind(value: object) -> str:
    return "mapping" if isinstance(value, dict | Noun) else "plain"


Often = Annotated[
    Annotated[Times, Tag("plain")] | Annotated[Repeats, Tag("mapping")], Discriminator(_kind)
]
Asked = Annotated[
    Annotated[bool, Tag("plain")] | Annotated[Canary, Tag("mapping")], Discriminator(_kind)
]
