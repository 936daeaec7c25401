"""Writes a report as Markdown."""

import re
from collections.abc import Iterable, Sequence

from orchestrator.model.report import Report
from orchestrator.report import sections, tree
from orchestrator.report.figures import FOLDER
from orchestrator.report.markup import clean
from orchestrator.report.page import Page
from orchestrator.report.phrases import Language, suffix

_ODD = re.compile(r"[^A-Za-z0-9 _.,:#?/+=()\u4e00-\u9fff-]")
"""Characters that no driver prints in a table of devices; a name of a node may end the block."""


def markdown(report: Report, language: Language = "en") -> str:
    """Write report.md."""
    page = Page(report, language)
    document = sections.document(page, None)
    parts = [f"# {escaped(document.title)}"]
    for block in (*document.front, *document.sections):
        parts += _block(page, block, document.title, 2)
    return "\n\n".join(parts) + "\n"


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


def _block(page: Page, block: tree.Block, title: str, depth: int) -> Iterable[str]:
    """Yield paragraphs.

    Args:
        title: of the section around the block.
    """
    match block:
        case tree.Section():
            yield f"{'#' * depth} {escaped(block.title)}"
            for each in block.blocks:
                yield from _block(page, each, block.title, depth + 1)
        case tree.Paragraph():
            yield _words(block.words)
        case tree.Notes():
            yield "\n>\n".join(f"> **{escaped(words)}**" for _, words in block.sentences)
        case tree.Facts():
            yield "\n".join(
                f"- {escaped(name)}{page.say('colon')}{_words(words)}" for name, words in block.rows
            )
        case tree.Items():
            items = map(_words, block.items)
            yield "\n".join(
                f"{number if block.is_ordered else '-'} {words}"
                for number, words in ((f"{n}.", it) for n, it in enumerate(items, 1))
            )
        case tree.Lines():
            text = "\n".join(_ODD.sub("?", line) for line in block.lines)
            yield f"```\n{text}\n```"
        case tree.Table():
            yield from [f"**{escaped(block.title)}**"] * (block.title != title)
            yield table(block.head, [[tree.text(cell) for cell in row] for row in block.rows])
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
