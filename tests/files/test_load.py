"""The strict YAML loader: what is read, what is refused, and where and how that is said."""

import os
import socket
import time
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.files import yaml_reader
from tests.files.reading import read

# Values that YAML 1.1 and YAML 1.2 read differently, from the two specifications.
SURPRISES = (
    *("yes", "no", "on", "off", "y", "n", "YES", "No", "oFF", "Y"),
    *("010", "05", "-07", "08", "00", "05.5", "00.1", "01e5"),
    *("22:22", "1:30:00", "-1:30", "1:30.5", "0x16", "0o17", "0b1", "0XfF", "-0x1"),
    *("1_000", "1_000.5", "+1_0", "1e1_0"),
    *("2020-01-01", "2020-1-1 10:00:00", "2020-01-01T10:00:00Z"),
    *(
        ".nan",
        ".NaN",
        ".inf",
        "-.inf",
        "+.INF",
        "=",
        "<<",
    ),
)
BAD = (
    *((f"first: x\nkey: {text}\n", 2, "quote it if it is text") for text in SURPRISES),
    ("", 1, "nothing in the file"),
    ("# only a comment\n", 1, "nothing in the file"),
    ("---\n", 2, "got nothing; needed a value"),
    ("word\n", 1, "got 'word'; needed `key: value` lines"),
    ("- a\n- b\n", 1, "got a list of 2; needed `key: value` lines"),
    ("no\n", 1, "got no, which readers of YAML read differently"),
    ("a: 1\n---\nb: 2\n", 2, "a second document"),
    ("a: 1\n...\nfoo\n", 3, "did not find expected <document start>"),
    ("a: &x 1\n", 1, "a: an anchor"),
    ("a: &x [1]\n", 1, "a: an anchor"),
    ("&x a: 1\n", 1, "an anchor"),
    ("&x\na: 1\n", 1, "an anchor"),
    ("a: 1\nb: *x\n", 2, "b: an anchor"),
    ("*x : 1\n", 1, "an anchor"),
    ("a: *.log\n", 1, "alphabetic or numeric character while scanning an alias; .* in quotes"),
    ("a: >=2.0\n", 1, "while scanning a block scalar; .* in quotes"),
    ("a: !!str 1\n", 1, "a: an anchor"),
    ("a: ! x\n", 1, "a: an anchor"),
    ("a: !py/object x\n", 1, "a: an anchor"),
    ("a: !x!y z\n", 1, "undefined tag handle"),
    ("!!map\na: 1\n", 1, "an anchor"),
    ("a:\n", 1, "a: got nothing; needed a value, or no key at all"),
    *((f"a: [{text}]\n", 1, "got nothing") for text in ("null", "Null", "NULL", "~")),
    ("a: 1\nb: 2\na: 3\n", 3, r"a: a key for the second time \(first in line 1\)"),
    ("a: 1\n'a': 2\n", 2, r"a key for the second time \(first in line 1\)"),
    ("a:\n- {b: 1, b: 2}\n", 2, r"a\[0\]\.b: a key for the second time"),
    ("? [a, b]\n: x\n", 1, "a list, mapping or alias as a key; needed text"),
    ("{{a: 1}: x}\n", 1, "a list, mapping or alias as a key; needed text"),
    ("a:\n\tb: 1\n", 2, "needed YAML, indented by spaces"),
    ("a: 1\n\tb: 1\n", 2, "found a tab character that violates indentation"),
    ("a: 'x\ty'\n", 1, r"control character U\+0009 in a text"),
    ("a: |\n  x #\ty\n", 1, r"control character U\+0009 in a text"),
    ('a: "x\\ty"\n', 1, r"control character U\+0009 in a text"),
    ('a: "x\\u0007y"\n', 1, r"control character U\+0007 in a text"),
    ('a: "x\\u202ey"\n', 1, r"control character U\+202E in a text"),
    ("a: 1\nb: x\x00y\n", 2, r"control character U\+0000"),
    ("a: 1\nb: x\x1b[31m\n", 2, r"control character U\+001B"),
    ("a: 1\nb: x\x85y\n", 2, r"control character U\+0085"),
    ("a: x\u2028b: 1\n", 1, r"control character U\+2028"),
    ("a: x\u202ey\n", 1, r"control character U\+202E"),
    ("a: 1\rb: 2\r", 1, r"control character U\+000D"),
    ("a: 1\nb: \ufeffx\n", 2, r"control character U\+FEFF"),
    ("a: 9223372036854775808\n", 1, "needed a number of 64 bits"),
    ("a: -9223372036854775809\n", 1, "needed a number of 64 bits"),
    (f"a: {'9' * 5000}\n", 1, "needed a number of 64 bits"),
    ("a: 1e999\n", 1, "needed a number of 64 bits"),
    ("a: [1,\n", 1, "did not find expected node content"),
    ("a: [1, 2\nb: 3\n", 1, "did not find expected ',' or '\\]' while parsing a flow sequence"),
    ("a: {b: 1\nc: 2\n", 1, "did not find expected ',' or '}' while parsing a flow mapping"),
    ("a: 1\nb: ]\n", 2, "did not find expected node content"),
    ("a: 'x\nb: 1\n", 1, "unexpected end of stream while scanning a quoted scalar"),
    ('a: "x\n---\ny"\n', 1, "unexpected document indicator while scanning a quoted scalar"),
    ("a: b: c\n", 1, "mapping values are not allowed"),
    ("a: 1\n  b: 2\n", 2, "mapping values are not allowed"),
    ("a: @x\n", 1, "character that cannot start any token"),
    ("a: `x`\n", 1, "character that cannot start any token"),
    ("a: 1\nb\n", 2, "could not find expected ':'"),
    ("a:\n  b: 1\n c: 2\n", 3, "did not find expected key while parsing a block mapping"),
    ("a:\n- b\n c\nd: 1\n- e\n", 5, "did not find expected key while parsing a block mapping"),
    ("- a\nb: 1\n", 2, "did not find expected '-' indicator"),
    ("a: - b\n", 1, "block sequence entries are not allowed"),
    ('a: "\\UFFFFFFFF"\n', 1, "escape code|cannot be read as YAML"),
    ('a: "\\q"\n', 1, "found unknown escape character"),
    ("password: 0123\n", 1, "password: a value that is not shown; secrets do not belong"),
)
GOOD: tuple[tuple[str, object], ...] = (
    ("a: [true, True, TRUE, false, False, FALSE]\n", {"a": [True] * 3 + [False] * 3}),
    ("a: [0, -0, 7, -12, +5]\n", {"a": [0, 0, 7, -12, 5]}),
    ("a: [9223372036854775807, -9223372036854775808]\n", {"a": [2**63 - 1, -(2**63)]}),
    ("a: [1e-4, 1E5, .5, 1., -0.25, 6.02e+23]\n", {"a": [1e-4, 1e5, 0.5, 1.0, -0.25, 6.02e23]}),
    ("a: [0.0, 0e7]\n", {"a": [0.0, 0.0]}),
    ("a: ['no', \"010\", '22:22', '', '~', '<<']\n", {"a": ["no", "010", "22:22", "", "~", "<<"]}),
    (
        "a: [1x8, 16g, 10.11.0.2, v1.2, nan, inf, e5]\n",
        {"a": ["1x8", "16g", "10.11.0.2", "v1.2", "nan", "inf", "e5"]},
    ),
    (
        "a: [10.11.0.1:5000, fe80::1, _1, tRue, x=y]\n",
        {"a": ["10.11.0.1:5000", "fe80::1", "_1", "tRue", "x=y"]},
    ),
    ("a: |\n  010\n  x\n", {"a": "010\nx\n"}),
    ("a: >-\n  one\n  line\n", {"a": "one line"}),
    ("a: one\n  line\n", {"a": "one line"}),
    ("a: 1 # a\tcomment\n#\ta comment\n", {"a": 1}),
    ("a: x#y\n", {"a": "x#y"}),
    ("'1': x\n\"no\": z\n'': z\n", {"1": "x", "no": "z", "": "z"}),
    ("010: x\nno: x\n1.5: x\n<<: {a: 1}\n", {"010": "x", "no": "x", "1.5": "x", "<<": {"a": 1}}),
    ("%YAML 1.2\n---\na:\tb\n", {"a": "b"}),
    ("---\na: 1\n...\n", {"a": 1}),
    ("{}\n", {}),
    ("a: [b: c]\n", {"a": [{"b": "c"}]}),
    ("größe: 日本語 🚀\n", {"größe": "日本語 🚀"}),
    ('a: "\\u00e9 \\U0001F680 \\n"\n', {"a": "é 🚀 \n"}),
    (f"a: {'x' * 300_000}\n", {"a": "x" * 300_000}),
)


