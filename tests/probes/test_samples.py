"""Each recorded sample gives the facts that a person reads in it, and a damaged one no others."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from pprint import pformat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.probes import gpu, health, infiniband, topology
from tests import SAMPLES
from tests.probes.test_edits import ANSWERS

TABLE = (
    ("nvidia-smi/*.xml", gpu.parse),
    ("topo/*.txt", topology.parse),
    ("ibstat/*.txt", infiniband.parse),
    ("ibverbs/*.txt", infiniband.parse_verbs),
    ("health/*nvlink.txt", topology.nvlinks),
    ("health/*nvlink_inactive.txt", topology.nvlinks),
    ("health/*nvlink_errors.txt", topology.nvlink_errors),
    ("health/node.txt", health.parse),
)
KEEPS_PROBLEMS = (gpu.parse, topology.parse, infiniband.parse)
Parser = Callable[[str], object]
ALL: list[tuple[Parser, Path]] = [
    (parse, path) for pattern, parse in TABLE for path in sorted(SAMPLES.glob(pattern))
]


def each(samples: Sequence[tuple[Parser, Path]]) -> pytest.MarkDecorator:
    names = [f"{path.parent.name}-{path.stem}" for _, path in samples]
    return pytest.mark.parametrize(("parse", "path"), samples, ids=names)


@each(ALL)
def test_a_sample_is_read_as_a_person_reads_it(
    parse: Parser, path: Path, snapshot: SnapshotAssertion
) -> None:
    fact = parse(path.read_text())
    shown = asdict(fact) if is_dataclass(fact) and not isinstance(fact, type) else fact
    assert pformat(shown, width=120, compact=True, sort_dicts=False) == snapshot


def differing(
    part: object, whole: object, names: Mapping[str, str], lenient: bool
) -> Iterator[object]:
    """Yield the values of a part that are not those of the whole; None is allowed if lenient."""
    if part == whole or (part is None and lenient):
        return
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        for key, value in part.items():
            yield from differing(value, whole.get(names.get(key, key)), names, lenient)
    elif isinstance(part, tuple) and isinstance(whole, tuple):
        for value, full in zip(part, whole[: len(part)], strict=True):
            yield from differing(value, full, names, lenient)
    elif is_dataclass(part):
        for name in {field.name for field in fields(part)} - {"problems", "digest", "hcas"}:
            yield from differing(getattr(part, name), getattr(whole, name), names, lenient)
    else:
        yield part


@each([(parse, path) for parse, path in ALL if parse in KEEPS_PROBLEMS])
def test_a_cut_sample_never_gives_another_value(parse: Parser, path: Path) -> None:
    """Wherever the text ends, a value is right, or it is absent and a problem says so."""
    text = path.read_text().rstrip(" \n" if parse is gpu.parse else "")
    whole = parse(text)
    names = {f"NIC{at}": name for at, name in enumerate(getattr(whole, "hcas", ()))}
    for end in range(0, len(text), 97 if parse is gpu.parse else 3):
        try:
            fact = parse(text[:end])
        except errors.LogError:
            continue
        assert parse is not gpu.parse, "an XML document that ends early is refused"
        assert not [*differing(fact, whole, names, lenient=bool(getattr(fact, "problems", ())))]


TEXTS = [*((parse, path.read_text()) for parse, path in ALL), *ANSWERS.values()]


@given(st.sampled_from(TEXTS), st.data())
def test_damage_is_read_or_refused_and_never_a_bug(
    text: tuple[Parser, str], data: st.DataObject
) -> None:
    parse, whole = text
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    garbage = data.draw(st.text(max_size=30) | st.sampled_from(("\n", "\x00", ": ", "9" * 20)))
    for rest in (whole[first:], whole[last:]):
        with contextlib.suppress(errors.LogError):
            parse(whole[:first] + garbage + rest)
