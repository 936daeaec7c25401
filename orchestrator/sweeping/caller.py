"""The command that runs a sweep."""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.console import Voice
from orchestrator.signals import Signals
from orchestrator.state.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Caller:
    """Give a sweep the console, the signals and the callback of the command that runs it.

    Args:
        begun: called with the sweep each time a gang of it runs.
    """

    voice: Voice
    signals: Signals
    begun: Callable[[Sweep], None] = lambda _sweep: None
