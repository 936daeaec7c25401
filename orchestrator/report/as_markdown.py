"""Writes a report as Markdown."""

import re
from collections.abc import Iterable, Sequence

from orchestrator.model.report import Report
from orchestrator.report import sections, tree
from orchestrator.report.figures import FOLDER
from orchestrator.report.markup import clean
from orchestrator.report.page import Language, Page, suffix

_ODD = re.compile(r"[^A-Za-z0-9 _.,:#?/+=()\u4e00-\u9fff-]")
"""Characters that no driver prints in a table of devices; a name of a node may end the block."""


def markdown(report: Report, language: Language = "en") -> str:
    page = Page(report, language)
    return "\n\n".join(_block(page, sections.document(page, None), 1)) + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown and HTML show as it is."""
    return re.sub(
        r"([\\`*_\[\]|])", r"\\\1", clean(text).replace("&", "&amp;").replace("<", "&lt;")
    )


def code(text: str) -> str:
    """Return text as code, in a fence that is longer than any in it."""
    line = clean(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if len(fence) > 1 else f"`{line}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; underscores in heads stay, since inside of words they mean nothing."""
    heads = [escaped(title).replace("\\_", "_") for title in head]
    lines = [heads, ["---"] * len(heads), *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _block(page: Page, block: tree.Block, depth: int) -> Iterable[str]:
    match block:
        case tree.Section():
            yield f"{'#' * depth} {escaped(block.title)}"
            for each in block.blocks:
                yield from _block(page, each, depth + 1)
        case tree.Paragraph():
            words = _words(block.words)
            yield f"> **{words}**" if block.level else words
        case tree.Facts():
            rows = ((escaped(name), _words(words)) for name, words in block.rows)
            yield "\n".join(f"- {page.with_colons(*row)}" for row in rows)
        case tree.Items():
            yield "\n".join(f"- {_words(words)}" for words in block.items)
        case tree.Lines():
            text = "\n".join(_ODD.sub("?", line) for line in block.lines)
            yield f"```\n{text}\n```"
        case tree.Table():
            found = block.without_empty_columns()
            if found.title:
                yield f"**{escaped(found.title)}**"
            yield table(found.head, [[tree.text(cell) for cell in row] for row in found.rows])
        case _:
            name = escaped(block.title)
            yield f"**{name}**"
            yield f"![{name}]({FOLDER}/{block.name}{suffix(page.language)}.svg)"


def _words(words: tree.Words) -> str:
    return "".join(map(_span, words))


def _span(span: tree.Span | str) -> str:
    if isinstance(span, str):
        return escaped(span)
    if span.look == "code":
        return code(span.text)
    return f"**{escaped(span.text)}**" if span.look == "strong" else escaped(span.text)
