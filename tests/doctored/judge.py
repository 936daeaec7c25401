"""What the real command line makes of a doctored log."""

import contextlib
import io
import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from orchestrator import errors
from orchestrator.cli.app import app
from tests.doctored.doctors import DOCTORS, Bad, Patient
from tests.doctored.honest import BASES, Base, contradiction, find_limits, truth

VERDICTS = ("right", "refused", "marked", "undecidable", "SILENT", "ACCUSED")
"""From best to worst. SILENT: a wrong number and no word; ACCUSED: an honest log does not count."""
CLOSE = 0.001


@dataclass(frozen=True)
class Answer:
    """The number of a command, None if it does not count, and the codes that it shows."""

    number: float | None
    codes: frozenset[str]


@dataclass(frozen=True)
class Finding:
    """A doctored log, and how it was judged."""

    base: Base
    doctor: str
    bad: Bad
    verdict: str
    answers: tuple[Answer, ...]

    def __str__(self) -> str:
        seen = "; ".join(f"{it.number} {' '.join(sorted(it.codes))}" for it in self.answers)
        what = f"{self.doctor}: {self.bad.how} ({self.bad.expect})"
        true = truth(self.base, self.base.bytes())
        return f"{self.verdict} {what}: {seen}; honest {true}, {self.base.rule}, {self.base.source}"


def run(*words: str) -> Mapping[str, Any]:
    """The document that a command prints; empty where it refuses by a message."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            app([*words], standalone_mode=False)
        except errors.DlperfError:
            return {}
    document: Mapping[str, Any] = json.loads(out.getvalue())
    return document


def collect(base: Base, folder: Path) -> Iterator[Answer]:
    """What ``collect --logs`` says of each log."""
    options = ("--workload", base.workload, *base.options.split(), "--json")
    document = run("collect", "--logs", str(folder), *options)
    for case in document.get("cases", ()):
        for trial in case["trials"]:
            noted = (*trial["problems"], *trial["marks"], *case["marks"])
            number = trial["throughput"] if trial["state"] == "valid" else None
            yield Answer(number, frozenset(it["code"] for it in noted))
    for lone in document.get("logs", ()):
        yield Answer(lone["throughput"], frozenset(it["code"] for it in lone["problems"]))


def inspect(base: Base, path: Path) -> Answer:
    """What ``inspect log`` says."""
    options = ("--workload", base.workload, *base.options.split())
    document = run("inspect", "log", str(path), *options)
    codes = frozenset(it["code"] for it in document.get("problems", ()))
    return Answer(document.get("throughput"), codes)


def judge(base: Base, name: str, bad: Bad) -> Finding:
    """Write a log where the command line finds it, and judge its answers."""
    text, is_pair = bad.text, bad.expect in ("one log", "two logs")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, bad.path or base.path)
        path.parent.mkdir()
        path.write_bytes(base.bytes() if is_pair else text)
        if is_pair:
            path.with_name(path.name.replace("_1.", "_2.")).write_bytes(text)
        answers = [*collect(base, Path(folder))]
        if base.has_header == "yes" and not is_pair and not bad.path:
            answers.append(inspect(base, path))
    if is_pair:
        verdict = _of_pair(base, bad, answers)
    else:
        verdict = max((_verdict(base, bad, it, text) for it in answers), key=VERDICTS.index)
    return Finding(base, name, bad, verdict, (*answers,))


def _of_pair(base: Base, bad: Bad, answers: list[Answer]) -> str:
    counted = [it for it in answers if it.number is not None and not it.codes - {base.marks}]
    if bad.expect == "one log":
        return "right" if len(counted) < 2 else "SILENT"
    return "right" if len(counted) == 2 or base.rule == "none" else "ACCUSED"


def _verdict(base: Base, bad: Bad, answer: Answer, text: bytes) -> str:
    must_count = bad.expect in ("honest", "keep") and base.rule != "none"
    if answer.number is None:
        return "ACCUSED" if must_count else "refused"
    is_told = bool(answer.codes - {base.marks})
    true = truth(base, text if bad.slower else base.bytes())
    is_right = _is_near(answer.number, true)
    if is_right and bad.expect != "tell":
        return "ACCUSED" if bad.expect == "honest" and is_told else "right"
    if is_told:
        return "marked"
    return "undecidable" if _is_hidden(base, bad, text, answer.number) else "SILENT"


def _is_near(number: float, true: tuple[float, ...]) -> bool:
    return any(abs(number / it - 1) <= CLOSE for it in true)


def _is_hidden(base: Base, bad: Bad, text: bytes, number: float) -> bool:
    """Return True if the log's words give this number and agree as well as in honest logs."""
    seen = zip(contradiction(base, text), find_limits(base.kind), strict=True)
    is_hidden = bool(bad.why) or all(it <= most for it, most in seen)
    can_be = bad.expect == "number" and base.rule != "none"
    return can_be and is_hidden and _is_near(number, truth(base, text))


def cases(every: int = 1) -> Iterator[tuple[Base, str, Bad]]:
    """All doctored logs, or one of so many, always the same: some of some doctors' patients."""
    rng = random.Random(1)
    chance = every**-0.5
    for name, base in product(DOCTORS, BASES):
        if rng.random() < chance:
            ways = DOCTORS[name](Patient(base, name))
            new = (bad for bad in ways if _is_new(base, name, bad))
            yield from ((base, name, bad) for bad in new if rng.random() < chance)


def _is_new(base: Base, name: str, bad: Bad) -> bool:
    """Return False if a doctor had nothing to change."""
    is_same = bad.text == base.bytes() and not bad.path
    return not is_same or name in ("untouched", "the same log again")
