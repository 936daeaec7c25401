"""results.json compared with what follows from the logs, and then whatever is written beside it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.verifying import (
    documents,
    exports,
    figures,
    marks,
    nodes,
    pages,
    shown,
    tables,
    texts,
)
from orchestrator.verifying.cases import CaseTrial, DerivedCase
from orchestrator.verifying.differences import Findings, at, codes, items, number, text
from orchestrator.verifying.marks import Mark
from orchestrator.verifying.pages import Page
from orchestrator.verifying.records import Folder

RESULTS, MARKDOWN, HTML, FIGURES = "results.json", "report.md", "report.html", "figures"
LATER = frozenset({"SAME-EVIDENCE", "PROVENANCE"})
"""Reasons that only a comparison with other files gives."""
NOT_DERIVED = {
    "published values": "they come with the program; the differences from them are derived",
    "TFLOP/s": "operations of a step are counted from the model",
    "facts of nodes": "nodes were asked when they were provisioned; sweep.json has their answers",
    "shapes of figures": "their sha256 is checked, and the tables and texts beside them",
    "words": "titles, units, names of cases, and what was seen of a trial that does not count",
}


def left_out(place: Folder) -> dict[str, list[str]]:
    """By trial, the codes by which results.json leaves it out; empty without reports."""
    document = place.document(RESULTS) if (place.path / RESULTS).exists() else None
    trials = [it for case in items(at(document, "cases")) for it in items(case.get("trials"))]
    trials += items(at(document, "canary", "trials"))
    return {text(trial.get("trial")): codes(trial.get("problems")) for trial in trials}


def check(
    place: Folder,
    record: Mapping[str, object],
    cases: Sequence[DerivedCase],
    canary: Sequence[CaseTrial],
) -> None:
    """Compare results.json, results.csv, the pages and DLPerf's result files with the cases."""
    if not (place.path / RESULTS).exists():
        place.findings.leave("reports", "there are none; `dlperf-orch collect` writes them")
        return
    written = place.document(RESULTS)
    if written is None:
        return
    for what, why in NOT_DERIVED.items():
        place.findings.leave(what, why)
    derived = _document(record)
    derived["cases"] = [documents.of_case(case) for case in cases]
    speeds = nodes.compared(cases)
    derived["node_speeds"] = documents.of_nodes(speeds, written.get("node_speeds"))
    if canary:
        derived["canary"], drifted = documents.of_canary(canary, cases)
        own = at(written, "canary", "marks")
        marks.compare(place.findings, RESULTS, "canary.marks", own, drifted)
    place.findings.same(RESULTS, "", written, derived)
    marks.compare(place.findings, RESULTS, "marks", written.get("marks"), speeds.marks)
    for count, (case, derived_case) in enumerate(
        zip(items(written.get("cases")), cases, strict=False)
    ):
        _check_case(place.findings, f"cases[{count}]", case, derived_case)
    _check_beside(place, {**written, "headline": _headline(record)}, derived, cases)


def _check_beside(
    place: Folder,
    written: Mapping[str, object],
    derived: Mapping[str, object],
    cases: Sequence[DerivedCase],
) -> None:
    """Compare the verdict, and every file beside results.json."""
    whole = {**written, **derived, "cases": _joined(written.get("cases"), derived["cases"])}
    canary = {**_object(written.get("canary")), **_object(derived.get("canary"))}
    canary["trials"] = _joined(at(written, "canary", "trials"), canary.get("trials"))
    report = shown.report(
        items(whole["cases"]), cases, items(canary["trials"]), items(derived["node_speeds"])
    )
    whole |= {"cases": report.cases, "canary": canary}
    known = texts.verdict(whole, report.cases, report.canary)
    whole["verdict"] = texts.document(known, report.cases, report.canary)
    place.findings.same(RESULTS, "verdict", written.get("verdict"), whole["verdict"])
    exports.check(place, whole, cases)
    for name in (MARKDOWN, HTML):
        if (page := _page(place, name)) is not None:
            tables.check(place.findings, name, page.rows, report)
            texts.check(place.findings, name, page, whole, known)
            if name == HTML:
                texts.check_proofs(place, name, page, [*shown.trials(report.cases), *report.canary])
    for path in (HTML, *sorted(path.name for path in (place.path / FIGURES).glob("*.svg"))):
        name = path if path == HTML else f"{FIGURES}/{path}"
        if (page := _page(place, name)) is not None:
            figures.check_points(place.findings, name, page.titles, report)


