"""What a report says first, and what it says of trials and marks, in lists and beside logs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from orchestrator.verifying import heads
from orchestrator.verifying.columns import Document
from orchestrator.verifying.differences import Findings, at, items, text
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.pages import Page
from orchestrator.verifying.records import Folder

NAMED = 3
"""Trials that are named beside a code; of others their number is told."""
_COUNTS = ("trials_valid", "trials", "cases_with_result", "cases")
_NUMBER = re.compile(r"\d+")
_DIGEST = re.compile(r"sha256:\w+")
_PROOF = re.compile(r"(?s)(\d+): (.*)")


@dataclass(frozen=True, slots=True)
class Known:
    """All that is known by one code: what does not count, or what is marked."""

    code: str
    counts: bool
    where: list[str]
    message: str


def verdict(
    written: Document, cases: Sequence[Document], canary: Sequence[Document]
) -> list[Known]:
    """Everything that a reader must know, the gravest first."""
    trials = [it for case in cases for it in items(case.get("trials"))] + [*canary]
    out = [
        (text(trial.get("trial")), problem)
        for trial in trials
        if trial.get("state") not in ("valid", "not-needed")
        for problem in items(trial.get("problems"))
    ]
    place = text(written.get("cluster")) or text(written.get("source"))
    marked = [(place, mark) for mark in items(written.get("marks"))]
    marked += [("canary", mark) for mark in items(at(written, "canary", "marks"))]
    for case in cases:
        marked += _of_case(case)
    found = [*_by_code(out, counts=False), *_by_code(marked, counts=True)]
    return sorted(found, key=lambda it: (it.counts, it.where != [place], -len(it.where)))


def _of_case(case: Document) -> Iterator[tuple[str, Document]]:
    """Marks of trials that count, then those of the case that none of them has."""
    seen = set()
    for trial in items(case.get("trials")):
        for mark in items(trial.get("marks")) if trial.get("state") == "valid" else []:
            seen.add(mark.get("code"))
            yield text(trial.get("trial")), mark
    labels = case.get("labels")
    label = str(labels[0]) if isinstance(labels, list) else ""
    for mark in items(case.get("marks")):
        if mark.get("code") not in seen:
            yield label, mark


def _by_code(seen: Sequence[tuple[str, Document]], *, counts: bool) -> Iterator[Known]:
    for code in dict.fromkeys(text(problem.get("code")) for _, problem in seen):
        own = [(where, problem) for where, problem in seen if text(problem.get("code")) == code]
        names = list(dict.fromkeys(where for where, _ in own))
        yield Known(code, counts, names, text(own[0][1].get("message")))


def document(
    known: Sequence[Known], cases: Sequence[Document], canary: Sequence[Document]
) -> dict[str, object]:
    """What results.json must say of the verdict."""
    trials = [it for case in cases for it in items(case.get("trials"))] + [*canary]
    counted = [trial for trial in trials if trial.get("state") != "not-needed"]
    valid = sum(trial.get("state") == "valid" for trial in counted)
    level = "marked" if known else "complete"
    if valid < len(counted):
        level = "incomplete" if valid else "empty"
    return {
        "level": level if counted else "empty",
        "trials_valid": valid,
        "trials": len(counted),
        "cases_with_result": sum(case.get("median") is not None for case in cases),
        "cases": len(cases),
        "known": [{"code": it.code, "counts": it.counts, "where": it.where} for it in known],
    }


def check(
    findings: Findings, file: str, page: Page, written: Document, known: Sequence[Known]
) -> None:
    """Compare the first sentence of a page, and all lists of what is out and what is marked.

    Args:
        written: with the derived ``verdict``, ``cases`` and ``canary``; ``headline`` has what a
            page must say of where it all comes from.
    """
    said = written["verdict"]
    numbers = {str(at(said, key)) for key in _COUNTS}
    level = text(at(said, "level")).replace("empty", "no result").upper()
    findings.numbers += len(numbers)
    if {*_NUMBER.findall(page.first)} != numbers or not page.first.startswith(level):
        derived = f"{level}: {', '.join(sorted(numbers))}"
        findings.differs(file, "verdict", page.first, derived)
    first = _of(page, "know" if file.endswith(".html") else "")
    lists = {"what to know": (first[: len(known)], [_first(it) for it in known])}
    trials = [it for case in items(written.get("cases")) for it in items(case.get("trials"))]
    canary = items(at(written, "canary", "trials"))
    if file.endswith(".html"):
        lists["trials"] = (_of(page, "trials"), [*_beside_proofs(written)])
        lists["canary"] = (_of(page, "canary"), [it[1:] for it in _reasons(canary)])
    else:
        lists["not counted"] = (_of(page, "not counted"), [*_out([*trials, *canary])])
        lists["marks"] = (_of(page, "marks"), [*_marked(written)])
    for name, (listed, expected) in lists.items():
        _check_list(findings, (file, name), listed, expected)
    _check_headline(findings, file, page, (written, first[len(known) :]))


def _check_headline(
    findings: Findings, file: str, page: Page, said: tuple[Document, Sequence[str]]
) -> None:
    """Where it all comes from, in the first lines; and the image, wherever it is named."""
    written, rest = said
    facts = _of(page, "facts") or rest
    for fact in written["headline"] if isinstance(written["headline"], list) else []:
        findings.numbers += 1
        if not any(fact in line for line in facts):
            findings.differs(file, "what was measured", "; ".join(facts), fact)
    image = text(written.get("image_digest"))
    for digest in (digest for _, item in page.items for digest in _DIGEST.findall(item)):
        if digest != image:
            findings.differs(file, "image", digest, image)


def _of(page: Page, section: str) -> list[str]:
    return [item for of, item in page.items if of == section]


def _first(known: Known) -> tuple[str, ...]:
    more = (str(len(known.where) - NAMED),) if len(known.where) > NAMED else ()
    first, *others = known.where
    return known.code, first, known.message, *others[: NAMED - 1], *more


def _reasons(trials: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for trial in trials:
        for problem in [*items(trial.get("problems")), *items(trial.get("marks"))]:
            yield text(trial.get("trial")), text(problem.get("code")), text(problem.get("message"))


def _beside_proofs(written: Document) -> Iterator[tuple[str, ...]]:
    """Marks of the whole, then of each case and of its trials."""
    marked: list[Document] = [{"marks": written.get("marks")}]
    for case in items(written.get("cases")):
        marked += [{"marks": case.get("marks")}, *items(case.get("trials"))]
    yield from (found[1:] for found in _reasons(marked))


def _out(trials: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    """What does not count, and why."""
    rest = ("valid", "planned", "not-needed")
    yield from _reasons([trial for trial in trials if trial.get("state") not in rest])


def _marked(written: Document) -> Iterator[tuple[str, ...]]:
    """Marks on what counts: of the whole, of trials, and of cases."""
    for mark in items(written.get("marks")):
        yield text(written.get("cluster")), text(mark.get("code")), text(mark.get("message"))
    for case in items(written.get("cases")):
        trials = items(case.get("trials"))
        yield from _reasons([trial for trial in trials if trial.get("state") == "valid"])
        labels = case.get("labels")
        token = str(labels[-1]) if isinstance(labels, list) else ""
        for mark in items(case.get("marks")):
            yield token, text(mark.get("code")), text(mark.get("message"))


def _check_list(
    findings: Findings,
    where: tuple[str, str],
    listed: Sequence[str],
    expected: Sequence[tuple[str, ...]],
) -> None:
    """Each line must say its parts, in their order, and no other number."""
    if len(listed) != len(expected):
        findings.differs(*where, f"{len(listed)} lines", f"{len(expected)} lines")
        return
    for line, parts in zip(listed, expected, strict=True):
        facts = tuple(part for part in parts if part.isprintable())
        findings.numbers += 1
        said = Mark("", facts).is_said_by(heads.without_meanings(line))
        if len(facts) == len(parts) and not said:
            findings.differs(*where, line, ": ".join(parts))


def check_proofs(place: Folder, file: str, page: Page, trials: Sequence[Document]) -> None:
    """Compare the sha256 and the lines of each log that a page shows with the log."""
    for trial in trials:
        log, digest = text(trial.get("log")), text(trial.get("sha256"))
        own = [(above, line) for above, line in page.proofs if log and above.startswith(log)]
        said = {above.removeprefix(log) for above, _ in own}
        shown = {int(it[1]): it[2] for _, line in own if (it := _PROOF.fullmatch(line))}
        numbers = {int(it) for words in said for it in _NUMBER.findall(words.rpartition("sha")[0])}
        if log and (not any(words.endswith(digest) for words in said) or numbers != {*shown}):
            derived = f"lines {', '.join(map(str, shown))}, sha256 {digest}"
            place.findings.differs(file, log, "; ".join(said), derived)
        for number, line in _lines(place.path / log, shown):
            place.findings.numbers += 1
            if not _plain(line).startswith(_plain(shown[number])):
                where = f"line {number} of {log}"
                place.findings.differs(file, where, shown[number], line.rstrip())


def _lines(path: Path, numbers: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Those of a log that a page shows."""
    last = max(numbers, default=0)
    try:
        with open(path, "rb") as file:
            for count, line in enumerate(islice(file, last), 1):
                if count in numbers:
                    yield count, line.decode("utf-8", "replace")
    except OSError:
        return


def _plain(line: str) -> str:
    """Letters and digits, since pages show others in ways of their own."""
    return "".join(letter for letter in line if letter.isascii() and letter.isalnum())
