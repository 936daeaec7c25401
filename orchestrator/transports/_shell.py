"""Commands for a node's /bin/sh, by its standard input: ``ps`` shows no script, and any login shell
can start it.
"""

import re
import secrets
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.transports import Stream

SH = "/bin/sh"
MOST_WORDS = 64 << 10  # bytes that start-up files may print
# A start-up file may have put zsh in the place of its own shell. bash and ksh take TMOUT, which
# start-up files export, for the longest wait of `read`.
HEAD = '[ -z "$ZSH_VERSION" ] || emulate sh\nunset TMOUT\n'
# $1: a file; $2: another name beside it; $3: the bytes that must come, so that half is no file.
# Another lane that forgets its attempt may remove the new folder while it is still empty. With -C
# the file is created by its one open, through no link; a failed open has read nothing of the input.
PUT = """
export LC_ALL=C
umask 077
set -C
tries=0
until mkdir -p -- "${1%/*}" && { head -c "$3"; } >"$2"; do
    [ ! -e "$2" ] || break
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || exit 1
done
[ "$(wc -c <"$2")" -eq "$3" ] && mv -fT -- "$2" "$1" && exit
rm -f -- "$2"
exit 1
"""


class NoShell(Exception):
    """The login shell has started no /bin/sh; with the bytes that it printed instead."""


def format_script(argv: tuple[str, ...]) -> str:
    """Return what a shell reads to run ``argv`` without input; a script runs in that shell."""
    return f"{{\nexec </dev/null\n{_body(argv)}\nexit\n}}\n"


def format_nested(argv: tuple[str, ...]) -> str:
    """Return a command that runs ``argv`` without input in a shell of its own."""
    return f"printf %s {shlex.quote(format_script(argv))} | "


def is_script(argv: tuple[str, ...]) -> bool:
    """Return True for `sh -c SCRIPT NAME [WORD...]`."""
    return argv[:2] == ("sh", "-c")


def format_write(path: str, size: int) -> tuple[str, ...]:
    """Return a script that writes so many bytes of its input to a file, aside and then renamed."""
    return ("sh", "-c", PUT, "sh", path, f"{path}.{secrets.token_hex(4)}.new", str(size))


@dataclass(frozen=True, slots=True)
class Marks:
    """Lines around an answer; no start-up file prints them, nor does one that copies its input."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    def format_run(self, argv: tuple[str, ...], *, is_fed: bool = False) -> bytes:
        """Return what /bin/sh reads to run ``argv`` and to print its exit status.

        Args:
            is_fed: whether what comes next is the input of ``argv``, which has none otherwise.
        """
        if is_fed:
            command = f"(\n{_body(argv)}\n)"
        else:
            command = (
                f"{format_nested(argv)}{SH}"
                if is_script(argv)
                else f"{shlex.join(argv)} </dev/null"
            )
        ending = f'\ncode=$?\n{self._print("$code")}\nexit "$code"'
        return f"{HEAD}{{\n{self._print('begin')}\n{command}{ending}\n}}\n".encode(
            errors="surrogateescape"
        )

    def format_open(self, argv: tuple[str, ...]) -> bytes:
        """Return what /bin/sh reads to become ``argv``, whose input is what comes next."""
        command = _body(argv) if is_script(argv) else f"exec {shlex.join(argv)}"
        text = f"{HEAD}{{\nexec 2>/dev/null\n{self._print('begin')}\n{command}\nexit\n}}\n"
        return text.encode(errors="surrogateescape")

    def begin(self, stream: "Stream", text: bytes) -> None:
        """Send ``text`` and skip what comes before its first mark.

        Raises:
            NoShell: the output ended without the mark.
            TimeoutError, NodeUnreachable: as the stream's.
        """
        mark, seen = f"\n{self.nonce} begin\n".encode(), bytearray()
        try:
            stream.sendall(text)
            while not seen.endswith(mark) and (byte := stream.recv(1)):
                seen += byte
                if len(seen) > MOST_WORDS:
                    break
        except (TimeoutError, BrokenPipeError) as error:
            raise NoShell(bytes(seen)) from error
        if not seen.endswith(mark):
            raise NoShell(bytes(seen))

    def parse_answer(self, stdout: bytearray, stderr: bytearray) -> tuple[int, bytes, bytes] | None:
        """Return exit status and both outputs between the marks; None without the last marks."""
        last = re.compile(rf"\n{self.nonce} (\d+)\n".encode())
        ends = [last.search(text, max(len(text) - 64, 0)) for text in (stdout, stderr)]
        if not (ends[0] and ends[1]):
            return None
        _, _, errors = stderr[: ends[1].start()].partition(f"\n{self.nonce} begin\n".encode())
        return int(ends[0][1]), bytes(stdout[: ends[0].start()]), bytes(errors)

    def _print(self, word: str) -> str:
        printed = f"printf '\\n%s%s %s\\n' {self.nonce[:8]} {self.nonce[8:]} {word}"
        return f"{printed} >&2\n{printed}"


def _body(argv: tuple[str, ...]) -> str:
    return f"set -- {shlex.join(argv[4:])}\n{argv[2]}" if is_script(argv) else shlex.join(argv)
