"""The bill of materials in the wheel (PEP 770): what it needs to run, as the lock pins it.

``python -m tests.package.sbom`` writes it anew; ``make lock`` does so after each change.
"""

import json
import re
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator import __version__
from tests import ROOT

FILE = ROOT / "dlperf-orch.cdx.json"
NAME = "dlperf-orch"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pins(lock: Path = ROOT / "requirements.lock") -> dict[str, tuple[str, tuple[str, ...]]]:
    """By canonical name, the version in the lock and the sha256 of each of its files."""
    text = lock.read_text()
    starts = list(_PIN.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {
        canonicalize_name(match[1]): (
            match[2],
            tuple(sorted(_HASH.findall(text[match.end() : end]))),
        )
        for match, end in zip(starts, ends, strict=True)
    }


def needs(name: str) -> Iterator[str]:
    """The canonical names of what a distribution needs on Linux with Python 3.11, no extras."""
    where = {"extra": "", "python_version": "3.11", "python_full_version": "3.11.0"}
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(where):
            yield canonicalize_name(requirement.name)


def closure() -> dict[str, tuple[str, ...]]:
    """By name, what each package needs: of this one, and of all that it needs."""
    found: dict[str, tuple[str, ...]] = {}
    waiting = [NAME]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = tuple(sorted(set(needs(name))))
            waiting += found[name]
    return found


def document() -> dict[str, object]:
    """The bill in CycloneDX 1.6: the same bytes for the same lock, without a time or a serial."""
    graph, locked = closure(), pins()
    refs = {name: f"pkg:pypi/{name}@{locked[name][0]}" for name in graph if name != NAME}
    refs[NAME] = f"pkg:pypi/{NAME}@{__version__}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": refs[NAME],
                "name": NAME,
                "version": __version__,
                "purl": refs[NAME],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": refs[name],
                "name": name,
                "version": locked[name][0],
                "purl": refs[name],
                "properties": [
                    {"name": "requirements.lock:sha256", "value": value}
                    for value in locked[name][1]
                ],
            }
            for name in sorted(graph)
            if name != NAME
        ],
        "dependencies": [
            {"ref": refs[name], "dependsOn": [refs[needed] for needed in graph[name]]}
            for name in sorted(graph)
        ],
    }


def text() -> str:
    """The file's content."""
    return json.dumps(document(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