def refusal(path: Path) -> errors.ConfigError:
    """The one way in which ``path`` fails to be read."""
    with pytest.raises(errors.ConfigError) as caught:
        yaml_reader.read(path)
    return caught.value


@pytest.mark.parametrize(("text", "line", "words"), BAD)
def test_doubtful_text_is_refused_in_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    """What two readers of YAML could read differently is refused; line and words say where."""
    with pytest.raises(errors.ConfigError, match=f"file.yaml:{line}:[0-9]+: .*({words})"):
        read(tmp_path, text)


@pytest.mark.parametrize(("text", "data"), GOOD)
def test_clear_text_is_read_as_it_looks(tmp_path: Path, text: str, data: object) -> None:
    """Plain scalars follow YAML 1.2's core schema; whatever is quoted is text."""
    found = read(tmp_path, text).data
    assert repr(found) == repr(data)  # 1 == 1.0 == True, but they are not the same


def test_columns_count_from_one_in_characters(tmp_path: Path) -> None:
    """A mistake points at the value itself, behind wide characters and behind CRLF."""
    with pytest.raises(errors.ConfigError) as caught:
        read(tmp_path, "größe: 🚀\r\nmaße: [1, {ü: 010}, no]\r\n")
    assert [(mistake.line, mistake.column, mistake.path) for mistake in caught.value.mistakes] == [
        (2, 15, "['maße'][1]['ü']"),
        (2, 21, "['maße'][2]"),
    ]


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    """Everything before the place where the syntax breaks is reported with it."""
    with pytest.raises(errors.ConfigError) as caught:
        read(tmp_path, "a: no\nb: [010, &x 1]\na: 2\nc: 22:22\nd: @e\nf: no\n")
    assert [mistake.line for mistake in caught.value.mistakes] == [1, 2, 2, 3, 4, 5]


