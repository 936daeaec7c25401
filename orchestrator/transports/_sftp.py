"""Read a node's files by paramiko's SFTP client over a byte stream.

Source: draft-ietf-secsh-filexfer-02 (version 3).
"""

import errno
import posixpath
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import paramiko
from paramiko import sftp

from orchestrator.transports._shell import MOST_WORDS

MOST_BYTES = 4 << 20
READ_BYTES = 255 << 10  # the most that OpenSSH gives at once; a server may give less
VERSION = re.compile(rb"\0\0(..)\x02\0\0\0\x03", re.DOTALL)  # length, kind, number 3
TRIES = 5  # of reading a file whose name is given to others meanwhile


class Refused(Exception):
    """The server's answer is a status: an error of the file, not of the connection."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.is_absent = error.errno == errno.ENOENT


class Reader(paramiko.SFTPClient):  # type: ignore[misc]  # paramiko has no types
    """A client for one thread at a time; any error but ``Refused`` ends it."""

    def read(self, path: str, offset: int) -> bytes:
        """Read at most 4 MiB of a file from ``offset``."""
        with self._opened(path) as file:
            return _read(file, offset, MOST_BYTES)

    def read_own(self, path: str, offset: int) -> bytes | None:
        """Read a regular file, no link, that has the owner of its folder; None for anything else.

        Version 3 of the protocol cannot open a file without following links. So what was opened is
        compared with what had the name before and has it afterwards: a file of ours only grows.
        """
        for _ in range(TRIES):
            before = self.lstat(path)
            owner = self.lstat(posixpath.dirname(path)).st_uid
            if not _is_plain(before, owner):  # opening a FIFO would wait for ever
                return None
            with self._opened(path) as file:
                opened = file.stat()
                after = self.lstat(path)
                is_plain = _is_plain(opened, owner) and _is_plain(after, owner)
                if is_plain and _has_grown(before, opened) and _has_grown(opened, after):
                    # No further: paramiko would go on for as long as the file grows meanwhile.
                    return _read(file, offset, min(MOST_BYTES, (opened.st_size or 0) - offset))
        return None

    @contextmanager
    def _opened(self, path: str) -> Iterator[Any]:
        file = self.open(path)
        file.MAX_REQUEST_SIZE = READ_BYTES
        try:
            yield file
        except Refused:
            self.stat(path)  # refused as absent if it is gone: so may be what is under /proc
            raise
        finally:
            file._close(async_=True)  # not waited for: the server may be silent

    def _send_version(self) -> int:
        """Agree on version 3, and skip what start-up files print before the server's answer."""
        wanted = paramiko.Message()
        wanted.add_int(3)
        self._send_packet(sftp.CMD_INIT, wanted)
        seen = bytearray()
        while not (found := VERSION.fullmatch(seen[-9:])):
            if len(seen) > MOST_WORDS or not (byte := self.sock.recv(1)):
                raise sftp.SFTPError("no server of SFTP answers")
            seen += byte
        self._read_all(int.from_bytes(found[1]) - 5)  # its extensions
        return 3

    def _convert_status(self, message: Any) -> None:
        try:
            super()._convert_status(message)
        except OSError as error:
            raise Refused(error) from error

    def _write_all(self, out: bytes) -> None:
        self.sock.sendall(out)

    def _log(self, level: int, message: str, *words: object) -> None:
        """Log nothing: paramiko's own would need the name of a channel."""


def _read(file: Any, offset: int, size: int) -> bytes:
    file.seek(offset)
    content: bytes = file.read(size) if size > 0 else b""  # a negative size means everything
    return content


def _is_plain(file: paramiko.SFTPAttributes, owner: int | None) -> bool:
    return owner is not None and file.st_uid == owner and stat.S_ISREG(file.st_mode or 0)


def _has_grown(before: paramiko.SFTPAttributes, after: paramiko.SFTPAttributes) -> bool:
    """Return True if the second may be the first some time later."""
    return bool(
        before.st_mode == after.st_mode
        and (before.st_size or 0) <= (after.st_size or 0)
        and (before.st_mtime or 0) <= (after.st_mtime or 0)
    )