def _page(place: Folder, name: str) -> Page | None:
    try:
        content = (place.path / name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        place.findings.differs(name, "", f"cannot be read: {error}", "a page")
        return None
    return pages.of_markdown(content) if name == MARKDOWN else pages.of_html(content)


def _joined(written: object, derived: object) -> list[dict[str, object]]:
    """Objects of a list with what is derived of each in the place of what is written."""
    said = items(written)
    return [
        {
            **(said[count] if count < len(said) else {}),
            **own,
            **(
                {"trials": _joined(at(said, count, "trials"), own["trials"])}
                if "trials" in own
                else {}
            ),
        }
        for count, own in enumerate(items(derived))
    ]


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _document(record: Mapping[str, object]) -> dict[str, object]:
    plan = record.get("plan")
    keys = ("experiment", "workload", "cluster", "image", "image_digest")
    method = at(plan, "method")
    own = method if isinstance(method, Mapping) else {}
    found: dict[str, object] = {"source": record.get("id"), **{key: at(plan, key) for key in keys}}
    found |= {"window": own.get("window")}
    found |= {"method": {key: it for key, it in own.items() if key != "repeats"}, "logs": []}
    return found | _facts(record) | ({"rule": own["rule"]} if own.get("rule") else {})


def _headline(record: Mapping[str, object]) -> list[str]:
    """What the first lines of a page must say of a sweep."""
    keys = ("id", "created", "cluster", "experiment", "written_by")
    image = [text(at(record, "plan", key)) for key in ("image", "image_digest")]
    commands = record.get("commands")
    said = [*map(text, map(record.get, keys)), ", ".join(filter(None, image))]
    said[1] = said[1].partition(".")[0].replace("T", " ")  # to the second, as people write it
    return [*filter(None, said), *(commands if isinstance(commands, list) else [])]


def _facts(record: Mapping[str, object]) -> dict[str, object]:
    """What nodes told of themselves when they were provisioned, put together."""
    nodes = at(record, "site", "nodes")
    known = [*nodes.values()] if isinstance(nodes, Mapping) else []
    told = [at(facts, "gpu", "models") for facts in known]
    boots = [text(at(facts, "host", "boot_id")) for facts in known]
    models = {str(model) for some in told if isinstance(some, list) for model in some}
    return {"gpus": sorted(models), "shared_machine": len({*boots}) < len(boots)}


def _check_case(
    findings: Findings, where: str, written: Mapping[str, object], case: DerivedCase
) -> None:
    """Compare marks of a case and of its trials, and the problems of trials that do not count."""
    trials = items(written.get("trials"))
    derived = [*case.marks, *_counted(trials)]
    marks.compare(findings, RESULTS, f"{where}.marks", written.get("marks"), derived)
    for count, row in enumerate(items(written.get("published"))):
        value = number(row.get("throughput"))
        far = case.median / value - 1 if value and case.median is not None else None
        findings.same(RESULTS, f"{where}.published[{count}].difference", row.get("difference"), far)
    for count, (trial, own) in enumerate(zip(trials, case.trials, strict=False)):
        place = f"{where}.trials[{count}]"
        if own.state == "valid":
            marks.compare(findings, RESULTS, f"{place}.marks", trial.get("marks"), own.marks)
            continue
        _check_problems(findings, place, trial, own)


def _counted(trials: Sequence[Mapping[str, object]]) -> Iterator[Mark]:
    """How many valid trials have each mark."""
    valid = [trial for trial in trials if trial.get("state") == "valid"]
    times = Counter(code for trial in valid for code in {*codes(trial.get("marks"))})
    for code in times.keys() & marks.LOOKED_FOR:
        yield Mark(code, (f"{times[code]} trial",))


def _check_problems(
    findings: Findings, place: str, written: Mapping[str, object], own: CaseTrial
) -> None:
    """Every reason must be recorded or derived; a number that is out is still one of its log."""
    known = {*codes(own.outcome.get("problems")), *(code for code, _ in own.derived.reasons)}
    known |= {*marks.codes(own.machines.marks)} | ({"MISSING"} if own.state == "planned" else set())
    for code in codes(written.get("problems")):
        if (
            code not in known
            and not own.has_changed
            and not (code in LATER and own.derived.reasons)
        ):
            where = f"{place}.problems"
            findings.differs(RESULTS, where, code, f"no {code} by its outcome and its log")
    throughput = number(written.get("throughput"))
    both = throughput is not None and own.derived.throughput is not None
    if both and own.state == "invalid" and "MALFORMED" not in codes(written.get("problems")):
        findings.same(RESULTS, f"{place}.throughput", throughput, own.derived.throughput)
