"""Documents that become models: a value that does not fit is told in plain words, at its place."""

import enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)

from orchestrator import errors
from orchestrator.files import yaml_reader
from tests.files.reading import read


class Strict(BaseModel):
    """What all models of this project are."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Size(enum.Enum):
    """An enumeration, as a file writes it."""

    SMALL = "small"
    LARGE = "large"


def even(number: int) -> int:
    """A validator of ours, with a message of ours."""
    if number % 2:
        raise ValueError(f"got {number}; needed an even number")
    return number


class Gpus(Strict):
    """A mapping inside a mapping."""

    count: int = Field(default=8, ge=1, lt=65)
    use: tuple[Annotated[int, AfterValidator(even)], ...] = ()


class Entry(Strict):
    """One item of a list."""

    name: str = Field(pattern="^[a-z0-9]+$", max_length=8)
    gpus: Gpus | None = None
    batch: Annotated[int, Field(ge=1)] | Literal["auto"] | None = None
    port: int = 22


class File(Strict):
    """The family's head: one field for each kind of mistake."""

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


def said(folder: Path, text: str) -> list[str]:
    """What is complained about, as ``line:column: path: text``."""
    with pytest.raises(errors.ConfigError) as caught:
        yaml_reader.validated(read(folder, text), File)
    return [str(mistake).partition("file.yaml:")[2] for mistake in caught.value.mistakes]


MISFITS = (
    ("sud: true", "2:1: sud: unknown key 'sud'; did you mean 'sudo'?"),
    ("Precision: amp", "2:1: Precision: unknown key 'Precision'; did you mean 'precision'?"),
    ("reg_password: hunter2", "2:1: reg_password: unknown key 'reg_password';"
     " secrets do not belong into these files"),
    ("authToken: abc", "2:1: authToken: unknown key 'authToken';"
     " secrets do not belong into these files"),
    ("pad_token: abc", "2:12: pad_token: got a value that is not shown;"
     " secrets do not belong into these files"),
    ("precision: fp8", "2:12: precision: got 'fp8'; needed 'amp' or 'fp32'"),
    ("precision: fp23", "2:12: precision: got 'fp23'; needed 'amp' or 'fp32';"
     " did you mean 'fp32'?"),
    ("precision: 32", "2:12: precision: got 32; needed 'amp' or 'fp32'"),
    ("size: smal", "2:7: size: got 'smal'; needed 'small' or 'large'; did you mean 'small'?"),
    ("rate: '8'", "2:7: rate: got '8'; needed a valid number"),
    ("rate: true", "2:7: rate: got true; needed a valid number"),
    ("rate: -0.5", "2:7: rate: got -0.5; needed greater than 0"),
    ("rate:", "2:6: rate: got nothing; needed a value, or no key at all"),
    ("rate: [1]", "2:7: rate: got a list of 1; needed a valid number"),
    ("sudo: 1", "2:7: sudo: got 1; needed a valid boolean"),
    ("sudo: 'no'", "2:7: sudo: got 'no'; needed a valid boolean"),
    ("window: [1]", "2:9: window: got a list of 1; needed 2 in it"),
    ("window: []", "2:9: window: got an empty list; needed 2 in it"),
    ("window: [1, 2, 3]", "2:9: window: got a list of 3; needed at most 2 items"),
    ("window: [1, 2.0]", "2:13: window[1]: got 2.0; needed a valid integer"),
    ("window: [9, 2]", "1:1: the window ends before it begins; needed two rising numbers"),
    ("window: 5", "2:9: window: got 5; needed a list"),
    ("window: {}", "2:9: window: got an empty mapping; needed a list"),
    ("names: x", "2:8: names: got 'x'; needed a list"),
    ("names: [x, 20.10]", "2:12: names[1]: got 20.1; needed a valid string"),
    ("names: [true]", "2:9: names[0]: got true; needed a valid string"),
    ("limits: {memlock: x}", "2:19: limits.memlock: got 'x'; needed a valid integer"),
    ("limits: {a: 1}", "2:10: limits.a: got 'a'; needed at least 2 characters"),
    ("limits: {'a b': x}", "2:17: limits['a b']: got 'x'; needed a valid integer"),
    ("params: {x: [1]}", "2:13: params.x: got a list of 1;"
     " needed a valid boolean, a valid integer, a valid number or a valid string"),
    ("params: 5", "2:9: params: got 5; needed a mapping"),
    ("either: 5", "2:9: either: got 5; needed a mapping or a valid string"),
    ("lists: [[], [{}, {cuont: 1}]]", "2:19: lists[1][1].cuont: unknown key 'cuont';"
     " did you mean 'count'?"),
    ("rate: '" + "x" * 90 + "'", f"2:7: rate: got '{'x' * 56}...; needed a valid number"),
)  # fmt: skip
NODE_MISFITS = (
    ("{}", "1:10: nodes[0]: key 'name' is missing"),
    ("{name: A}", "1:17: nodes[0].name: got 'A'; needed pattern '^[a-z0-9]+$'"),
    ("{name: aaaaaaaaa}", "1:17: nodes[0].name: got 'aaaaaaaaa'; needed at most 8 characters"),
    ("x", "1:10: nodes[0]: got 'x'; needed a mapping"),
    ("{name: a, 'token:0123': 1}", "1:20: nodes[0]['token'...]: unknown key 'token';"
     " secrets do not belong into these files"),
    ("{name: a, gpu: {}}", "1:20: nodes[0].gpu: unknown key 'gpu'; did you mean 'gpus'?"),
    ("{name: a, gpus: {counts: 1}}", "1:27: nodes[0].gpus.counts: unknown key 'counts';"
     " did you mean 'count'?"),
    ("{name: a, gpus: {zzz: 1}}", "1:27: nodes[0].gpus.zzz: unknown key 'zzz';"
     " needed one of count, use"),
    ("{name: a, gpus: {count: 0}}", "1:34: nodes[0].gpus.count: got 0; needed at least 1"),
    ("{name: a, gpus: {count: 65}}", "1:34: nodes[0].gpus.count: got 65; needed less than 65"),
    ("{name: a, gpus: {use: [0, 3]}}", "1:36: nodes[0].gpus.use[1]: got 3; needed an even number"),
    ("{name: a, gpus: 8}", "1:26: nodes[0].gpus: got 8; needed a mapping"),
    ("{name: a, batch: 0}", "1:27: nodes[0].batch: got 0;"
     " needed at least 1 or 'auto'"),
    ("{name: a, batch: aut}", "1:27: nodes[0].batch: got 'aut';"
     " needed a valid integer or 'auto'; did you mean 'auto'?"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "mistake"), MISFITS)
