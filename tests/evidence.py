"""What a failed test leaves to look at: the ends of the logs in its folders."""

import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

MOST_FILES, MOST_LINES, MOST_BYTES = 12, 40, 1 << 16
# What images and registries are made of; no log of ours is in there.
_PASSED = {"docker", "containerd", "registry", "cache", "git", "www", "etc", "usr"}
_LOGS = (".log", ".err", ".jsonl")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the logs into the report, which a worker sends to whoever started it."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        report.sections += sections(item.funcargs.values())
    return report


def sections(used: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Title and text of each log below the folders of what a test used, the newest last."""
    found = {path for folder in _folders(used) for path in _logs(folder)}
    for path in sorted(found, key=_written_ns)[-MOST_FILES:]:
        if text := _end(path):
            yield f"the end of {path}", text


def _folders(used: Iterable[object]) -> Iterator[Path]:
    """A path is one; a place, a desk, a cluster or a daemon has one."""
    for value in used:
        for owner in (value, getattr(value, "cluster", None)):
            folder = getattr(owner, "folder", owner)
            if isinstance(folder, Path) and folder.is_dir():
                yield folder


def _logs(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _PASSED]
        yield from (Path(parent, name) for name in names if name.endswith(_LOGS))


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # something that still runs has moved it
        return 0


def _end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-MOST_LINES:])
