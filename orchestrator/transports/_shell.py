"""Commands for a node's /bin/sh, by its standard input: ``ps`` shows no script, and any login shell
can start it.
"""

import re
import secrets
import shlex
from contextlib import suppress
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
until { [ -d "${1%/*}" ] || mkdir -p -- "${1%/*}"; } && { head -c "$3"; } >"$2"; do
    [ ! -e "$2" ] || break
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || exit 1
done
[ "$(wc -c <"$2")" -eq "$3" ] && mv -fT -- "$2" "$1" && exit
rm -f -- "$2"
exit 1
"""
ABSENT = 44  # the status of GET where there is no file
# After any other status a script may have left some of its input, which the shell must not run.
READ_ALL = (0, ABSENT)
# $1: a file; $2: from which byte; $3: how many at most; $4: "own" for none but plain files of ours.
# Others may put a link or a FIFO in its place meanwhile: then nothing is read. What was read counts
# only with status 0. A path that cannot be followed, as on a file system that fails, does not mean
# that there is no file.
GET = """
export LC_ALL=C
flags=fullblock,skip_bytes,count_bytes
if [ "$4" = own ]; then
    [ -f "$1" ] || [ ! -e "$1" ] || exit 44
    flags=$flags,nofollow,nonblock
fi
if { seen=$(dd if="$1" bs=64k iflag=$flags skip="$2" count="$3" status=none 2>&1 >&3); } 3>&1; then
    [ "$4" = any ] || [ -O "$1" ] && exit
    # NFS may give us another owner than ourselves: ours is what has the owner of its folder.
    set -- $(stat -c %u -- "${1%/*}" "$1")
    [ -n "$2" ] && [ "$1" = "$2" ] && exit
    exit 44
fi
case $4:$seen in
*": No such file or directory" | *": Not a directory" | *": No such process") exit 44 ;;
own:*": failed to open "*symbolic*) exit 44 ;;
esac
echo "$seen" >&2
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


def format_read(path: str, offset: int, size: int, *, own: bool) -> tuple[str, ...]:
    """Return a script that prints so many bytes of a file; its status is ABSENT if it is none."""
    return ("sh", "-c", GET, "sh", path, str(offset), str(size), "own" if own else "any")


@dataclass(frozen=True, slots=True)
class Marks:
    """Lines around an answer; no start-up file prints them, nor does one that copies its input."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    def format_run(self, argv: tuple[str, ...], *, is_fed: bool = False) -> bytes:
        """Return what /bin/sh reads to run ``argv`` and to print its exit status.

        Args:
            is_fed: whether what comes next is the input of ``argv``, which has none otherwise;
                after a status of READ_ALL the shell goes on.
        """
        after = 'exit "$code"'
        if is_fed:
            command = f"(\n{_body(argv)}\n)"
            after = f"case $code in {'|'.join(map(str, READ_ALL))}) ;; *) {after} ;; esac"
        elif is_script(argv):
            command = f"{format_nested(argv)}{SH}"
        else:
            command = f"{shlex.join(argv)} </dev/null"
        answered = f"{self._print('begin')}\n{command}\ncode=$?\n{self._print('$code')}"
        return f"{HEAD}{{\n{answered}\n{after}\n}}\n".encode(errors="surrogateescape")

    def format_open(self, argv: tuple[str, ...]) -> bytes:
        """Return what /bin/sh reads to become ``argv``, whose input is what comes next."""
        command = _body(argv) if is_script(argv) else f"exec {shlex.join(argv)}"
        text = f"{HEAD}{{\nexec 2>/dev/null\n{self._print('begin')}\n{command}\nexit\n}}\n"
        return text.encode(errors="surrogateescape")

    def begin(self, stream: "Stream", text: bytes) -> None:
        """Send ``text`` and skip what comes before its first mark, or raise NoShell without one."""
        mark, seen = f"\n{self.nonce} begin\n".encode(), bytearray()
        try:
            with suppress(BrokenPipeError):  # it has ended, and its last words say why
                stream.sendall(text)
            while not seen.endswith(mark) and (byte := stream.recv(1)):
                seen += byte
                if len(seen) > MOST_WORDS:
                    break
        except TimeoutError as error:
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