NESTED = """\
name: v100x4
nodes:
  - {name: a, gpus: {count: 8}}
  - name: b
    data:
      imagenet: /data
hcas:
- |
  text
last: x
"""
PLACES = {
    (): (1, 1),
    ("name",): (1, 7),
    ("nodes",): (3, 3),
    ("nodes", 0): (3, 5),
    ("nodes", 0, "name"): (3, 12),
    ("nodes", 0, "gpus"): (3, 21),
    ("nodes", 0, "gpus", "count"): (3, 29),
    ("nodes", 1): (4, 5),
    ("nodes", 1, "name"): (4, 11),
    ("nodes", 1, "data"): (6, 7),
    ("nodes", 1, "data", "imagenet"): (6, 17),
    ("hcas",): (8, 1),
    ("hcas", 0): (8, 3),
    ("last",): (10, 7),
}
KEY_PLACES = {
    ("name",): (1, 1),
    ("nodes",): (2, 1),
    ("nodes", 0, "name"): (3, 6),
    ("nodes", 0, "gpus"): (3, 15),
    ("nodes", 0, "gpus", "count"): (3, 22),
    ("nodes", 1, "name"): (4, 5),
    ("nodes", 1, "data"): (5, 5),
    ("nodes", 1, "data", "imagenet"): (6, 7),
    ("hcas",): (7, 1),
    ("last",): (10, 1),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_value_and_key_has_its_place(tmp_path: Path, line_end: str) -> None:
    """They are the lines and columns that an editor shows, whatever ends the lines."""
    document = read(tmp_path, NESTED.replace("\n", line_end))
    assert document.starts == PLACES
    assert document.key_starts == KEY_PLACES


def test_mistake_about_what_is_absent_points_to_what_is_around_it(tmp_path: Path) -> None:
    """A path that the file lacks is placed at its nearest ancestor, and written in full."""
    document = read(tmp_path, NESTED)
    absent = document.mistake(("nodes", 1, "gpus", "use", 0), "none; needed one")
    assert str(absent).endswith("file.yaml:4:5: nodes[1].gpus.use[0]: none; needed one")
    key = document.mistake(("nodes", 1, "data"), "unknown", key=True)
    assert (key.line, key.column) == (5, 5)
    item = document.mistake(("nodes", 1), "an item has no key", key=True)
    assert (item.line, item.column) == (4, 5)


def test_mistake_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    """Control characters in a message or a key come out escaped."""
    document = read(tmp_path, "a: 1\n")
    shown = str(document.mistake(("a\x1b[2J",), "got \x1b]0;x\x07\nnext"))
    assert shown.endswith(r"""['a\x1b[2J']: got \x1b]0;x\x07\nnext""")


def test_depth_of_32_is_read_and_33_is_not(tmp_path: Path) -> None:
    """The root mapping counts as the first level."""
    assert read(tmp_path, f"a: {'[' * 31}{']' * 31}\n").data
    with pytest.raises(errors.ConfigError, match="more than 32 lists and mappings"):
        read(tmp_path, f"a: {'[' * 32}{']' * 32}\n")


DEEP, ANCHOR, LIST = "more than 32 lists and mappings", "an anchor", "did not find expected ','"
BOMBS = {
    "brackets": ("a: " + "[" * 20_000, f"1:35: .*{DEEP}"),
    "braces": ("{a: " * 20_000, f"1:129: .*{DEEP}"),
    "dashes": ("a:\n" + "- " * 20_000, f"2:63: .*{DEEP}"),
    "aliases": (
        "a0: &a0 [x, x]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)),
        f"1:5: a0: {ANCHOR}",
    ),
    "merges": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
        f"1:5: a0: {ANCHOR}",
    ),
    "digits": ("a: " + "9" * 1_000_000, "1:4: a: .*needed a number of 64 bits"),
    "zeros": ("a: [" + "0" * 1_000_000, f"1:4: {LIST}"),
    "sixties": ("a: [" + "1:" * 500_000, f"1:4: {LIST}"),
    "underscores": ("a: [" + "1_" * 500_000, f"1:4: {LIST}"),
}


