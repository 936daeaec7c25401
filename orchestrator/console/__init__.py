"""What people see. The home of rich.

``voice`` says lines, results, tables, errors and the JSON document, ``tables`` fits tables to the
terminal, ``view`` is the live view of a sweep.
"""

from orchestrator.console.view import Row, View, duration
from orchestrator.console.voice import Voice, harmless

__all__ = ["Row", "View", "Voice", "duration", "harmless"]
