"""Pages of codes: every code that the program can print is explained, as the program means it."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import errors, retries
from orchestrator.model import findings
from tests.cli.here import Here
from tests.docs import codes
from tests.docs.pages import ROOT, called, rows
from tests.sshd import free_port, keygen

SOURCE = Path(errors.__file__).parent
TREES = [ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))]
CALLS = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call)]
PAGES = sorted((ROOT / "docs").glob("codes-*.md"))
CODE = re.compile("[A-Z][A-Z0-9]+(-[A-Z0-9]+)*")
IN_SCRIPT = re.compile('echo "([A-Z-]+): ')
# A code may come to its place by a table, a condition or a variable; so every word in capitals
# counts as one, unless it is listed in this file as something else.
OTHER_WORDS = {
    word
    for line in (Path(__file__).parent / "other_words.txt").read_text().splitlines()
    for word in line.partition(": ")[2].split()
}
# Tried again too, and explained where they are errors of a command.
RETRIED_ELSEWHERE = {"START", "DOCKER-DOWN", "DOCKER-HUNG"}


def list_words() -> set[str]:
    """List the texts of the source that are words in capitals, and codes of scripts and tables."""
    found = {code for kinds in findings.table().values() for code in kinds}
    for script in (ROOT / "images" / "scripts").glob("*.sh"):
        found.update(IN_SCRIPT.findall(script.read_text("utf-8")))
    for node in (node for tree in TREES for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return {text for text in found if CODE.fullmatch(text)}


def list_rows() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each row of the pages with the heading above it and its code."""
    for path in PAGES:
        for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            for cells in rows(part):
                yield part.partition("\n")[0], cells[0].split("`")[1], cells


def test_every_code_is_explained_and_nothing_else() -> None:
    """A new word in capitals belongs on a page of codes, or into other_words.txt."""
    words = list_words()
    assert {code for _, code, _ in list_rows()} == words - OTHER_WORDS
    assert words >= OTHER_WORDS
    assert words >= {"IB-RATE", "TRUNCATED", "WIDE-SPREAD", "SSH-AUTH", "UNREADABLE", "LABELS"}


@pytest.mark.parametrize("path", PAGES, ids=called)
def test_a_code_has_one_whole_row_on_a_page(path: Path) -> None:
    """Code, what it means, usual cause, what to do."""
    found = [*rows(path.read_text(encoding="utf-8"))]
    assert max(Counter(cells[0] for cells in found).values()) == 1
    assert [cells for cells in found if len(cells) != 4 or not all(cells)] == []


def test_codes_of_nodes_are_those_of_the_table_of_findings() -> None:
    """`python -m tests.docs.codes` writes the page."""
    assert codes.PAGE.read_text(encoding="utf-8") == codes.written()


def test_a_finding_without_a_severity_is_refused() -> None:
    """Neither the table nor the check says how grave it is."""
    with pytest.raises(ValueError, match="CLOCK-SKEW has no severity"):
        findings.found("CLOCK-SKEW", "node1", "its clock is off", "the time")


def test_each_finding_has_a_severity_what_was_expected_and_a_fix() -> None:
    """From the check that makes it, else from the table."""
    kinds = {code: kind for kinds in findings.table().values() for code, kind in kinds.items()}
    names, judged = ("code", "node", "seen", "expected", "fix"), 0
    for call in CALLS:
        if getattr(call.func, "id", "") == "found" and isinstance(call.args[0], ast.Constant):
            code, given = str(call.args[0].value), {word.arg for word in call.keywords}
            given |= {*names[: len(call.args)]}
            for field in ("severity", "expected", "fix"):
                assert field in given or getattr(kinds[code], field), (code, field)
            judged += 1
    assert judged > 60


def test_prerequisites_name_codes_that_there_are() -> None:
    page = (ROOT / "docs/prerequisites.md").read_text(encoding="utf-8")
    cells = [line.split("|")[-2] for line in page.splitlines() if line.startswith("| ")]
    named = {word for cell in cells for word in re.findall(r"`([A-Z][A-Z-]+)`", cell)}
    assert named
    assert named <= {code for _, code, _ in list_rows()}


def test_exit_codes_of_headings_and_rows_are_those_of_the_errors() -> None:
    """A row has its own where it differs from its heading."""
    kinds = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.DlperfError)
    }
    raised: dict[str, set[int]] = {}
    for call in CALLS:
        kind = ast.unparse(call.func).rpartition(".")[2]
        for word in call.keywords if kind in kinds else ():
            if word.arg == "code" and isinstance(word.value, ast.Constant):
                raised.setdefault(str(word.value.value), set()).add(kinds[kind])
    judged = 0
    for title, code, cells in list_rows():
        own, told = (
            {int(it) for it in re.findall(r"\(exit (\d)", text)}
            for text in (cells[1], title + cells[1])
        )
        if code in raised and told:
            assert own <= raised[code] <= told, code
            judged += 1
    assert judged > 50


def test_the_page_of_trials_has_how_often_each_is_tried_again() -> None:
    """In brackets behind the code."""
    text = (ROOT / "docs/codes-trials.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^\| `([A-Z-]+)` \((\d)\)", text, re.MULTILINE))
    shown = {code: f"{n}" for code, n in retries.ATTEMPTS.items() if code not in RETRIED_ELSEWHERE}
    assert found == shown
    assert {retries.ATTEMPTS[code] for code in RETRIED_ELSEWHERE} == {2}


def test_one_oldest_docker_is_named_everywhere() -> None:
    """In what nodes need, in codes, and in what the program says to do."""
    files = [*(ROOT / "docs").glob("*.md"), *(SOURCE / "runtimes").glob("*.py")]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert set(re.findall(r"\b(\d\d\.\d\d) or later", text)) == {"18.09"}


def test_the_message_of_troubleshooting_is_printed(bare: Here) -> None:
    """By a node where nobody listens; only its address and port differ."""
    keygen(bare.folder / "id")
    port = free_port()
    bare.write(
        "away.yaml",
        f"name: away\ndefaults: {{port: {port}, identity: {bare.folder / 'id'}}}\n"
        "nodes: [{name: gpu02, address: 127.0.0.1}]\n",
    )
    said = bare("provision", "away.yaml", code=4).err
    there = said.replace("127.0.0.1", "10.0.0.12").replace(f"port {port}", "port 22")
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    (shown,) = re.findall("^    (ERROR .*)$", text, re.MULTILINE)
    assert shown in there.splitlines()
