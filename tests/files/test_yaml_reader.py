"""YAML files of users: what is read, what is refused, and where and how that is said."""

import enum
import json
import os
import socket
import time
from pathlib import Path
from typing import Annotated, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pydantic import AfterValidator, BaseModel, Field, model_validator
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.documents import Document, Tree
from orchestrator.files import yaml_reader
from orchestrator.model.text import Noun

# Values that YAML 1.1 and YAML 1.2 read differently, from the two specifications.
SURPRISES = (
    *("yes", "no", "on", "off", "y", "n", "YES", "No", "oFF", "Y"),
    *("010", "05", "-07", "08", "00", "05.5", "00.1", "01e5"),
    *("22:22", "1:30:00", "-1:30", "1:30.5", "0x16", "0o17", "0b1", "0XfF", "-0x1"),
    *("1_000", "1_000.5", "+1_0", "1e1_0"),
    *("2020-01-01", "2020-1-1 10:00:00", "2020-01-01T10:00:00Z"),
    *(".nan", ".NaN", ".inf", "-.inf", "+.INF", "=", "<<"),
)
BAD = (
    *("", "# only a comment\n", "---\n", "word\n", "- a\n- b\n", "no\n", "a:\n"),
    *("a: 1\n---\nb: 2\n", "a: 1\n...\nfoo\n"),
    *("a: &x 1\n", "a: &x [1]\n", "&x a: 1\n", "&x\na: 1\n", "a: 1\nb: *x\n", "*x : 1\n"),
    *("a: *.log\n", "a: >=2.0\n", "a: !!str 1\n", "a: ! x\n", "a: !py/object x\n"),
    *("a: !x!y z\n", "!!map\na: 1\n"),
    *("a: [null]\n", "a: [Null]\n", "a: [NULL]\n", "a: [~]\n"),
    *("a: 1\nb: 2\na: 3\n", "a: 1\n'a': 2\n", "a:\n- {b: 1, b: 2}\n"),
    *("? [a, b]\n: x\n", "{{a: 1}: x}\n"),
    *("a:\n\tb: 1\n", "a: 1\n\tb: 1\n"),
    *("a: 'x\ty'\n", "a: |\n  x #\ty\n", 'a: "x\\ty"\n', 'a: "x\\u0007y"\n', 'a: "x\\u202ey"\n'),
    *("a: 1\nb: x\x00y\n", "a: 1\nb: x\x1b[31m\n", "a: 1\nb: x\x85y\n", "a: x\u2028b: 1\n"),
    *("a: x\u202ey\n", "a: 1\rb: 2\r", "a: 1\nb: \ufeffx\n"),
    *("a: 9223372036854775808\n", "a: -9223372036854775809\n", f"a: {'9' * 5000}\n", "a: 1e999\n"),
    *("a: [1,\n", "a: [1, 2\nb: 3\n", "a: {b: 1\nc: 2\n", "a: 1\nb: ]\n", "a: 'x\nb: 1\n"),
    *('a: "x\n---\ny"\n', "a: b: c\n", "a: 1\n  b: 2\n", "a: @x\n", "a: `x`\n", "a: 1\nb\n"),
    *("a:\n  b: 1\n c: 2\n", "a:\n- b\n c\nd: 1\n- e\n", "- a\nb: 1\n", "a: - b\n"),
    *('a: "\\q"\n', "password: 0123\n"),
    "a: no\nb: [010, &x 1]\na: 2\nc: 22:22\nd: @e\nf: no\n",
    "größe: 🚀\r\nmaße: [1, {ü: 010}, no]\r\n",
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


def read(folder: Path, text: str) -> Document:
    """Read a file with this text, byte for byte."""
    file = folder / "file.yaml"
    file.write_bytes(text.encode())
    return yaml_reader.read(file)


def mistakes(text: str, model: type[BaseModel] | None = None) -> list[str]:
    """Return why a text is refused, as ``line:column: path: text``."""

    def read() -> None:
        document = yaml_reader.document(text, "it")
        if model:
            yaml_reader.validated(document, model)

    with pytest.raises(errors.ConfigError) as caught:
        read()
    return [str(mistake).removeprefix("it:") for mistake in caught.value.mistakes]


def refusal(path: Path) -> str:
    """Return the only reason why a file is refused, after its name."""
    with pytest.raises(errors.ConfigError) as caught:
        yaml_reader.read(path)
    (mistake,) = caught.value.mistakes
    return str(mistake).removeprefix(f"{mistake.file}:")


@pytest.mark.parametrize("text", SURPRISES)
def test_a_value_that_readers_of_yaml_read_differently_is_refused(text: str) -> None:
    (mistake,) = mistakes(f"first: x\nkey: {text}\n")
    assert mistake.startswith("2:6: key: got ")
    assert mistake.endswith("quote it if it is text")
    assert yaml_reader.document(f"key: '{text}'\n", "it").data == {"key": text}


def test_a_doubtful_text_is_refused_at_its_place(snapshot: SnapshotAssertion) -> None:
    """All errors up to the first that breaks the syntax are reported at once."""
    assert {ascii(text)[:90]: mistakes(text) for text in BAD} == snapshot


def test_an_escape_beyond_unicode_is_refused_by_either_parser() -> None:
    """libyaml names it; the parser in Python fails on it."""
    (mistake,) = mistakes('a: "\\UFFFFFFFF"\n')
    assert "escape code" in mistake or "cannot be read as YAML" in mistake


@pytest.mark.parametrize(("text", "data"), GOOD)
def test_a_clear_text_is_read_as_it_looks(tmp_path: Path, text: str, data: object) -> None:
    """Plain scalars follow YAML 1.2's core schema; whatever is quoted is text."""
    found = read(tmp_path, text).data
    assert repr(found) == repr(data)  # 1 == 1.0 == True, but they are not the same


LETTERS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs", "So"]), max_size=8)
TREES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | LETTERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(LETTERS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(LETTERS, TREES, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_every_value_is_read_as_it_was_written_at_its_place(
    data: dict[str, Tree], line_end: str
) -> None:
    """Lines and columns of values and keys are those of an editor. (JSON is YAML.)"""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    lines = text.split("\n")
    document = yaml_reader.document(text.replace("\n", line_end), "it")
    assert repr(document.data) == repr(data)
    for path, (line, column) in document.starts.items():
        value: Tree = data
        for step in path:
            value = value[step]  # type: ignore[index]  # by a path of the document
        written = json.dumps(value, ensure_ascii=False)
        begin = written[0] if isinstance(value, list | dict) else written
        assert lines[line - 1][column - 1 :].startswith(begin)
    for path, (line, column) in document.key_starts.items():
        assert lines[line - 1][column - 1 :].startswith(json.dumps(path[-1], ensure_ascii=False))
    assert document.key_starts.keys() == {
        path for path in document.starts if isinstance((path or (0,))[-1], str)
    }


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
"""


def test_values_in_block_style_have_their_places() -> None:
    document = yaml_reader.document(NESTED, "it")
    places = {path: (document.key_starts.get(path), at) for path, at in document.starts.items()}
    assert places == {
        (): (None, (1, 1)),
        ("name",): ((1, 1), (1, 7)),
        ("nodes",): ((2, 1), (3, 3)),
        ("nodes", 0): (None, (3, 5)),
        ("nodes", 0, "name"): ((3, 6), (3, 12)),
        ("nodes", 0, "gpus"): ((3, 15), (3, 21)),
        ("nodes", 0, "gpus", "count"): ((3, 22), (3, 29)),
        ("nodes", 1): (None, (4, 5)),
        ("nodes", 1, "name"): ((4, 5), (4, 11)),
        ("nodes", 1, "data"): ((5, 5), (6, 7)),
        ("nodes", 1, "data", "imagenet"): ((6, 7), (6, 17)),
        ("hcas",): ((7, 1), (8, 1)),
        ("hcas", 0): (None, (8, 3)),
    }


@pytest.mark.parametrize(
    ("path", "key", "said"),
    [
        (("nodes", 1, "gpus", "use", 0), False, "4:5: nodes[1].gpus.use[0]: x"),
        (("nodes", 1, "data"), True, "5:5: nodes[1].data: x"),
        (("nodes", 1), True, "4:5: nodes[1]: x"),
    ],
)
def test_a_mistake_about_an_absent_value_is_placed_at_what_surrounds_it(
    path: tuple[str | int, ...], key: bool, said: str
) -> None:
    assert str(yaml_reader.document(NESTED, "it").mistake(path, "x", key=key)) == f"it:{said}"


def test_a_mistake_cannot_control_the_terminal() -> None:
    shown = str(yaml_reader.document("a: 1", "it").mistake(("a\x1b[2J",), "got \x1b]0;x\x07\nnext"))
    assert shown.endswith(r"""['a\x1b[2J']: got \x1b]0;x\x07\nnext""")


def test_32_levels_are_read_and_33_are_not() -> None:
    """The root mapping counts as the first level."""
    assert yaml_reader.document(f"a: {'[' * 31}{']' * 31}\n", "it").data
    (mistake,) = mistakes(f"a: {'[' * 32}{']' * 32}\n")
    assert "more than 32 lists and mappings" in mistake


def grown(begin: str, line: str, more: str) -> str:
    """Return a document in which each of 60 lines repeats the one before it."""
    return begin + "".join(line.format(n=n, many=more.format(n=n - 1)) for n in range(1, 60))


DEEP, ANCHOR, LIST = "more than 32 lists and mappings", "an anchor", "did not find expected ','"
BOMBS = {
    "brackets": ("a: " + "[" * 20_000, "1:35: ", DEEP),
    "braces": ("{a: " * 20_000, "1:129: ", DEEP),
    "dashes": ("a:\n" + "- " * 20_000, "2:63: ", DEEP),
    "aliases": (
        grown("a0: &a0 [x]\n", "a{n}: &a{n} [{many}]\n", ", ".join(["*a{n}"] * 10)),
        "1:5: a0: ",
        ANCHOR,
    ),
    "merges": (
        grown("a0: &a0 {{x: 1}}\n", "a{n}: &a{n} {{<<: [{many}]}}\n", "*a{n}, *a{n}"),
        "1:5: a0: ",
        ANCHOR,
    ),
    "digits": ("a: " + "9" * 1_000_000, "1:4: a: ", "needed a number of 64 bits"),
    "zeros": ("a: [" + "0" * 1_000_000, "1:4: ", LIST),
    "sixties": ("a: [" + "1:" * 500_000, "1:4: ", LIST),
    "underscores": ("a: [" + "1_" * 500_000, "1:4: ", LIST),
}


@pytest.mark.parametrize(("text", "place", "words"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_within_a_second(text: str, place: str, words: str) -> None:
    """Small files that grow, nest or backtrack without end cost no more than others."""
    began = time.process_time()
    first, *_ = mistakes(text)
    assert time.process_time() - began < 1
    assert first.startswith(place)
    assert words in first


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
def test_another_encoding_than_utf_8_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """The place of the first wrong byte is counted in characters."""
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    assert refusal(file).startswith(words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".", "not a regular file"),
        ("pipe", "not a regular file"),
        ("socket", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        ("absent", "No such file"),
        ("loop", "Too many levels"),
        ("n" * 300, "File name too long"),
        ("nul\0", ""),
        ("huge", "more than 1048576 bytes"),
        ("large", "more than 1048576 bytes"),
    ],
)
def test_a_path_that_is_no_small_file_is_refused_at_once(
    tmp_path: Path, name: str, words: str
) -> None:
    """Two sparse gigabytes cost nothing; a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for size, file in ((2 << 30, "huge"), ((1 << 20) + 1, "large")):
        with (tmp_path / file).open("wb") as stream:
            stream.truncate(size)
    assert f"1:1: cannot be read: {words}" in refusal(tmp_path / name)


def test_a_file_of_one_mebibyte_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, "a: 1\n" + "#" * ((1 << 20) - 5)).data == {"a": 1}


def test_a_file_that_everyone_may_write_is_refused_with_its_other_errors(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("a: 010\n")
    file.chmod(0o666)
    with pytest.raises(errors.ConfigError) as caught:
        yaml_reader.read(file)
    assert [mistake.column for mistake in caught.value.mistakes] == [1, 4]
    assert "everyone may write to it (mode 0666); needed chmod o-w" in str(caught.value)


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("a: 1\n")
    file.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read every file
        os.seteuid(65534)
    try:
        assert "1:1: cannot be read: Permission denied" in refusal(file)
    finally:
        os.seteuid(user)


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
def test_a_secret_is_not_shown_with_its_error(text: str) -> None:
    """Errors end up in logs and issues."""
    assert not any(secret in str(mistakes(text)) for secret in ("010", "0123", "2020"))


def test_a_file_is_named_as_the_user_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.yaml").write_text("a: no\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ConfigError, match=r"^here\.yaml:1:4: a: got no"):
        yaml_reader.read(Path("here.yaml"))


class Size(enum.Enum):
    """An enumeration, as a file writes it."""

    SMALL = "small"
    LARGE = "large"


def even(number: int) -> int:
    if number % 2:
        raise ValueError(f"got {number}; needed an even number")
    return number


class Gpus(Noun):
    """A mapping inside a mapping."""

    count: int = Field(default=8, ge=1, lt=65)
    use: tuple[Annotated[int, AfterValidator(even)], ...] = ()


class Entry(Noun):
    """One item of a list."""

    name: str = Field(pattern="^[a-z0-9]+$", max_length=8)
    gpus: Gpus | None = None
    batch: Annotated[int, Field(ge=1)] | Literal["auto"] | None = None
    port: int = 22


class File(Noun):
    """A file with a field for each kind of mistake."""

    nodes: tuple[Entry, ...] = Field(min_length=1, max_length=3)
    precision: Literal["amp", "fp32"] = "amp"
    size: Size = Size.SMALL
    rate: float = Field(default=1.0, gt=0)
    window: tuple[int, int] = (1, 2)
    sudo: bool = False
    names: tuple[str, ...] = ()
    limits: dict[Annotated[str, Field(min_length=2)], int] = Field(default_factory=dict)
    params: dict[str, bool | int | float | str] = Field(default_factory=dict)
    either: Gpus | str | None = None
    lists: list[list[Gpus]] = Field(default_factory=list)
    pad_token: int = 0

    @model_validator(mode="after")
    def _fits(self) -> "File":
        if self.window[0] > self.window[1]:
            raise ValueError("the window ends before it begins; needed two rising numbers")
        return self


MISFITS = (
    *("sud: true", "Precision: amp", "reg_password: hunter2", "authToken: abc", "pad_token: abc"),
    *("precision: fp8", "precision: fp23", "precision: 32", "size: smal", "sudo: 1", "sudo: 'no'"),
    *("rate: '8'", "rate: true", "rate: -0.5", "rate:", "rate: [1]", f"rate: '{'x' * 90}'"),
    *("window: [1]", "window: []", "window: [1, 2, 3]", "window: [1, 2.0]", "window: [9, 2]"),
    *("window: 5", "window: {}", "names: x", "names: [x, 20.10]", "names: [true]"),
    *("limits: {memlock: x}", "limits: {a: 1}", "limits: {'a b': x}"),
    *("params: {x: [1]}", "params: 5", "either: 5", "lists: [[], [{}, {cuont: 1}]]"),
)
NODE_MISFITS = (
    *("{}", "{name: A}", "{name: aaaaaaaaa}", "x", "{name: a, gpu: {}}", "{name: a, gpus: 8}"),
    *("{name: a, gpus: {counts: 1}}", "{name: a, gpus: {zzz: 1}}", "{name: a, gpus: {count: 0}}"),
    *("{name: a, gpus: {count: 65}}", "{name: a, gpus: {use: [0, 3]}}", "{name: a, batch: 0}"),
    *("{name: a, batch: aut}", "{name: a, 'token:0123': 1}", "{name: a, gpus: }"),
)
WHOLE_FILES = (
    *("sudo: true\n", "nodes: []\n"),
    "nodes: [1, 2]\n",  # pydantic does not count the items that it refused
    "sudo: 1\nnodes:\n- {name: A, gpus: {count: 0}}\n- {nam: b}\nrate: x\n",
)


def test_a_misfit_is_described_in_plain_words_at_its_place(snapshot: SnapshotAssertion) -> None:
    """One error for each value; branches of unions leave no trace in its path."""
    texts = (
        *(f"nodes: [{{name: a}}]\n{line}\n" for line in MISFITS),
        *(f"nodes: [ {node} ]\n" for node in NODE_MISFITS),
        *WHOLE_FILES,
    )
    assert {ascii(text)[:90]: mistakes(text, File) for text in texts} == snapshot


@pytest.mark.parametrize("sign", [":", "=", " "])
@pytest.mark.parametrize("value", ["", ": 1"])
def test_a_secret_that_is_part_of_its_key_is_not_shown(sign: str, value: str) -> None:
    """Shells and URLs write a secret so; a value may follow it or not."""
    lines = mistakes(f"nodes: [{{name: a, 'token{sign}0123'{value}}}]\nrate: 1\n", File)
    assert any("nodes[0]['token'...]: " in line for line in lines)
    assert "0123" not in "".join(lines)


def test_a_valid_file_becomes_the_model_with_its_types() -> None:
    """Lists become tuples, words of an enumeration its members; a whole number may be a rate."""
    text = (
        "nodes: [{name: a, batch: auto, port: 2222, gpus: {count: 2}}]\n"
        "rate: 2\nsize: large\nparams: {a: 1, b: 0.5, c: true, d: '1'}\nnames: [x]\n"
    )
    file = yaml_reader.validated(yaml_reader.document(text, "it"), File)
    assert file.nodes == (Entry(name="a", batch="auto", port=2222, gpus=Gpus(count=2)),)
    assert (file.rate, file.size, file.names) == (2.0, Size.LARGE, ("x",))
    assert repr(file.params) == "{'a': 1, 'b': 0.5, 'c': True, 'd': '1'}"
