"""Progress of an image transfer, from an engine's status lines of its layers."""

import time
from collections.abc import Mapping
from typing import Any

# Unpacking is not counted: the same bytes would count twice.
CARRYING, CARRIED = ("Downloading", "Pushing"), ("Download complete", "Pushed")


class Flow:
    """Adds up the bytes of an image's layers while the engine pulls or pushes them."""

    def __init__(self) -> None:
        self._moved_at = time.monotonic()
        self._last: dict[str, tuple[str, int]] = {}
        self._bytes: dict[str, tuple[int, int]] = {}

    @property
    def still_s(self) -> float:
        """Seconds since any layer made progress."""
        return time.monotonic() - self._moved_at

    @property
    def carried(self) -> int:
        """Bytes transferred so far."""
        return sum(carried for carried, _ in self._bytes.values())

    @property
    def total(self) -> int:
        """Bytes to transfer in all, of the layers whose size the engine has sent so far."""
        return sum(total for _, total in self._bytes.values())

    def take(self, word: Mapping[str, Any]) -> None:
        """Count one status line of the engine."""
        detail, layer = word.get("progressDetail") or {}, str(word.get("id", ""))
        status, current = str(word.get("status", "")), int(detail.get("current", 0))
        # Counting down to its next try, the engine talks and nothing comes.
        if status.startswith("Retrying") or self._last.get(layer) == (status, current):
            return
        self._moved_at = time.monotonic()
        self._last[layer] = status, current
        if status in CARRYING and current:
            self._bytes[layer] = current, max(current, int(detail.get("total", 0)))
        elif status in CARRIED and layer in self._bytes:
            total = self._bytes[layer][1]
            self._bytes[layer] = total, total
