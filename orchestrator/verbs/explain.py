"""explain: how the number of one case came to be, on one page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.collecting import explained_log, explained_page, explanation
from orchestrator.collecting.explanation import Explanation, Source
from orchestrator.collecting.folder import escape_path, report_on
from orchestrator.collecting.logs import Reading
from orchestrator.console import Voice
from orchestrator.model.facts import JSON
from orchestrator.state.opened import opened
from orchestrator.state.store import Store


def explain(store: Store, case: str, name: str | None, voice: Voice) -> int:
    """Show a case's trials, log lines, formula, marks, nodes, image and command; exit code.

    Raises:
        UsageError: NO-CASE, CASE-AMBIGUOUS, or no such sweep.
    """
    with opened(store, name) as opening:
        return _show(explanation.explained(opening.sweep, case), voice)


def explain_logs(folder: Path, case: str, reading: Reading, voice: Voice) -> int:
    """Explain a case in a folder of logs that belong to no sweep, or one log without a case.

    Raises:
        UsageError: as of ``explain``; NO-LOGS, NO-WORKLOAD, NO-RULE.
    """
    report = report_on(folder, reading)
    above = folder if folder.is_dir() else folder.parent
    source = Source(above, reading.resolved(), reading.window, None)  # its reader has the rule
    case = escape_path(case)
    lone = explained_log.find_log(report, case)
    if lone is None:
        return _show(explanation.of_logs(report, source, case), voice)
    found = explained_log.explained(report, lone, source)
    return _print(voice, explained_log.page(found), lone.throughput, explained_log.document(found))


def _show(found: Explanation, voice: Voice) -> int:
    statistics = found.result.statistics
    number = statistics.median if statistics else None
    return _print(voice, explained_page.page(found), number, explained_page.document(found))


def _print(
    voice: Voice, page: Sequence[str], number: float | None, document: Mapping[str, JSON]
) -> int:
    voice.sentences(page)
    return voice.finish(document, code=3 if number is None else 0)
