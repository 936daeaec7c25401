"""The text of a user's file: a regular file of at most 1 MiB, in UTF-8 without control characters.

Directories, pipes, large files and characters that reorder text never reach the parser.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.documents.document import START, Position, mistake

INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters
    r"\u2028\u2029"  # line breaks in YAML 1.1, text in YAML 1.2
    r"\u202a-\u202e\u2066-\u2069"  # show a text in another order than it has
    r"\ufeff\ufffe\uffff"
    r"\ud800-\udfff"  # half a character, or a byte that is not UTF-8
)
_MOST_BYTES = 1 << 20
_UNFIT = re.compile(rf"[{INVISIBLE}]|\r(?!\n)")


def read(path: Path) -> tuple[str, list[errors.Mistake]]:
    """Return the text, and what is wrong with the file or its lines but leaves them readable.

    Raises:
        ConfigError: there is no text to go on with.
    """
    file = str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise _unusable(file, f"{kind}; needed a regular file")
        content = _content(path, status.st_size)
    except OSError as err:
        needed = "needed a file that can be read"
        raise _unusable(file, f"cannot be read: {err.strerror}; {needed}") from err
    except ValueError as err:
        raise _unusable(file, f"not a file name ({err}); needed a file") from err
    text = _decode(file, content)
    return text, [*_open_to_all(file, status.st_mode), *_unfit_lines(file, text)]


def _unusable(file: str, text: str) -> errors.ConfigError:
    return errors.ConfigError([mistake(file, START, (), text)])


def _content(path: Path, size: int) -> bytes:
    if size <= _MOST_BYTES:
        # A pipe may have taken the file's place since; without O_NONBLOCK it would hang here.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) <= _MOST_BYTES:
            return content
        size = len(content)
    needed = f"needed at most {_MOST_BYTES} bytes (1 MiB)"
    raise _unusable(str(path), f"{size} bytes or more; {needed}")


def _open_to_all(file: str, mode: int) -> Iterator[errors.Mistake]:
    if mode & stat.S_IWOTH:
        text = f"everyone may write to it (mode {stat.S_IMODE(mode):04o}); needed chmod o-w"
        yield mistake(file, START, (), text)


def _decode(file: str, content: bytes) -> str:
    text = content.decode("utf-8", "surrogateescape")
    problems = [
        mistake(file, Position(number, match.start() + 1), (), _unfit(match.group()))
        for number, line in enumerate(re.split(r"(?<=\n)", text), start=1)
        if (match := _UNFIT.search(line))
    ]
    if problems:
        raise errors.ConfigError(problems)
    return text


def _unfit(char: str) -> str:
    if "\ud800" <= char <= "\udfff":
        return f"byte 0x{ord(char) - 0xDC00:02x} is not UTF-8 here; needed text in UTF-8"
    return f"control character U+{ord(char):04X}; needed text in UTF-8 that can be seen"


def _unfit_lines(file: str, text: str) -> Iterator[errors.Mistake]:
    """Yield what YAML's readers differ about: tabs outside comments, and directives."""
    for number, line in enumerate(text.split("\n"), start=1):
        before, tab, _ = line.partition("\t")
        if tab and not re.search(r"(^|\s)#", before):
            yield mistake(file, Position(number, len(before) + 1), (), "a tab; needed spaces")
        if line.startswith("%"):
            seen = "a line that begins with %, a YAML directive"
            yield mistake(file, Position(number, 1), (), f"{seen}; needed none")
