"""Every word of a report is there in English and Chinese, and every code is explained in both."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

from orchestrator import errors, report
from orchestrator.report import page

CHINESE = re.compile("[\u4e00-\u9fff]")
SOURCE = Path(errors.__file__).parent
CODE = re.compile("[A-Z][A-Z0-9]+(-[A-Z0-9]+)*")
# Words that are the same in both languages.
SAME = {"sha256", "GPUs"}
# The calls that take a code, with its place among their arguments or by its name. Workloads add
# problems to their notes; what a LogError says of a trial's log becomes a problem of the trial.
PROBLEMS = {"Problem": 0, "add": 0, "LogError": None}
# Answers of nodes, data sets and `inspect`, images that are made before any trial, speeds of nodes.
NO_REPORT = (
    *("probes/", "checks/", "datasets/", "verbs/inspect.py", "runtimes/images.py"),
    "sweeping/node_speed.py",
)


def test_shared_words_are_there_in_both_languages_with_the_same_values() -> None:
    words = {word: (word, chinese) for word, chinese in page.WORDS.items()}
    for key, (english, chinese) in (*page.HEADS.items(), *words.items()):
        first, second = (
            {field for _, field, _, _ in string.Formatter().parse(text) if field}
            for text in (english, chinese)
        )
        assert first == second, key
        assert key in SAME or CHINESE.search(chinese), key
        assert english, key
        assert not CHINESE.search(english), key


def test_texts_of_modules_are_there_in_both_languages() -> None:
    """Chinese has Chinese in it, and English has none."""
    calls = [
        (f"{path.name}:{node.lineno}", *map(ast.unparse, node.args))
        for path in Path(report.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and len(node.args) == 2
        if ast.unparse(node.func) in ("text", "page.text")
        if re.search("[a-z]{2}", ast.unparse(node.args[0]))
    ]
    assert len(calls) > 60
    for place, english, chinese in calls:
        assert CHINESE.search(chinese), place
        assert not CHINESE.search(english), place


def test_every_code_that_a_report_can_show_is_explained() -> None:
    """In a few words of both languages; nothing is explained that the source does not give."""
    given = {
        code
        for file in SOURCE.rglob("*.py")
        if not file.relative_to(SOURCE).as_posix().startswith(NO_REPORT)
        for code in find_codes(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert set(page.meanings()) == given
    for code, (english, gloss) in page.meanings().items():
        assert re.fullmatch("[ -~]{5,60}", english), code
        assert not re.search("[().]$", english), code
        assert CHINESE.search(gloss), code
        assert not re.search("[（）。：]", gloss), code


def find_codes(tree: ast.Module) -> Iterator[str]:
    """Yield the codes that a module gives at once, in a table of its own, or in a variable."""
    found: list[ast.expr] = []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [ast.unparse(call.func).rpartition(".")[2] for call in calls]
    for call, name in zip(calls, names, strict=True):
        if name in PROBLEMS:
            place = PROBLEMS[name]
            found += call.args[place : place + 1] if place is not None else ()
            found += (keyword.value for keyword in call.keywords if keyword.arg == "code")
    if {"Problem", "add"} & {*names}:
        tables = (it for it in tree.body if isinstance(it, ast.Assign | ast.AnnAssign))
        found += (it.value for it in tables if it.value is not None)
        chosen = (it for it in ast.walk(tree) if isinstance(it, ast.Assign))
        found += (it.value for it in chosen if ast.unparse(it.targets[0]) == "code")
    for node in (node for expression in found for node in ast.walk(expression)):
        if isinstance(node, ast.Constant) and CODE.fullmatch(str(node.value)):
            yield str(node.value)
