"""Elements of HTML and SVG, and their text; whatever stands in them is escaped here."""

import html
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

# Control characters, those that turn the direction of text around, and halves of characters.
_UNSHOWN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_VOID = frozenset({"meta", "line", "path", "rect"})
_LINES = frozenset(
    {"body", "dd", "div", "dl", "dt", "figure", "h2", "h3", "head", "header", "li"}
    | {"main", "p", "path", "section", "svg", "table", "tbody", "text", "thead", "tr"}
)
"""Elements that end a line of the file, so that two reports can be compared line by line."""


class Element(str):
    """The text of an element, or of a style sheet of ours, which is not escaped again."""


Child: TypeAlias = "str | Iterable[Child]"
Value: TypeAlias = str | int | float


def element(tag: str, *children: Child, **attributes: Value | None) -> Element:
    """Write an element; ``_`` in names of attributes stands for ``-``, and None leaves one out."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(clean(_text(value)))}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = "".join(_escape(children))
    if tag in _VOID and not content:
        return Element(f"<{tag}{named}/>")
    return Element(f"<{tag}{named}>{content}</{tag}>" + ("\n" if tag in _LINES else ""))


def clean(text: str) -> str:
    """Remove characters that no page can show, or that would turn words around."""
    return _UNSHOWN.sub(" ", text)


def link(path: str) -> str:
    """Write a relative path as an address, in which no name is a scheme, a query or a tag."""
    safe = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
    octets = path.encode("utf-8", "surrogateescape")
    return "".join(chr(octet) if octet in safe else f"%{octet:02X}" for octet in octets)


def _escape(children: Iterable[Child]) -> Iterator[str]:
    for child in children:
        if isinstance(child, Element):
            yield child
        elif isinstance(child, str):
            yield html.escape(clean(child), quote=False)
        else:
            yield from _escape(child)


def _text(value: Value) -> str:
    """Write a number with at most two decimals, which is as fine as a screen."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