@pytest.mark.parametrize(("text", "words"), BOMBS.values(), ids=BOMBS.keys())
def test_bomb_is_refused_within_a_second(tmp_path: Path, text: str, words: str) -> None:
    """Small files that grow, nest or backtrack without end cost no more than others."""
    began = time.process_time()
    with pytest.raises(errors.ConfigError, match=f"file.yaml:{words}"):
        read(tmp_path, text)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbfa: 1\n", "1:1: control character U+FEFF"),
        ("a: 1\n".encode("utf-16"), "1:1: byte 0xff; needed text in UTF-8"),
        ("a: 1\n".encode("utf-32"), "1:1: byte 0xff; needed text in UTF-8"),
        ("a: 1\n".encode("utf-16-le"), "1:2: control character U+0000"),
        ("a: ü\nb: ß\n".encode("latin-1"), "1:4: byte 0xfc; needed text in UTF-8"),
        ("a: ü\nb: é".encode() + b"\xc3", "2:5: byte 0xc3; needed text in UTF-8"),
        (b"a: \xed\xa0\x80\n", "1:4: byte 0xed; needed text in UTF-8"),
        (b"a: \xc0\xaf\n", "1:4: byte 0xc0; needed text in UTF-8"),
    ],
)
def test_other_encodings_than_utf_8_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """The place of the first wrong byte is named in characters."""
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    assert f"file.yaml:{words}" in str(refusal(file))