def test_misfit_is_told_in_plain_words(tmp_path: Path, line: str, mistake: str) -> None:
    """One mistake for each value: its place, what was seen, what was needed, nothing else."""
    assert " | ".join(said(tmp_path, f"nodes: [{{name: a}}]\n{line}\n")) == mistake


@pytest.mark.parametrize(("node", "mistake"), NODE_MISFITS)
def test_misfit_inside_a_list_is_told_by_index(tmp_path: Path, node: str, mistake: str) -> None:
    """Branches of unions leave no trace in the path; guesses come from the model at that place."""
    assert said(tmp_path, f"nodes: [ {node} ]\n") == [mistake]


def test_missing_list_is_told_at_the_root(tmp_path: Path) -> None:
    """A missing key is placed at the mapping that lacks it."""
    assert said(tmp_path, "sudo: true\n") == ["1:1: key 'nodes' is missing"]
    assert said(tmp_path, "nodes: []\n") == [
        "1:8: nodes: got an empty list; needed at least 1 item"
    ]


def test_bad_items_do_not_make_a_list_too_short(tmp_path: Path) -> None:
    """pydantic does not count the items that it refused; nobody else would call the list short."""
    assert said(tmp_path, "nodes: [1, 2]\n") == [
        "1:9: nodes[0]: got 1; needed a mapping",
        "1:12: nodes[1]: got 2; needed a mapping",
    ]


def test_all_misfits_come_at_once_in_the_files_order(tmp_path: Path) -> None:
    """One run shows everything that there is to correct."""
    text = "sudo: 1\nnodes:\n- {name: A, gpus: {count: 0}}\n- {nam: b}\nrate: x\n"
    places = [line.split(": ")[0] for line in said(tmp_path, text)]
    assert places == ["1:7", "3:10", "3:27", "4:3", "4:4", "5:7"]


@pytest.mark.parametrize("sign", [":", "=", " "])
@pytest.mark.parametrize("value", ["", ": 1"])
def test_a_secret_that_is_written_as_part_of_its_key_is_not_shown(
    tmp_path: Path, sign: str, value: str
) -> None:
    """Shells and URLs write a secret like this; a value may follow it or not."""
    text = f"nodes: [{{name: a, 'token{sign}0123'{value}}}]\nrate: 1\n"
    lines = said(tmp_path, text)
    assert any("nodes[0]['token'...]: " in line for line in lines)
    assert "0123" not in "".join(lines)


def test_key_without_a_value_is_refused_even_where_it_may_be_absent(tmp_path: Path) -> None:
    """Whoever wrote the key meant something, and an item written without its colon is none."""
    needed = "got nothing; needed a value, or no key at all"
    assert said(tmp_path, "nodes:\n- name: a\n  gpus:\n") == [f"3:8: nodes[0].gpus: {needed}"]
    (hidden,) = said(tmp_path, "nodes: [{name: a, token:0123}]\nrate: 0\n")
    assert "['token'...]: a value that is not shown; secrets" in hidden
    assert "0123" not in hidden


def test_valid_file_becomes_the_model_with_its_types(tmp_path: Path) -> None:
    """Lists become tuples, words of an enumeration its members; a whole number may be a rate."""
    text = (
        "nodes: [{name: a, batch: auto, port: 2222, gpus: {count: 2}}]\n"
        "rate: 2\nsize: large\nparams: {a: 1, b: 0.5, c: true, d: '1'}\nnames: [x]\n"
    )
    file = yaml_reader.validated(read(tmp_path, text), File)
    assert file.nodes == (Entry(name="a", batch="auto", port=2222, gpus=Gpus(count=2)),)
    assert (file.rate, file.size, file.names) == (2.0, Size.LARGE, ("x",))
    assert repr(file.params) == "{'a': 1, 'b': 0.5, 'c': True, 'd': '1'}"
