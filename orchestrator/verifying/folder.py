"""A sweep's files: documents, their seals, and the checksums in SHA256SUMS."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.disk import walk
from orchestrator.verifying.findings import Findings, at, items

SUMS = "SHA256SUMS"
_NO_EVIDENCE = re.compile(
    r"lock|SHA256SUMS|detached-.*\.log|.*\.(new|folder)|r[0-9]+\.(gate|alive|clock)", re.ASCII
)


@dataclass(slots=True)
class Folder:
    """A sweep's folder while it is verified; each file is hashed once."""

    path: Path
    findings: Findings
    _sums: dict[str, str | None] = field(default_factory=dict)

    def sha256(self, name: str) -> str | None:
        """Return the sha256 of a file; None if it cannot be read."""
        if name not in self._sums:
            digest = None
            with contextlib.suppress(OSError, ValueError), open(self.path / name, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._sums[name] = digest
            self.findings.files += digest is not None
        return self._sums[name]

    def document(self, name: str) -> Mapping[str, object] | None:
        """Read a JSON file; None, with a difference, if it is damaged.

        Other bytes than those that our program writes are a difference even for equal values.
        """
        try:
            content = (self.path / name).read_text(encoding="utf-8")
            document = json.loads(content)
            again = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
        except OSError:
            self.findings.differs(name, "", "no such file", "a file")
            return None
        except (ValueError, RecursionError) as error:
            self.findings.differs(name, "", f"no JSON: {error}", "a document")
            return None
        if not isinstance(document, dict):
            self.findings.differs(name, "", "no object", "an object")
            return None
        if again != content:
            self.findings.differs(name, "", "other bytes", "the bytes that our program writes")
        return document

    def sealed(self, name: str) -> Mapping[str, object] | None:
        """Read a JSON file that contains the sha256 of its other fields."""
        document = self.document(name)
        if document is None:
            return None
        rest = {key: value for key, value in document.items() if key != "sha256"}
        content = json.dumps(rest, sort_keys=True, allow_nan=False).encode()
        digest = hashlib.sha256(content).hexdigest()
        if document.get("sha256") != digest:
            self.findings.differs(name, "sha256", document.get("sha256"), digest)
        return document


def check_sums(folder: Folder) -> None:
    """Compare the files that are evidence with SHA256SUMS, in both directions."""
    findings, sums = folder.findings, dict(_listed(folder))
    if not (folder.path / SUMS).is_file():
        findings.differs(SUMS, "", "no such file", "a file; `dlperf-orch collect` writes it")
        return
    for name, digest in sums.items():
        found = folder.sha256(name)
        if found is None:
            findings.differs(name, "", "no such file", f"sha256 {digest} by {SUMS}")
        elif found != digest:
            findings.differs(name, "sha256", found, f"{digest} by {SUMS}")
    for name in sorted(evidence(folder) - sums.keys()):
        findings.differs(name, "", "a file", f"none of this name by {SUMS}")


def evidence(folder: Folder) -> set[str]:
    """Find records, logs, outcomes and reports in a sweep's folder, through links within it."""
    root = Path(os.path.realpath(folder.path))
    given = {path for attempt in (root / "attempts").glob("*/a*") for path in _find_inputs(attempt)}
    found = []
    for path, real, problem in walk(folder.path, "STORE-RIGHTS", outside=False):
        within = path.relative_to(folder.path)
        parts = (*within.parts, *(() if problem else real.relative_to(root).parts))
        if any(map(_NO_EVIDENCE.fullmatch, parts)) or real in given:
            continue
        if problem:
            folder.findings.leave("files that an archive would lack", f"{within}: {problem}")
        else:
            found.append(within.as_posix())
    return set(found)


def _find_inputs(attempt: Path) -> set[Path]:
    """Find the files that tasks were given before they started, such as keys; they are not listed.

    If ``attempt.json`` is damaged, every file but logs may be one.
    """
    inside = {path for path in attempt.glob("*") if path.suffix != ".log"}
    inside.discard(attempt / "attempt.json")
    try:
        document = json.loads((attempt / "attempt.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return inside
    tasks = items(at(document, "tasks"))
    files = [names for task in tasks if isinstance(names := task.get("files"), list)]
    return {path for path in inside if any(path.name in names for names in files) or not tasks}


def events(folder: Folder) -> list[Mapping[str, object]]:
    """Read the events of a sweep."""
    name = "events.jsonl"
    found: list[Mapping[str, object]] = []
    try:
        lines = (folder.path / name).read_bytes().split(b"\n")
    except OSError:
        return []
    if lines[-1]:
        folder.findings.differs(name, f"line {len(lines)}", "cut", "a line feed at its end")
    for count, line in enumerate(lines[:-1], 1):
        try:
            event = json.loads(line)
            again = json.dumps(event, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            folder.findings.differs(name, f"line {count}", f"no JSON: {error}", "an event")
            continue
        if again != line:
            folder.findings.differs(name, f"line {count}", "other bytes", "those that we write")
        if isinstance(event, dict):
            found.append(event)
    return found


def _listed(folder: Folder) -> Iterator[tuple[str, str]]:
    try:
        lines = (folder.path / SUMS).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for count, line in enumerate(lines, 1):
        digest, gap, name = line[:64], line[64:66], line[66:]
        if gap == "  " and name and "/../" not in f"/{name}" and not name.startswith("/"):
            yield name, digest
        elif line or count < len(lines):
            folder.findings.differs(SUMS, f"line {count}", line, "a sha256 and a path")
