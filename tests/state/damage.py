"""The damage that any file of a state folder may take, for hypothesis."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

DEEP = b"[" * 100_000 + b"]" * 100_000
Way = tuple[str | int, ...]
VALUES: tuple[object, ...] = (None, 7, -1, 1e300, "x", "", [], {}, True, "\ud800", 10**30, [[[]]])


def damages(content: bytes) -> st.SearchStrategy[bytes]:
    """Cut a file, flip a bit, repeat a line, change or drop a value of JSON, or replace it all."""
    if not content:
        return st.just(DEEP)
    at = st.integers(0, len(content) - 1)
    ways = [
        at.map(lambda cut: content[:cut]),
        at.map(lambda cut: content[cut + 1 :]),
        st.builds(_flip, st.just(content), at, st.integers(0, 7)),
        st.builds(_repeat, st.just(content), st.integers(0, content.count(b"\n"))),
        st.sampled_from([b"null", b"7", b'"x"', b"[]", b"{}", b"\xff\xfe", b"\0" * 64, DEEP]),
    ]
    lines = content.splitlines() if b'"event"' in content else [content]
    found = [(number, way) for number, line in enumerate(lines) for way in _ways(line)]
    if found:
        where, value = (
            st.sampled_from(found),
            st.none() | st.sampled_from(VALUES).map(lambda it: [it]),
        )
        ways.append(st.builds(_retype, st.just(lines), where, value))
    return st.one_of(ways)


def _flip(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def _repeat(content: bytes, number: int) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[: number + 1], *lines[number:]])


def _retype(lines: list[bytes], where: tuple[int, Way], value: list[object] | None) -> bytes:
    """Give a value in a line another type, or drop it if ``value`` is None."""
    number, (*steps, last) = where
    document = parent = json.loads(lines[number])
    for step in steps:
        parent = parent[step]
    if value is None:
        del parent[last]
    else:
        parent[last] = value[0]
    changed = json.dumps(document).encode()
    return b"\n".join([*lines[:number], changed, *lines[number + 1 :], b""])


def _ways(line: bytes) -> list[Way]:
    """List the paths of all values in a line of JSON."""
    try:
        document = json.loads(line)
    except ValueError:
        return []
    return list(_paths(document))


def _paths(value: Any, path: Way = ()) -> Iterator[Way]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, child in items:
        yield (*path, key)
        yield from _paths(child, (*path, key))
