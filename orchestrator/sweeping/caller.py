"""The command that runs a sweep."""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.console import Voice
from orchestrator.signals import Signals
from orchestrator.state.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Caller:
    """The command that runs a sweep, as the sweep sees it.

    Args:
        begun: called with the sweep each time a gang of it runs.
    """

    voice: Voice
    signals: Signals
    begun: Callable[[Sweep], None] = lambda _sweep: None
