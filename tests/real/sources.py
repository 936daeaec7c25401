"""Upstream's programs at the commits that the shipped images pin.

They come from git repositories: those below ``REAL_SOURCES``, bare or checked out, as
``OWNER+NAME/repo``, ``OWNER/NAME``, ``NAME`` or ``NAME.git``; else from where image.yaml says.
"""

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.files import yaml_reader
from orchestrator.model.image import Image

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".real"
_DLLOGGER = re.compile(r"git\+(?P<url>https://[^@]+)@(?P<commit>[0-9a-f]{40})#egg=dllogger")


class NoSourceError(Exception):
    """A program cannot be had; says what was looked for."""


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of a git repository at a commit; the whole of it without a path."""

    url: str
    commit: str
    path: str = ""

    @property
    def name(self) -> str:
        """The name of the repository."""
        return self.url.rsplit("/", 1)[1].removesuffix(".git")

    @property
    def owner(self) -> str:
        """Whose repository it is."""
        return self.url.rsplit("/", 2)[1]


def program(image: str) -> Path:
    """The folder with the code of a shipped image, as upstream has it."""
    return unpacked(pinned(image))


def pinned(image: str) -> Source:
    """What a shipped image pins."""
    said = shipped(image).source
    assert said is not None
    return Source(said.url, said.commit, said.path or "")


def dllogger() -> Path:
    """NVIDIA's logger, which both of their programs import."""
    (line,) = shipped("ngc-pytorch-20.03").pip
    found = _DLLOGGER.fullmatch(line)
    assert found, line
    return unpacked(Source(found["url"], found["commit"]))


def shipped(name: str) -> Image:
    """A shipped image."""
    return yaml_reader.validated(yaml_reader.read(ROOT / "images" / name / "image.yaml"), Image)


@contextmanager
def alone() -> Iterator[None]:
    """What is built below .real is built by one test at a time; the others wait, and find it."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def unpacked(source: Source) -> Path:
    """Where a source lies; unpacked there now, if it never was."""
    part = source.path.replace("/", "-") or "whole"
    folder = HOME / "sources" / f"{source.name}-{source.commit[:10]}-{part}"
    with alone():
        if not folder.exists():
            tree = f"{source.commit}:{source.path}" if source.path else source.commit
            packed = git(repository(source), "archive", "--format=tar", tree)
            aside = folder.with_name(f"{folder.name}.new")
            aside.mkdir(parents=True)
            subprocess.run(("tar", "-x", "-C", str(aside)), input=packed, check=True)
            aside.rename(folder)
    return folder


def repository(source: Source) -> Path:
    """A git repository that has the commit.

    Raises:
        NoSourceError: ``REAL_SOURCES`` has none, or it cannot be fetched.
    """
    given = os.environ.get("REAL_SOURCES")
    if not given:
        return _fetched(source)
    names = (f"{source.owner}+{source.name}/repo", f"{source.owner}/{source.name}", source.name)
    folders = [Path(given).resolve() / name for name in (*names, f"{source.name}.git")]
    for folder in folders:
        if folder.is_dir() and _has(folder, source.commit):
            return folder
    tried = ", ".join(map(str, folders))
    raise NoSourceError(f"no repository with commit {source.commit} in any of {tried}")


def _fetched(source: Source) -> Path:
    folder = HOME / "git" / f"{source.name}.git"
    if not folder.exists():
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--bare")
    if not _has(folder, source.commit):
        git(folder, "fetch", "--quiet", "--depth", "1", source.url, source.commit)
    return folder


def _has(folder: Path, commit: str) -> bool:
    try:
        git(folder, "cat-file", "-e", f"{commit}^{{commit}}")
    except NoSourceError:
        return False
    return True


def git(folder: Path, *words: str) -> bytes:
    """What git says in a repository.

    Raises:
        NoSourceError: it failed.
    """
    argv = ["git", "-c", "safe.directory=*", "-C", str(folder), *words]
    done = subprocess.run(argv, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise NoSourceError(f"{' '.join(argv)}: exit {done.returncode}: {said}")
    return done.stdout
