"""A file system whose server never answers, as a network share whose server is away."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

FUSE = Path("/dev/fuse")
DETACH = 2  # MNT_DETACH


@contextlib.contextmanager
def hung(folder: Path) -> Iterator[None]:
    """Mounted at a folder: who looks at it waits until this ends. Needs root."""
    folder.mkdir(parents=True)
    libc = ctypes.CDLL(None, use_errno=True)
    server = os.open(FUSE, os.O_RDWR | os.O_CLOEXEC)
    try:
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"hung", bytes(folder), b"fuse", 0, options) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
        try:
            yield
        finally:
            libc.umount2(bytes(folder), DETACH)
    finally:
        os.close(server)
