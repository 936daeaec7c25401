"""The part of SFTP that get and put need, over a byte stream.

paramiko's own client cannot create a file with a mode, so that a secret would lie open for a
moment, and reads ahead only with a further thread and without an end to its waiting.

Source: draft-ietf-secsh-filexfer-02 (version 3); OpenSSH, PROTOCOL, section 4.
"""

import itertools
import posixpath
import stat
import struct
from collections import deque
from collections.abc import Iterable, Iterator

from orchestrator.transports import Stream

VERSION = 3
PIECE_BYTES = 32 << 10  # what every server takes; OpenSSH's own client asks for as much
AHEAD = 32
LONGEST_BYTES = 256 << 10  # of an answer, as in OpenSSH's client

INIT, VERSION_IS, OPEN, CLOSE, READ, WRITE = 1, 2, 3, 4, 5, 6
LSTAT, FSTAT, REMOVE, MKDIR, STAT, EXTENDED = 7, 8, 13, 14, 17, 200
STATUS, HANDLE, DATA, ATTRIBUTES = 101, 102, 103, 105
OK, END, NO_SUCH_FILE, DENIED = 0, 1, 2, 3
FOR_READING, FOR_WRITING, CREATE, EXCLUSIVE = 0x01, 0x02, 0x08, 0x20
HAS_SIZE, HAS_OWNER, HAS_MODE = 0x01, 0x02, 0x04


