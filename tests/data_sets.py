"""Small data sets of the true layouts, their archives, and a mount that hangs."""

import contextlib
import ctypes
import io
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

# The first three classes of ILSVRC2012 by number.
CLASSES = ("n01440764", "n01443537", "n01484850")


def jpeg(number: int) -> bytes:
    """The beginning and the end of a JPEG file, as long as no other of a few."""
    return b"\xff\xd8\xff\xe0" + bytes(100 + number) + b"\xff\xd9"


def tar(members: Mapping[str, bytes]) -> bytes:
    """A tar of these files."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def class_tar(name: str, images: int) -> bytes:
    """The tar of one class as ILSVRC2012's train tar has it."""
    return tar({f"{name}_{number}.JPEG": jpeg(number) for number in range(images)})


def imagenet_tars(
    folder: Path, classes: Sequence[str] = CLASSES, images: int = 4, validation: int = 5
) -> Path:
    """Both tars of ILSVRC2012 and the classes of validation images, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    members = {f"{name}.tar": class_tar(name, images) for name in classes}
    (folder / "ILSVRC2012_img_train.tar").write_bytes(tar(members))
    numbers = range(1, validation + 1)
    flat = {f"ILSVRC2012_val_{number:08}.JPEG": jpeg(number) for number in numbers}
    (folder / "ILSVRC2012_img_val.tar").write_bytes(tar(flat))
    (folder / "valprep.sh").write_text(valprep(classes, validation))
    return folder


def valprep(classes: Sequence[str], validation: int) -> str:
    """The script that sorts validation images, each class in its turn."""
    moves = [
        f"mv ILSVRC2012_val_{number:08}.JPEG {classes[(number - 1) % len(classes)]}/\n"
        for number in range(1, validation + 1)
    ]
    return "#!/bin/bash\n" + "".join(f"mkdir -p {name}\n" for name in classes) + "".join(moves)


def tfrecords(folder: Path, train: int = 4, validation: int = 2) -> Path:
    """TFRecord files by name; what is in them is no record."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, total in (("train", train), ("validation", validation)):
        for number in range(total):
            path = folder / f"{stem}-{number:05}-of-{total:05}"
            path.write_bytes(bytes(1000 + number))
    return folder


def parts(folder: Path, count: int, digits: int = 0) -> Path:
    """OFRecord files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"part-{number:0{digits}}").write_bytes(bytes(500 + number))
    return folder


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
