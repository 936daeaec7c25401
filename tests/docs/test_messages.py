"""What pages say of messages, exit codes, retries and versions is what the program does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors, retries
from tests.conftest import Place
from tests.docs.pages import ROOT, rows
from tests.docs.test_codes import CODES, SOURCE
from tests.sshd import free_port, keygen

DOCS = ROOT / "docs"
# Tried again too, and explained where they are errors of a command.
ELSEWHERE = {"START", "DOCKER-DOWN", "DOCKER-HUNG"}


def test_the_message_on_the_page_is_said_so(place: Place) -> None:
    """By a node where nobody listens; only its address and port are others."""
    keygen(place.folder / "id")
    port = free_port()
    (place.folder / "away.yaml").write_text(
        f"name: away\ndefaults: {{port: {port}, identity: {place.folder / 'id'}}}\n"
        "nodes: [{name: gpu02, address: 127.0.0.1}]\n"
    )
    said = place.run("provision", "away.yaml").stderr
    there = said.replace("127.0.0.1", "10.0.0.12").replace(f"port {port}", "port 22")
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    (shown,) = re.findall("^    (ERROR .*)$", text, re.MULTILINE)
    assert shown in there.splitlines()


def raised() -> Iterator[tuple[str, int]]:
    """Codes with the exit codes of the errors that the source makes with them."""
    known = {name: kind.exit_code for name, kind in vars(errors).items() if _is_error(kind)}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                kind = ast.unparse(node.func).rpartition(".")[2]
                given = (word.value for word in node.keywords if word.arg == "code")
                codes = (
                    ast.literal_eval(expression)
                    for expression in given
                    if isinstance(expression, ast.Constant)
                )
                yield from ((code, known[kind]) for code in codes if kind in known)


def _is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, errors.DlperfError)


def headed() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rows of the pages of codes, each with the heading that it stands under."""
    for path in CODES:
        for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            yield from ((part.partition("\n")[0], cells) for cells in rows(part))


def exits(text: str) -> set[int]:
    """The exit codes that a text names."""
    return {int(code) for code in re.findall(r"\(exit (\d)", text)}


def test_exit_codes_of_headings_and_rows_are_those_of_the_errors() -> None:
    """A row says its own where it differs from its heading."""
    known = set(raised())
    judged = 0
    for title, cells in headed():
        code = cells[0].split("`")[1]
        having = {exit_code for name, exit_code in known if name == code}
        if having and exits(title + cells[1]):
            assert having <= exits(title + cells[1]), code
            assert exits(cells[1]) <= having, code
            judged += 1
    assert judged > 50


def test_how_often_a_trial_is_tried_again_is_told() -> None:
    """In brackets behind the code."""
    told = re.findall(r"^\| `([A-Z-]+)` \((\d)\)", _trials(), re.MULTILINE)
    found = {code: int(times) for code, times in told}
    assert found == {code: n for code, n in retries.ATTEMPTS.items() if code not in ELSEWHERE}
    assert {retries.ATTEMPTS[code] for code in ELSEWHERE} == {2}


def _trials() -> str:
    return (DOCS / "codes-trials.md").read_text(encoding="utf-8")


def test_one_oldest_docker_is_named_everywhere() -> None:
    """In what nodes need, in codes, and in what the program says to do."""
    files = [*DOCS.glob("*.md"), *(SOURCE / "runtimes").glob("*.py")]
    text = "".join(Path(file).read_text(encoding="utf-8") for file in files)
    assert set(re.findall(r"\b(\d\d\.\d\d) or later", text)) == {"18.09"}
