"""How far an image is on its way, from what an engine says while it carries its layers."""

import time
from collections.abc import Mapping
from typing import Any

# What is being unpacked is not counted again.
CARRYING, CARRIED = ("Downloading", "Pushing"), ("Download complete", "Pushed")


class Flow:
    """How far the layers of an image are, from what the engine says of each."""

    def __init__(self) -> None:
        self._moved_at = time.monotonic()
        self._said: dict[str, tuple[str, int]] = {}
        self._bytes: dict[str, tuple[int, int]] = {}

    @property
    def still_s(self) -> float:
        """Seconds since anything of it moved."""
        return time.monotonic() - self._moved_at

    @property
    def came(self) -> int:
        """Bytes that were carried."""
        return sum(came for came, _ in self._bytes.values())

    @property
    def known(self) -> int:
        """Bytes that will have been, as far as is known yet."""
        return sum(known for _, known in self._bytes.values())

    def take(self, word: Mapping[str, Any]) -> None:
        """Heed one word of the engine's."""
        detail, layer = word.get("progressDetail") or {}, str(word.get("id", ""))
        status, current = str(word.get("status", "")), int(detail.get("current", 0))
        # Counting down to its next try, the engine talks and nothing comes.
        if status.startswith("Retrying") or self._said.get(layer) == (status, current):
            return
        self._moved_at = time.monotonic()
        self._said[layer] = status, current
        if status in CARRYING and current:
            self._bytes[layer] = current, max(current, int(detail.get("total", 0)))
        elif status in CARRIED and layer in self._bytes:
            known = self._bytes[layer][1]
            self._bytes[layer] = known, known
