"""Signals that end a sweep in good order: the first asks, the second leaves at once."""

import signal
from types import FrameType, TracebackType


class Abandoned(BaseException):
    """A second signal: leave now, whatever runs."""


class Signals:
    """While entered, SIGINT, SIGTERM and SIGHUP are remembered instead of ending the program."""

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> "Signals":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stopping(self) -> bool:
        """Whether a signal has come."""
        return bool(self.received)

    def _remember(self, number: int, _: FrameType | None) -> None:
        if self.received:
            raise Abandoned
        self.received = number