class Refused(Exception):
    """The server's answer is a status; ``code`` is the protocol's number for it."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class Lost(Exception):
    """The server has gone, or does not speak the protocol."""


class Sftp:
    """A client; one thread at a time."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._numbers = itertools.count(1)
        self._early: dict[int, tuple[int, bytes]] = {}
        self._unheeded: set[int] = set()
        self._send(struct.pack(">BI", INIT, VERSION))
        kind, _ = self._packet()
        if kind != VERSION_IS:
            raise Lost(f"answered {kind} to the greeting")

    def read(self, path: str, offset: int, most: int) -> bytes:
        """The bytes of a file from ``offset`` on, at most so many.

        Raises:
            Refused: as the server says.
        """
        handle = self._open(path, FOR_READING)
        try:
            # What is polled is short: its size and its first piece come in one round trip.
            size, first = self._begun(handle, offset)
            at, end = offset + len(first), offset + most
            if not size:
                return first + b"".join(self._to_its_end(handle, at, end - at) if first else ())
            wanted = max(min(most, size - offset), 0)
            if len(first) >= min(wanted, PIECE_BYTES):
                return first[:wanted] + b"".join(self._pieces(handle, at, wanted - len(first)))
            return first  # it has become shorter
        finally:
            self._leave(handle)

    def is_plain(self, path: str) -> bool:
        """Whether a plain file lies there that belongs to who owns its folder; no link is one.

        Version 3 of the protocol cannot open a file without following links.

        Raises:
            Refused: as the server says.
        """
        asked = [(LSTAT, _text(each.encode())) for each in (posixpath.dirname(path), path)]
        (_, folder), (_, file) = self._each(asked)
        owners = {_owner_and_mode(body)[0] for body in (folder, file)}
        return len(owners) == 1 and stat.S_ISREG(_owner_and_mode(file)[1])

    def create(self, path: str, content: bytes, mode: int) -> None:
        """A new file; one that is already there, or a link, is refused.

        Raises:
            Refused: as the server says; a part of the file may be there.
        """
        handle = self._open(path, FOR_WRITING | CREATE | EXCLUSIVE, mode)
        try:
            for _ in self._each(_writes(handle, content)):
                pass
        finally:
            self._ask(CLOSE, _text(handle))

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        try:
            self._ask(STAT, _text(path.encode()))
        except Refused as refused:
            return refused.code != NO_SUCH_FILE
        return True

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            Refused: as the server says.
        """
        self._ask(REMOVE, _text(path.encode()))

    def make_folder(self, path: str, mode: int) -> None:
        """Make a folder.

        Raises:
            Refused: as the server says; one that is there already is refused.
        """
        self._ask(MKDIR, _text(path.encode()) + struct.pack(">II", HAS_MODE, mode))

    def rename(self, old: str, new: str) -> None:
        """Rename a file, over another one if need be, in one step.

        Raises:
            Refused: as the server says.
        """
        names = _text(old.encode()) + _text(new.encode())
        self._ask(EXTENDED, _text(b"posix-rename@openssh.com") + names)

    def _open(self, path: str, flags: int, mode: int | None = None) -> bytes:
        attributes = struct.pack(">I", 0) if mode is None else struct.pack(">II", HAS_MODE, mode)
        _, body = self._ask(OPEN, _text(path.encode()) + struct.pack(">I", flags) + attributes)
        return _first_text(body)

    def _begun(self, handle: bytes, offset: int) -> tuple[int, bytes]:
        """A file's size, 0 for what has none such as a file under /proc; and a first piece."""
        place = struct.pack(">QI", offset, PIECE_BYTES)
        asked = [(FSTAT, _text(handle)), (READ, _text(handle) + place)]
        (_, body), (kind, data) = self._each(asked, END)
        (flags,) = struct.unpack_from(">I", body)
        size = int(struct.unpack_from(">Q", body, 4)[0]) if flags & HAS_SIZE else 0
        return size, _first_text(data) if kind == DATA else b""

    def _leave(self, handle: bytes) -> None:
        """Close what was only read; nobody waits for the answer."""
        number = next(self._numbers)
        self._unheeded.add(number)
        self._send(struct.pack(">BI", CLOSE, number) + _text(handle))

    def _pieces(self, handle: bytes, offset: int, size: int) -> Iterator[bytes]:
        """So many bytes, asked for ahead; fewer if the file has become shorter."""
        places = range(offset, offset + size, PIECE_BYTES)
        wanted = [min(PIECE_BYTES, offset + size - at) for at in places]
        asked = (
            (READ, _text(handle) + struct.pack(">QI", at, length))
            for at, length in zip(places, wanted, strict=True)
        )
        whole = True
        for length, (kind, body) in zip(wanted, self._each(asked, END), strict=True):
            piece = _first_text(body) if kind == DATA else b""
            if whole:
                yield piece
            whole = whole and len(piece) == length

    def _to_its_end(self, handle: bytes, offset: int, most: int) -> Iterator[bytes]:
        end = offset + most
        while offset < end:
            place = struct.pack(">QI", offset, min(PIECE_BYTES, end - offset))
            ((kind, body),) = self._each([(READ, _text(handle) + place)], END)
            if kind != DATA:
                return
            piece = _first_text(body)
            yield piece
            offset += len(piece)

    def _ask(self, kind: int, body: bytes) -> tuple[int, bytes]:
        (answer,) = self._each([(kind, body)])
        return answer

    def _each(
        self, asked: Iterable[tuple[int, bytes]], allowed: int = OK
    ) -> Iterator[tuple[int, bytes]]:
        """The answers, in the order of the questions, of which some are always under way.

        Raises:
            Refused: a status that is neither OK nor the one allowed.
        """
        waiting: deque[int] = deque()
        try:
            for kind, body in asked:
                number = next(self._numbers)
                self._send(struct.pack(">BI", kind, number) + body)
                waiting.append(number)
                if len(waiting) > AHEAD:
                    yield _unrefused(self._answer(waiting.popleft()), allowed)
            while waiting:
                yield _unrefused(self._answer(waiting.popleft()), allowed)
        finally:
            while waiting:  # nobody would ever fetch these
                self._answer(waiting.popleft())

    def _answer(self, number: int) -> tuple[int, bytes]:
        while number not in self._early:
            kind, body = self._packet()
            came = int.from_bytes(body[:4], "big")
            if came in self._unheeded:
                self._unheeded.remove(came)
            else:
                self._early[came] = kind, body[4:]
        return self._early.pop(number)

    def _send(self, packet: bytes) -> None:
        self._stream.sendall(struct.pack(">I", len(packet)) + packet)

    def _packet(self) -> tuple[int, bytes]:
        (length,) = struct.unpack(">I", self._exactly(4))
        if not 1 <= length <= LONGEST_BYTES:
            raise Lost(f"announced a packet of {length} bytes")
        packet = self._exactly(length)
        return packet[0], packet[1:]

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self._stream.recv(size)
            if not piece:
                raise Lost("went away")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _writes(handle: bytes, content: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(0, len(content), PIECE_BYTES):
        piece = content[at : at + PIECE_BYTES]
        yield WRITE, _text(handle) + struct.pack(">Q", at) + _text(piece)


def _unrefused(answer: tuple[int, bytes], allowed: int) -> tuple[int, bytes]:
    kind, body = answer
    if kind == STATUS:
        (code,) = struct.unpack_from(">I", body)
        if code not in (OK, allowed):
            raise Refused(code, _first_text(body[4:]).decode(errors="replace"))
    return answer


def _owner_and_mode(attributes: bytes) -> tuple[int, int]:
    (flags,) = struct.unpack_from(">I", attributes)
    if not (flags & HAS_OWNER and flags & HAS_MODE):
        raise Lost("says nothing of a file's owner and kind")
    at = 4 + (8 if flags & HAS_SIZE else 0)
    owner, _, mode = struct.unpack_from(">III", attributes, at)
    return owner, mode


def _text(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def _first_text(body: bytes) -> bytes:
    (length,) = struct.unpack_from(">I", body)
    return body[4 : 4 + length]
