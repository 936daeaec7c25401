"""Virtual environments for upstream's programs, built once below .real/ and used again."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tests import commands
from tests.real import sources

_HERE = Path(__file__).parent
SHIMS = _HERE / "shims"
_HOROVOD = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_GLOO": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}
_RECORDS = """\
import sys, tensorflow
with tensorflow.python_io.TFRecordWriter(sys.argv[1]) as file:
    for _ in range(64):
        file.write(b"")
"""


class NoEnvironmentError(Exception):
    """An environment cannot be built; says why."""


def today() -> Path:
    """This interpreter's Python and PyTorch, for NVIDIA's PyTorch program and OneFlow's code."""
    folder, listed = sources.HOME / "today", _HERE / "requirements-today.txt"
    with sources.alone():
        if not _is_ready(folder, listed):
            _made(folder, sys.executable)
            _pip(folder, "-r", str(listed))
            _ready(folder, listed)
    shims = (SHIMS / "hooks", SHIMS / "pytorch", SHIMS / "oneflow")
    code = (sources.dllogger(), sources.program("oneflow-gpt-0.3.5"))
    here = Path(sysconfig.get_path("purelib"))
    _find(folder, [*shims, *code, here], imported="torch_on_cpu")
    return folder / "bin"


def of_2020(python: str) -> Path:
    """TensorFlow 1.15 with Horovod over this machine's MPI; built with Python 3.7 in minutes."""
    folder, listed = sources.HOME / "tensorflow", _HERE / "requirements-tensorflow.txt"
    with sources.alone():
        if not _is_ready(folder, listed):
            _made(folder, python)
            _pip(folder, "-r", str(listed))
            _pip(folder, "--no-build-isolation", "--no-deps", "horovod==0.19.0", **_HOROVOD)
            _ready(folder, listed)
    shims = (SHIMS / "hooks", SHIMS / "tensorflow")
    _find(folder, [*shims, sources.dllogger()], imported="tensorflow_on_cpu")
    return folder / "bin"


def python37() -> str | None:
    """A Python 3.7: the one named by REAL_PYTHON37, that in the PATH, or one of pyenv's."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = map(str, sorted(versions.glob("3.7.*/bin/python3.7"), reverse=True))
    named = (os.environ.get("REAL_PYTHON37"), shutil.which("python3.7"))
    return next((path for path in (*named, *kept) if path and _works(path)), None)


def tfrecords(programs: Path, file: Path) -> None:
    """Write a TFRecord file of records that are counted and never read."""
    _run([str(programs / "python"), "-c", _RECORDS, str(file)])


def _works(python: str) -> bool:
    """Whether it starts: pyenv has a command in the PATH for versions that are not chosen."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def _is_ready(folder: Path, listed: Path) -> bool:
    """Whether it was built to its end, of what is listed now."""
    note = folder / "ready"
    return note.exists() and note.read_text() == listed.read_text()


def _ready(folder: Path, listed: Path) -> None:
    (folder / "ready").write_text(listed.read_text())


def _made(folder: Path, python: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of a build that was cut short
    _run([python, "-m", "venv", str(folder)])


def _pip(folder: Path, *words: str, **env: str) -> None:
    _run([str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *words], **env)


def _find(folder: Path, paths: Sequence[Path], *, imported: str) -> None:
    """Have every start of this environment's Python find these folders, and import a module.

    A sitecustomize would do, if distributions did not have one of their own before it.
    """
    (packages,) = folder.glob("lib/python3*/site-packages")
    text = "".join(f"{line}\n" for line in (*paths, f"import {imported}"))
    note = packages / "real.pth"
    if not note.exists() or note.read_text() != text:  # layers of images are kept by their files
        note.write_text(text)


def _run(argv: Sequence[str], **env: str) -> None:
    done = commands.run(argv, env={**os.environ, **env})
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise NoEnvironmentError(f"{' '.join(argv)}: exit {done.returncode}: {said}")
