"""The lines of a table that sets us beside peers, and how they are taken."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess

from tests.people import events


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Args:
        peer_s: None where there is no peer.
        aim: at most so much of the peer's time; without a peer so many seconds; 0 for none.
    """

    what: str
    ours_s: float
    peer: str
    peer_s: float | None
    aim: float

    @property
    def verdict(self) -> str:
        """Whether the aim is met."""
        if not self.aim:
            return ""
        return "met" if self.ours_s / (self.peer_s or 1) <= self.aim else "missed"


def between_trials_s(sweep: Path) -> list[float]:
    """Seconds from each trial of the newest sweep to the next, all that a trial costs included."""
    began = [datetime.fromisoformat(event["at"]) for event in events(sweep, "intent")]
    return [(later - sooner).total_seconds() for sooner, later in pairwise(began)]


def must(run: "Callable[..., CompletedProcess[str]]", *words: str, **env: str) -> None:
    """Run a command of ours, which must end well."""
    done = run(*words, **env)
    if done.returncode:
        said = f"{done.stdout[-2000:]}{done.stderr[-3000:]}"
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{said}")


def lasting_s(act: Callable[[], None]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def spread(what: str, ours_s: Sequence[float], peer_s: Sequence[float]) -> None:
    """Print every value, so that one can see what the medians are worth."""
    ours, theirs = (" ".join(f"{value:.2f}" for value in values) for values in (ours_s, peer_s))
    print(f"{what}, s: ours {ours}; peer {theirs or '-'}", flush=True)


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    head = f"{'ours':>8} {'peer':>8} {'ratio':>6} {'aim':>5}"
    print(f"\n{'median of seconds':32} {head}         peer")
    for row in rows:
        peer = f"{row.peer_s:8.3f}" if row.peer_s is not None else f"{'-':>8}"
        ratio = f"{row.ours_s / row.peer_s:6.2f}" if row.peer_s is not None else f"{'-':>6}"
        aim = f"{row.aim:5.2f}" if row.aim else f"{'-':>5}"
        print(f"{row.what:32} {row.ours_s:8.3f} {peer} {ratio} {aim} {row.verdict:6} {row.peer}")