def test_path_that_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """Folders, pipes, devices, sockets and absent files say what they are."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert "1:1: cannot be read: not a regular file" in str(refusal(tmp_path / "socket"))
    assert "1:1: cannot be read: not a regular file" in str(refusal(tmp_path / "pipe"))
    assert "1:1: cannot be read: not a regular file" in str(refusal(tmp_path))
    assert "1:1: cannot be read: not a regular file" in str(refusal(Path("/dev/zero")))
    assert "1:1: cannot be read: No such file" in str(refusal(tmp_path / "absent"))
    assert "1:1: cannot be read: Too many levels" in str(refusal(tmp_path / "loop"))
    assert "1:1: cannot be read: File name too long" in str(refusal(tmp_path / ("n" * 300)))
    assert "1:1: cannot be read: " in str(refusal(tmp_path / "nul\0"))


def test_file_over_one_mebibyte_is_refused_unread(tmp_path: Path) -> None:
    """Two sparse gigabytes cost nothing; exactly one mebibyte is read."""
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.truncate(2 << 30)
    assert "more than 1048576 bytes" in str(refusal(huge))
    assert read(tmp_path, "a: 1\n" + "#" * ((1 << 20) - 5)).data == {"a": 1}
    with pytest.raises(errors.ConfigError, match="more than 1048576 bytes"):
        read(tmp_path, "a: 1\n" + "#" * ((1 << 20) - 4))


def test_file_that_everyone_may_write_is_refused(tmp_path: Path) -> None:
    """The mode is one problem among the others of the file."""
    file = tmp_path / "file.yaml"
    file.write_text("a: 010\n")
    file.chmod(0o666)
    assert [mistake.column for mistake in refusal(file).mistakes] == [1, 4]
    assert "everyone may write to it (mode 0666); needed chmod o-w" in str(refusal(file))


def test_unreadable_file_says_so(tmp_path: Path) -> None:
    """The system's own words, at the file's first character."""
    file = tmp_path / "file.yaml"
    file.write_text("a: 1\n")
    if os.geteuid() == 0:  # root may read every file: be somebody else while it is read
        os.seteuid(65534)
        try:
            assert "1:1: cannot be read: Permission denied" in str(refusal(file))
        finally:
            os.seteuid(0)
        return
    file.chmod(0)
    assert "1:1: cannot be read: Permission denied" in str(refusal(file))


@pytest.mark.parametrize(
    "text",
    [
        "token: 0123",
        "a: {api_secret: [010, 2020-01-01]}",
        "password: *0123",
        "password: &0123 x",
        "password: !0123 x",
        "hf_token: '0123\n",
    ],
)
def test_secret_is_not_shown_with_its_problem(tmp_path: Path, text: str) -> None:
    """Mistakes end up in logs and issues; a secret that stands in a file must not."""
    with pytest.raises(errors.ConfigError) as caught:
        read(tmp_path, text)
    problem = str(caught.value).partition("file.yaml:")[2]
    assert "010" not in problem
    assert "0123" not in problem
    assert "2020" not in problem


def test_file_is_named_as_the_user_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path stays relative in every mistake."""
    (tmp_path / "here.yaml").write_text("a: no\n")
    monkeypatch.chdir(tmp_path)
    assert str(refusal(Path("here.yaml"))).startswith("here.yaml:1:4: a: got no")
