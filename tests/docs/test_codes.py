"""Every code that the program can say is explained in docs/codes-*.md, and no other."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model import findings
from tests.docs import codes
from tests.docs.pages import ROOT, called, rows

SOURCE = Path(errors.__file__).parent
CODES = sorted((ROOT / "docs").glob("codes-*.md"))
CODE = re.compile("[A-Z][A-Z0-9]+(-[A-Z0-9]+)*")
SAID = re.compile('echo "([A-Z-]+): ')
# A code may come to its place by a table, a condition or a variable; so every word in capitals
# counts as one, unless it is known to be something else.
OTHER_WORDS = {
    "environment of tasks, and values": "HOME LANG LOGNAME PATH TMPDIR USER INFO PARALLEL"
    " PYTHONUNBUFFERED RANK TZ UTC0",
    "arguments of Dockerfiles": "BASE CODE INFINIBAND PYTHON WHEELS",
    "capabilities and signals": "ALL SETGID SETUID SIGTERM SIGABRT SIGBUS SIGFPE SIGILL SIGSEGV"
    " SIGSYS SIGTRAP",
    "states of ports": "ACTIVE",
    "what nvidia-smi prints": "CPU GPU ID NODE PHB PIX PXB SOC SYS SXM VGPU",
    "titles of reports": "CUDA OFED",
    "transports as NCCL calls them": "IB",
    "groups of GPT's cases": "DP MP PP",
    "words of scripts in a build, which explain themselves": "SOURCE WHEEL",
    "placeholders": "ADDRESS CASE GLOB NAME PARTITION PERCENT PROGRAM SWEEP TRIAL",
    "how a program of a node ended": "ABSENT DENIED DOWN FOREIGN HUNG REFUSED",
    "names of files": "SHA256SUMS",
    "states of jobs and nodes": "NO CANCELLED DOWN DRAIN DRAINED DRAINING ERROR FAIL FAILED FAILING"
    " FUTURE INVAL PENDING REBOOT REVOKED COMPLETED COMPLETING UNKNOWN RUNNING CONFIGURING",
    "values of scontrol": "YES",
    "names of Python": "DLLOGGER NUMBER TAG TENSORFLOW",
}


def said() -> set[str]:
    """All words in capitals that stand alone in a text of the source, or begin one of a build's."""
    scripts = (ROOT / "images" / "scripts").glob("*.sh")
    found = {code for script in scripts for code in SAID.findall(script.read_text("utf-8"))}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    found |= {code for kinds in findings.table().values() for code in kinds}
    return {text for text in found if CODE.fullmatch(text)}


def others() -> set[str]:
    """The words that are no codes."""
    return {word for words in OTHER_WORDS.values() for word in words.split()}


def explained() -> list[str]:
    """The codes of the pages."""
    return [cells[0].strip("`").split("`")[0] for cells in all_rows()]


def all_rows() -> list[tuple[str, ...]]:
    """The rows of the pages of codes."""
    return [cells for path in CODES for cells in rows(path.read_text(encoding="utf-8"))]


def test_every_code_is_explained_and_nothing_else() -> None:
    """A new word in capitals belongs into docs/codes-*.md, or into OTHER_WORDS above."""
    assert set(explained()) == said() - others()
    assert others() <= said()


@pytest.mark.parametrize("path", CODES, ids=called)
def test_a_code_has_one_row_on_a_page(path: Path) -> None:
    """Code, what it means, usual cause, what to do: none of them repeated or left out."""
    found = [*rows(path.read_text(encoding="utf-8"))]
    assert max(Counter(cells[0] for cells in found).values()) == 1
    for cells in found:
        assert len(cells) == 4, cells
        assert all(cells), cells


def test_codes_of_nodes_are_those_of_the_table_of_findings() -> None:
    """`python -m tests.docs.codes` writes the page."""
    assert codes.PAGE.read_text(encoding="utf-8") == codes.written()


def test_a_finding_without_a_severity_is_refused() -> None:
    """Neither the table nor the check says how grave it is."""
    with pytest.raises(ValueError, match="CLOCK-SKEW has no severity"):
        findings.found("CLOCK-SKEW", "node1", "its clock is off", "the time")


def test_what_a_check_does_not_say_is_in_the_table() -> None:
    """Each finding has a severity, what was expected and a remedy."""
    kinds = {code: kind for kinds in findings.table().values() for code, kind in kinds.items()}
    calls = [call for file in SOURCE.rglob("*.py") for call in calls_of_found(file)]
    assert len(calls) > 60
    for code, given in calls:
        assert "severity" in given or kinds[code].severity, code
        assert "expected" in given or kinds[code].expected, code
        assert "fix" in given or kinds[code].fix, code


def calls_of_found(file: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield the code of each finding that a module makes, and the names of its other arguments."""
    names = ("code", "node", "seen", "expected", "fix")
    for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "found":
            code = call.args[0]
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                keywords = {keyword.arg or "" for keyword in call.keywords}
                yield code.value, keywords | {*names[: len(call.args)]}


def test_codes_are_found_in_the_source() -> None:
    """Of each kind: finding, problem, mark, error, and what a parser says."""
    kinds = {"IB-RATE", "TRUNCATED", "WIDE-SPREAD", "SSH-AUTH", "UNREADABLE", "CONFIG", "LABELS"}
    assert kinds <= said()


def test_what_must_be_there_names_checks_that_there_are() -> None:
    """Each code of the page of prerequisites is explained on one of the pages of codes."""
    page = (ROOT / "docs/prerequisites.md").read_text(encoding="utf-8")
    cells = [line.split("|")[-2] for line in page.splitlines() if line.startswith("| ")]
    named = {word for cell in cells for word in re.findall(r"`([A-Z][A-Z-]+)`", cell)}
    assert named
    assert named <= set(explained())
