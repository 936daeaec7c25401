"""Output for people. The home of rich.

``voice`` says lines, results, tables, errors and the JSON document, ``terminal`` is where it says
them, ``tables`` fits tables to it, ``view`` is the live view of a sweep.
"""

from orchestrator.console.voice import Voice, harmless

__all__ = ["Voice", "harmless"]
