"""The sha256 over the files of this program: versions that a number alone does not tell apart."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from orchestrator import workloads

PACKAGE = Path(__file__).parents[1]


@cache
def digest(workload: str) -> str:
    """Return the sha256 over the package's files and a plug-in workload's module.

    Args:
        workload: its name.
    """
    hashed = hashlib.sha256()
    for path in _files(workload):
        name = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else path.name
        content = path.read_bytes()
        hashed.update(f"{name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()


def _files(workload: str) -> Iterator[Path]:
    yield from sorted([*PACKAGE.rglob("*.py"), *PACKAGE.glob("*.csv")])
    spec = find_spec(workloads.module(workload))
    origin = Path(spec.origin) if spec and spec.origin else PACKAGE
    if not origin.is_relative_to(PACKAGE):
        yield origin
