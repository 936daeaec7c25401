"""The debug log in the state folder: every remote command and how long it took. Holds no secret."""

import contextlib
import logging
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

NAME = "dlperf"
MOST_BYTES = 5 << 20
FORM = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s: %(message)s"


class _Spoken(logging.Handler):
    """Gives every line that is logged to ``say``."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(self.format(record))


class _File(RotatingFileHandler):
    """A log file that is made with its first line: bad input touches nothing."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # no debug log stops nothing
            Path(self.baseFilename).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            super().emit(record)

    def handleError(self, _: logging.LogRecord) -> None:
        """Drop the error: a full disk is reported by the files that matter."""


def begin(state: Path, say: Callable[[str], None] | None) -> None:
    """Write a debug log to ``state/debug.log``, where possible, and every line to ``say``."""
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logging.getLogger("paramiko").propagate = False  # its failures become errors of ours
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    if say is not None:
        logger.addHandler(_Spoken(say))
    file = _File(state / "debug.log", maxBytes=MOST_BYTES, backupCount=1, delay=True)
    file.setFormatter(logging.Formatter(FORM, "%Y-%m-%dT%H:%M:%S"))
    logger.addHandler(file)
