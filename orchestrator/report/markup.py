"""Elements of HTML and SVG, and their text; whatever stands in them is escaped here."""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

# Control characters, those that turn the direction of text around, and halves of characters.
_UNSHOWN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_VOID = frozenset({"meta", "wbr", "circle", "line", "path", "polygon", "polyline", "rect"})
_LINES = frozenset(
    {"body", "dd", "div", "dl", "dt", "figure", "g", "h2", "h3", "head", "header", "li"}
    | {"main", "p", "path", "section", "svg", "table", "tbody", "text", "thead", "tr"}
)
"""Elements that end a line of the file, so that two reports can be compared line by line."""

Child: TypeAlias = "Element | Style | str | Iterable[Child]"
Value: TypeAlias = str | int | float


@dataclass(frozen=True, slots=True)
class Style:
    """A style sheet of ours, which is not escaped."""

    css: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element with its attributes and what is in it."""

    tag: str
    attributes: Mapping[str, Value]
    children: tuple["Element | Style | str", ...] = field(default=())

    def __str__(self) -> str:
        return "".join(self._parts())

    def _parts(self) -> Iterable[str]:
        attributes = "".join(
            f' {name}="{html.escape(clean(_text(value)))}"'
            for name, value in self.attributes.items()
        )
        if self.tag in _VOID and not self.children:
            yield f"<{self.tag}{attributes}/>"
            return
        yield f"<{self.tag}{attributes}>"
        for child in self.children:
            if isinstance(child, Element):
                yield from child._parts()
            elif isinstance(child, Style):
                yield child.css
            else:
                yield html.escape(clean(child), quote=False)
        yield f"</{self.tag}>\n" if self.tag in _LINES else f"</{self.tag}>"


def element(tag: str, *children: Child, **attributes: Value | None) -> Element:
    """Make an element; ``_`` in names of attributes stands for ``-``, and None leaves one out."""
    named = {
        name.rstrip("_").replace("_", "-"): value
        for name, value in attributes.items()
        if value is not None
    }
    return Element(tag, named, tuple(_flat(children)))


def clean(text: str) -> str:
    """Remove characters that no page can show, or that would turn words around."""
    return _UNSHOWN.sub(" ", text)


def anchor(words: str) -> str:
    """Make a name of letters and digits for a place in a page; other words have another name."""
    kept = re.sub(r"[^A-Za-z0-9-]", lambda match: f"_{ord(match[0]):x}", words)
    return f"at-{kept}"


def link(path: str) -> str:
    """Write a relative path as an address, in which no name is a scheme, a query or a tag."""
    safe = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
    octets = path.encode("utf-8", "surrogateescape")
    return "".join(chr(octet) if octet in safe else f"%{octet:02X}" for octet in octets)


def _flat(children: Iterable[Child]) -> Iterable[Element | Style | str]:
    for child in children:
        if isinstance(child, Element | Style | str):
            yield child
        else:
            yield from _flat(child)


def _text(value: Value) -> str:
    """Write a number with at most two decimals, which is as fine as a screen."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
