"""What a run of tests does around them: order, evidence of failures, second tries, coverage.

``python -m tests.session once-more`` runs failed tests again; ``rooms`` prints coverage by room.
"""

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

MOST_TRIED_AGAIN = 5
MOST_FILES, MOST_LINES, MOST_BYTES = 12, 40, 1 << 16
CLUSTERS = 3
"""Virtual clusters at a time: bringing one up and preparing its images takes both processors."""
WHY = "second-try/why"
COVERED = (".coverage", ".coverage-gangs")
"""Files of coverage data that `make quick` and `make gangs` write."""
# What images and registries are made of; no log of ours is in there.
_PASSED = {"docker", "containerd", "registry", "cache", "git", "www", "etc", "usr"}
_LOGS = (".log", ".err", ".jsonl")


def schedule(config: pytest.Config, log: Any) -> object:
    """Give whole files to a worker, and files of the virtual cluster to ``CLUSTERS`` workers."""
    from xdist.scheduler import LoadFileScheduling  # it is not there for the lowest versions

    class ByFile(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            if not file.startswith("tests/on_cluster/"):
                return file
            clusters: dict[str, str] = self.__dict__.setdefault("clusters", {})
            return clusters.setdefault(file, f"cluster {len(clusters) % CLUSTERS}")

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the ends of a failed test's logs into its report, which workers send to the session."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        report.sections += sections(item.funcargs.values())
    return report


def sections(used: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Yield title and text of each log below the folders of what a test used, the newest last."""
    found = {path for folder in _folders(used) for path in _logs(folder)}
    for path in sorted(found, key=_written_ns)[-MOST_FILES:]:
        if text := _end(path):
            yield f"the end of {path}", text


def _folders(used: Iterable[object]) -> Iterator[Path]:
    """Yield paths among the values, and folders of places, desks, clusters and daemons."""
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
    except OSError:  # a process that still runs has moved it
        return 0


def _end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-MOST_LINES:])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Keep the cause of each failure until the end of a second try."""
    if cache := getattr(terminalreporter.config, "cache", None):
        stats = terminalreporter.stats
        failed = [*stats.get("failed", ()), *stats.get("error", ())]
        cache.set(WHY, {report.nodeid: _cause(report.longreprtext) for report in failed})


def _cause(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (told or lines[-1:] or ["no output"])[0]


def once_more(cache: Path = Path(".pytest_cache/v")) -> int:
    """Run alone what failed beside others, and name each such test at the end of the output.

    Neighbours take both processors for seconds. What fails again is wrong; so is more than a few.
    """
    failed = sorted(json.loads((cache / "cache" / "lastfailed").read_text()))
    if not 0 < len(failed) <= MOST_TRIED_AGAIN:
        _write(f"{len(failed)} tests failed; at most {MOST_TRIED_AGAIN} are run once more, alone")
        return 1
    why = json.loads((cache / WHY).read_text()) if (cache / WHY).is_file() else {}
    _write("failed beside others, once more alone:", *failed)
    code = int(pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", *failed]))
    _write(
        f"NEEDED A SECOND TRY, and {'FAILED AGAIN' if code else 'passed alone'}:",
        *(f"{name}\n      {why.get(name, '')}" for name in failed),
    )
    return code


def rooms() -> int:
    """Print how much of each room the tests' own process covered; other processes are not counted.

    Coverage of the commands that tests start would cost them 40 % more time.
    """
    import coverage

    seen: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        whole = coverage.Coverage(data_file=f"{folder}/data")
        whole.combine([name for name in COVERED if Path(name).exists()], keep=True)
        whole.json_report(outfile=f"{folder}/json", include=["orchestrator/*"])
        files = json.loads(Path(folder, "json").read_text())["files"]
    for name, file in files.items():
        room, summary = "/".join(Path(name).parts[:2]), file["summary"]
        seen[room] += summary["num_statements"] + summary["num_branches"]
        missed[room] += summary["missing_lines"] + summary["missing_branches"]
    shares = {room: 1 - missed[room] / (count or 1) for room, count in seen.items()}
    lines = (f"{room:32} {seen[room]:6} {share:7.1%}" for room, share in sorted(shares.items()))
    _write("coverage by room: lines and branches, and how many of them tests run", *lines)
    return 0


def _write(title: str, *lines: str) -> None:
    sys.stdout.write("\n  ".join([title, *lines]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit({"once-more": once_more, "rooms": rooms}[sys.argv[1]]())
