"""The options of a benchmark's program, from the table that was dumped from its own parser.

Stand-ins take their options from here, and a test holds every planned command line against them.
"""

import argparse
import ast
import csv
from collections.abc import Callable, Mapping

_NONE = {}  # type: Mapping[str, str]
_YES = ("yes", "true", "t", "y", "1")
_NO = ("no", "false", "f", "n", "0")


def _bool_of_word(text: str) -> bool:
    if text.lower() not in _YES + _NO:
        raise argparse.ArgumentTypeError("Unsupported value encountered.")
    return text.lower() in _YES


def _list_of(kind: "Callable[[str], object]") -> "Callable[[str], object]":
    return lambda text: [kind(word) for word in text.split(",")]


_TYPES = {
    "": str,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,  # as argparse has it: every word but the empty one is true
    "str2bool": _bool_of_word,
    "str_list": _list_of(str),
    "int_list": _list_of(int),
    "float_list": _list_of(float),
}  # type: dict[str, Callable[[str], object]]


def parser(
    path: str, names: "Mapping[str, str]" = _NONE, *, abbreviated: bool = True
) -> argparse.ArgumentParser:
    """A parser that takes and refuses what the program's own does.

    Args:
        path: a table ``PROGRAM@COMMIT.csv``.
        names: by option, what the program calls its value, where that is not the option's name.
        abbreviated: whether options may be shortened while that is unambiguous.
    """
    made = argparse.ArgumentParser(allow_abbrev=abbreviated)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            _add(made, row, names)
    return made


def _add(
    made: argparse.ArgumentParser, row: "Mapping[str, str]", names: "Mapping[str, str]"
) -> None:
    spellings = row["options"].split("|")
    if spellings[0].startswith("<"):
        made.add_argument(spellings[0].strip("<>"))
        return
    required, kind = row["required"] == "1", _TYPES[row["type"].lstrip("_")]
    if row["nargs"] == "0":
        action = "store_false" if row["default"] == "True" else "store_true"
        added = made.add_argument(*spellings, action=action, required=required)
    elif row["nargs"] == "?":
        added = made.add_argument(
            *spellings, nargs="?", const=True, type=kind, default=_default(row), required=required
        )
    else:
        choices = [kind(word) for word in row["choices"].split("|")] if row["choices"] else None
        added = made.add_argument(
            *spellings, type=kind, choices=choices, default=_default(row), required=required
        )
    added.dest = names.get(spellings[0], added.dest)


def _default(row: "Mapping[str, str]") -> object:
    """The default as the program has it; the table does not tell None from an empty word."""
    text = row["default"]
    if not text:
        return None
    return text if row["type"] in ("", "str") else ast.literal_eval(text)
