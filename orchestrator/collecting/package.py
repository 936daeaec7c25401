"""The sha256 of the package's code, and the published results that it contains."""

import csv
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from orchestrator import workloads
from orchestrator.model.report import PublishedResult
from orchestrator.model.text import shape

PACKAGE = Path(__file__).parents[1]
KINDS = ("py", "csv", "css", "toml")


@cache
def digest(workload: str) -> str:
    """Return the sha256 over the package's files and a plug-in workload's module."""
    files = sorted(path for kind in KINDS for path in PACKAGE.rglob(f"*.{kind}"))
    spec = find_spec(workloads.module(workload))
    origin = Path(spec.origin) if spec and spec.origin else PACKAGE
    if not origin.is_relative_to(PACKAGE):
        files.append(origin)
    hashed = hashlib.sha256()
    for path in files:
        name = path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else path.name
        content = path.read_bytes()
        hashed.update(f"{name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()


def published_results() -> tuple[PublishedResult, ...]:
    with open(PACKAGE / "published.csv", encoding="utf-8", newline="") as file:
        return shape(tuple[PublishedResult, ...]).validate_python([*csv.DictReader(file)])
