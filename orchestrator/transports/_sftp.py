"""A node's files, by paramiko's SFTP client over a byte stream.

Source: draft-ietf-secsh-filexfer-02 (version 3); OpenSSH, PROTOCOL, section 4.
"""

import errno
import posixpath
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko
from paramiko import sftp

from orchestrator.transports import Stream
from orchestrator.transports._shell import MOST_WORDS

WRITE_BYTES = 32 << 10  # what every server takes
READ_BYTES = 255 << 10  # the most that OpenSSH gives at once; a server may give less
VERSION = re.compile(rb"\0\0(..)\x02\0\0\0\x03", re.DOTALL)  # length, kind, number 3
TRIES = 5  # of reading a file whose name is given to others meanwhile
CREATE = sftp.SFTP_FLAG_WRITE | sftp.SFTP_FLAG_CREATE | sftp.SFTP_FLAG_EXCL


class Refused(Exception):
    """The server's answer is a status: an error of the file, not of the connection."""

    def __init__(self, words: str, *, is_absent: bool) -> None:
        super().__init__(words)
        self.is_absent = is_absent


class Lost(Exception):
    """The server has ended, or breaks the protocol."""


class Sftp:
    """A client for one thread at a time. Its methods raise ``Refused`` or ``Lost``."""

    def __init__(self, stream: Stream) -> None:
        with _errors():
            self._client = _Client(stream)
        self._folder = "", -1

    def read(self, path: str, offset: int, most: int) -> bytes:
        """Read a file from ``offset``, at most so many bytes."""
        with _errors(), self._client.open_file(path) as handle:
            return b"".join(self._client.pieces(handle, offset, offset + most))

    def read_own(self, path: str, offset: int, most: int) -> bytes | None:
        """Read a regular file, no link, that has the owner of its folder; None for anything else.

        Version 3 of the protocol cannot open a file without following links. So what was opened is
        compared with what had the name before and has it afterwards: a file of ours only grows.
        """
        owner = self._owner(posixpath.dirname(path))
        with _errors():
            for _ in range(TRIES):
                before = self._client.lstat(path)
                if not _is_plain(before, owner):  # opening a FIFO would wait for ever
                    return None
                with self._client.open_file(path) as handle:
                    opened = self._client.attributes(handle)
                    same = _stamp(opened) == _stamp(before)
                    after = before if same else self._client.lstat(path)
                    plain = _is_plain(opened, owner) and _is_plain(after, owner)
                    if plain and _has_grown(before, opened) and _has_grown(opened, after):
                        end = min(offset + most, opened.st_size)
                        return b"".join(self._client.pieces(handle, offset, end))
        return None

    def _owner(self, folder: str) -> int:
        """Return a folder's owner; cache the last one, since each poll of a task needs it."""
        if self._folder[0] != folder:
            with _errors():
                owner = self._client.lstat(folder).st_uid
            if owner is None:
                raise Lost("says nothing of a folder's owner")
            self._folder = folder, owner
        return self._folder[1]

    def create(self, path: str, content: bytes, mode: int) -> None:
        """Create a file; an existing file or link is refused.

        After ``Refused`` a part of the file may be there.
        """
        with _errors():
            self._client.create(path, content, mode)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder at ``path``."""
        try:
            with _errors():
                self._client.stat(path)
        except Refused as refused:
            return not refused.is_absent
        return True

    def remove(self, path: str) -> None:
        with _errors():
            self._client.remove(path)

    def make_folder(self, path: str, mode: int) -> None:
        """Make a folder; one that is there already is refused."""
        with _errors():
            self._client.mkdir(path, mode)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, over another one if need be, in one step."""
        with _errors():
            self._client.posix_rename(old, new)


class _Client(paramiko.SFTPClient):  # type: ignore[misc]  # paramiko has no types
    """paramiko's client on a stream of ours, whose errors tell a loss from a refusal.

    paramiko's own file objects are not used: they set the mode by a later ``chmod``, their
    ``close`` drops errors and waits again for a silent server, and a thread reads ahead for them.
    """

    @contextmanager
    def open_file(self, path: str) -> Iterator[bytes]:
        """Open a file for reading; closing it is not waited for."""
        handle = self._handle(path, sftp.SFTP_FLAG_READ, paramiko.SFTPAttributes())
        try:
            yield handle
        finally:
            self._async_request(type(None), sftp.CMD_CLOSE, handle)

    def attributes(self, handle: bytes) -> paramiko.SFTPAttributes:
        """Return the attributes of an open file, whatever has its name by now."""
        _, answer = self._request(sftp.CMD_FSTAT, handle)
        return paramiko.SFTPAttributes._from_msg(answer)

    def pieces(self, handle: bytes, offset: int, end: int) -> Iterator[bytes]:
        try:
            while offset < end:
                size = min(READ_BYTES, end - offset)
                _, answer = self._request(sftp.CMD_READ, handle, sftp.int64(offset), size)
                piece: bytes = answer.get_string()
                if not piece:
                    return
                yield piece
                offset += len(piece)
        except EOFError:  # how paramiko says that the server has no more
            return

    def create(self, path: str, content: bytes, mode: int) -> None:
        """Create a file that has its mode from the beginning, and is whole when it is closed."""
        attributes = paramiko.SFTPAttributes()
        attributes.st_mode = mode
        handle = self._handle(path, CREATE, attributes)
        try:
            for at in range(0, len(content), WRITE_BYTES):
                piece = content[at : at + WRITE_BYTES]
                self._request(sftp.CMD_WRITE, handle, sftp.int64(at), piece)
        finally:
            self._request(sftp.CMD_CLOSE, handle)

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

    def _handle(self, path: str, flags: int, attributes: paramiko.SFTPAttributes) -> bytes:
        _, answer = self._request(sftp.CMD_OPEN, path, flags, attributes)
        handle: bytes = answer.get_binary()
        return handle

    def _write_all(self, out: bytes) -> None:
        self.sock.sendall(out)

    def _log(self, level: int, message: str, *words: object) -> None:
        """Log nothing: paramiko's own would need the name of a channel."""


def _is_plain(file: paramiko.SFTPAttributes, owner: int) -> bool:
    if None in (file.st_uid, file.st_mode, file.st_size, file.st_mtime):
        raise Lost("says nothing of a file's owner, kind, size and time")
    return file.st_uid == owner and stat.S_ISREG(file.st_mode)


def _stamp(file: paramiko.SFTPAttributes) -> tuple[int, int, int]:
    return file.st_mode, file.st_size, file.st_mtime


def _has_grown(before: paramiko.SFTPAttributes, after: paramiko.SFTPAttributes) -> bool:
    """Return True if the second may be the first some time later."""
    return all(then <= now for then, now in zip(_stamp(before), _stamp(after), strict=True))


@contextmanager
def _errors() -> Iterator[None]:
    """Tell paramiko's errors apart; those of the stream pass as they are."""
    try:
        yield
    except (TimeoutError, ConnectionError):
        raise
    except OSError as error:  # so it says a status
        is_absent = error.errno == errno.ENOENT
        raise Refused(error.strerror or str(error), is_absent=is_absent) from error
    except (sftp.SFTPError, paramiko.SSHException) as error:
        raise Lost(str(error)) from error
