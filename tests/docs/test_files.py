"""docs/files.md names what a sweep leaves; other pages list what ships."""

import re

import pytest

from orchestrator import datasets
from orchestrator.files import shipped
from tests.conftest import Place
from tests.docs.pages import ROOT, rows

# The words of the page that stand for names, as they may be.
NAMES = {
    "CLUSTER": r"[\w.-]+",
    "SHA256SUMS": "SHA256SUMS",
    "SHA256": "[0-9a-f]{64}",
    "PID": "[0-9]+",
    "ID": r"[\w.-]+-[0-9]{8}-[0-9]{6}-[0-9a-f]{6}",
    "PLACE": "[0-9]+n[0-9]+g",
    "NAME": r"[\w.-]+",
    "TRIAL": r"[\w.-]+",
    "ATTEMPT": "a[1-9][0-9]*",
    "RANK": "[0-9]+",
    "WORD": "[a-z]+",
    "FIGURE": "[a-z0-9-]+",
    "TIME": "[0-9TZ:-]+",
}
# Not after a sweep that went well on local nodes, without a terminal of its own; or only of a task
# that lasted long enough to be observed.
ELSEWHERE = ("downloads/", "traceback-", "turns/", "detached-", "_result.json", ".gpus", ".state")


def table(page: str) -> list[str]:
    """The first cells of a page's tables, without their backquotes."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [word for cells in rows(text) for word in re.findall("`([^`]+)`", cells[0])]


def pattern(name: str) -> re.Pattern[str]:
    """What a name on the page stands for."""
    words = re.split(f"({'|'.join(NAMES)})", name)
    return re.compile("".join(NAMES.get(word) or re.escape(word) for word in words))


@pytest.mark.cluster
def test_files_of_a_sweep_are_those_of_the_page(place: Place) -> None:
    """Each file is on the page, and each file of the page is there; locks hold nothing."""
    place.must("provision", "two")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    left = [path for path in place.state.rglob("*") if path.is_file() and path.stat().st_size]
    names = {path.relative_to(place.state).as_posix() for path in left}
    told = {name: pattern(name) for name in table("files.md")}
    unknown = {
        name for name in names if not any(pattern.fullmatch(name) for pattern in told.values())
    }
    assert unknown == set()
    absent = {name for name, written in told.items() if not any(map(written.fullmatch, names))}
    assert {name for name in absent if not any(word in name for word in ELSEWHERE)} == set()


def test_the_page_of_benchmarks_has_every_playbook() -> None:
    """And every image that they name."""
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert set(table("benchmarks.md")) == set(shipped.names("playbooks"))
    assert set(shipped.names("images")) <= set(re.findall("`([^`]+)`", text))


def test_the_page_of_data_sets_has_every_data_set() -> None:
    """By the names of inventories."""
    assert set(table("data-sets.md")) == set(datasets.names())
