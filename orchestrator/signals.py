"""Signals that ask this program to end: the first one in good order, a second one at once."""

import contextlib
import os
import signal
import sys
import time
from types import FrameType
from typing import NoReturn

REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEFTOVER = 7
SAME_S = 0.5  # `timeout` sends its SIGTERM to the process and to its group: that is one request
PATIENCE_S = 5.0  # for closing connections and giving locks back
CUT = (
    b"exited at once: `dlperf-orch status` shows what may still run, `dlperf-orch stop` ends it,"
    b" the same command resumes\n"
)


class Stopped(BaseException):
    """The first request, where nothing has been started that must be ended in order."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.exit_code = 130 if number == signal.SIGINT else 143


class Abandoned(BaseException):
    """A further request while started tasks are being ended: leave now, whatever runs."""


class Signals:
    """The requests to end that this process was sent.

    Until ``begin`` a request is only remembered: nothing has been started yet. From then on it
    raises ``Stopped``. Within the context it is only remembered again, in ``received``, and a
    further SIGINT or SIGTERM raises ``Abandoned``. Each is raised once. Requests are ignored while
    the program leaves; after ``PATIENCE_S`` of that, one ends it at once. A terminal that
    closes sends SIGHUP twice, by its shell and by the kernel: a further SIGHUP never asks for more.
    """

    def __init__(self) -> None:
        self.received = 0
        self._at = 0.0
        self._begun = self._in_order = self._abandoned = self._leaving = False

    def take(self) -> None:
        """Handle the signals from now on; one ignored at the start, as by nohup, stays ignored."""
        for number in REQUESTS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._come)

    def begin(self) -> None:
        """Note that a command begins; raise ``Stopped`` if a request came before."""
        self._begun = True
        if self.received and not self._leaving:
            self.leave()
            raise Stopped(self.received)

    def __enter__(self) -> "Signals":
        self._in_order = True
        return self

    def __exit__(self, *_: object) -> None:
        self._in_order = False

    def stopping(self) -> bool:
        return bool(self.received)

    def leave(self) -> None:
        """Note that the work is over; ignore further requests."""
        self._leaving, self._at = True, time.monotonic()

    def ignore(self) -> None:
        """Ignore requests between the last statement of the program and its exit code."""
        for number in REQUESTS:
            signal.signal(number, signal.SIG_IGN)

    def end(self, code: int | None) -> NoReturn:
        """End the program; at once where work was abandoned, whose threads still run.

        With such threads the interpreter was seen to crash as it ended: exit -11, not 7.
        """
        if self._abandoned:
            import logging  # already imported by then

            self.ignore()
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(LEFTOVER if code is None else code)
        sys.exit(code)

    def _come(self, number: int, _: FrameType | None) -> None:
        first = not self.received
        soon = time.monotonic() - self._at < SAME_S
        if first:
            self.received = number
        elif number == signal.SIGHUP or (number == self.received == signal.SIGTERM and soon):
            return
        if not self._begun:
            return
        if self._leaving:
            if time.monotonic() - self._at >= PATIENCE_S:  # too long for the rest of leaving
                with contextlib.suppress(OSError):
                    os.write(2, CUT)
                os._exit(LEFTOVER if self._abandoned else Stopped(self.received).exit_code)
        elif self._in_order and first:
            self._at = time.monotonic()
        elif self._in_order:
            self.leave()
            self._abandoned = True
            raise Abandoned
        elif first:
            self.leave()
            raise Stopped(number)


SIGNALS = Signals()  # those of this process
