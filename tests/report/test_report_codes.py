"""Every code that the source can put into a report is explained in Chinese."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator import errors
from orchestrator.report import page

SOURCE = Path(errors.__file__).parent
CODE = re.compile("[A-Z][A-Z0-9]+(-[A-Z0-9]+)*")
# The calls that take a code, with its place among their arguments or by its name. Workloads add
# problems to their notes; what a LogError says of a trial's log becomes a problem of the trial.
PROBLEMS = {"Problem": 0, "add": 0, "LogError": None}
# Answers of nodes, data sets and `inspect`, images that are made before any trial, speeds of nodes.
NO_REPORT = (
    *("probes/", "checks/", "datasets/", "verbs/inspect.py", "runtimes/images.py"),
    "sweeping/node_speed.py",
)


def test_every_code_that_a_report_can_show_is_explained() -> None:
    """In a few words of both languages; nothing is explained that the source does not give."""
    given = {code for text in modules() for code in shown(text)}
    assert set(page.MEANINGS) == given
    for code, (english, gloss) in page.MEANINGS.items():
        assert re.fullmatch("[ -~]{5,60}", english), code
        assert not re.search("[().]$", english), code
        assert re.search("[\u4e00-\u9fff]", gloss), code
        assert not re.search("[（）。：]", gloss), code


def test_codes_are_found_however_they_are_given() -> None:
    """At once, by a condition, in a table of the module, chosen before."""
    text = (
        "REASONS = {'oom': ('AT-ONCE', 'said')}\n"
        "def found(bad):\n"
        "    code = 'TWO' if bad else 'TWO-B'\n"
        "    yield Problem(code, 'NOT')\n"
        "    notes.add('THREE' if bad else 'FOUR', 'NOT')\n"
        "    raise errors.LogError('NOT', code='FIVE')\n"
        "    raise errors.UnfitError('NOT', code='NOT')\n"
    )
    assert set(shown(text)) == {"AT-ONCE", "TWO", "TWO-B", "THREE", "FOUR", "FIVE"}


def modules() -> Iterator[str]:
    """The text of each module of which a problem can come into a report."""
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        if not path.startswith(NO_REPORT):
            yield file.read_text(encoding="utf-8")


def shown(text: str) -> Iterable[str]:
    """The codes in a module that a report can show."""
    tree = ast.parse(text)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [expression for call in found if called(call) in PROBLEMS for expression in taken(call)]
    if any(called(call) in ("Problem", "add") for call in found):
        tables = [
            statement
            for statement in tree.body
            if isinstance(statement, ast.Assign | ast.AnnAssign)
        ]
        given += [table.value for table in tables if table.value is not None]
        chosen = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        given += [assign.value for assign in chosen if ast.unparse(assign.targets[0]) == "code"]
    constants = (node for expression in given for node in ast.walk(expression))
    values = (node.value for node in constants if isinstance(node, ast.Constant))
    return {value for value in values if isinstance(value, str) and CODE.fullmatch(value)}


def called(call: ast.Call) -> str:
    """The last word of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def taken(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call in which its code stands."""
    place = PROBLEMS[called(call)]
    yield from (call.args[place : place + 1] if place is not None else ())
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "code")
