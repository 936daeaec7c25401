"""What pages point at is there, and a page is short enough to be read."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, called, prose

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# A path of the repository, or of the package, without a word that stands for a name.
PATH = re.compile(r"`((?:[a-z][a-z0-9_-]*/)+[a-z0-9_.-]*)`")
MOST_LINES = 250
DEVELOPERS = [
    *(ROOT / "docs").glob("adding-*.md"),
    *(ROOT / name for name in ("docs/architecture.md", "CONTRIBUTING.md")),
]


def anchors(path: Path) -> set[str]:
    """What links can lead to within a page, as GitHub calls its headings."""
    headings = HEADING.findall(prose(path))
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in headings}


@pytest.mark.parametrize("path", PAGES, ids=called)
def test_links_lead_to_files_and_headings_that_are_there(path: Path) -> None:
    """Within the repository; the web is not asked."""
    for target in LINK.findall(prose(path)):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("path", sorted(DEVELOPERS), ids=called)
def test_paths_that_developers_read_are_there(path: Path) -> None:
    """In the repository or in the package; a page about a room that moved is mended."""
    for name in PATH.findall(prose(path)):
        assert (ROOT / name).exists() or (ROOT / "orchestrator" / name).exists(), name


@pytest.mark.parametrize("path", PAGES, ids=called)
def test_a_page_is_read_in_one_go(path: Path) -> None:
    """A longer one is two."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_page_of_docs_is_found_from_the_readme() -> None:
    """By links from page to page."""
    found = {ROOT / "README.md"}
    for path in (todo := [ROOT / "README.md"]):
        for target in LINK.findall(prose(path)):
            file = (path.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file not in found and file.exists():
                found.add(file)
                todo.append(file)
    assert set(PAGES) <= found
