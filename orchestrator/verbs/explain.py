"""explain: how the number of one case came to be, on one page."""

from pathlib import Path

from orchestrator.collecting import explanation
from orchestrator.collecting.explanation import Explanation
from orchestrator.collecting.folder import escape_path, report_on
from orchestrator.collecting.logs import Reading
from orchestrator.console import Voice
from orchestrator.state.opened import opened
from orchestrator.state.store import Store


def explain(store: Store, case: str, name: str | None, voice: Voice) -> int:
    """Show a case's trials, log lines, formula, marks, nodes, image and command; exit code.

    Raises:
        UsageError: NO-CASE, CASE-AMBIGUOUS, or no such sweep.
    """
    with opened(store, name) as opening:
        return _show(explanation.explain_sweep(opening.sweep, case), voice)


def explain_logs(folder: Path, case: str, reading: Reading, voice: Voice) -> int:
    """Explain a case in a folder of logs that belong to no sweep, or one log without a case.

    Raises:
        UsageError: as of ``explain``; NO-LOGS, NO-WORKLOAD, NO-RULE.
    """
    above = folder if folder.is_dir() else folder.parent
    report = report_on(folder, reading)
    return _show(explanation.explain_logs(report, above, escape_path(case)), voice)


def _show(found: Explanation, voice: Voice) -> int:
    voice.sentences(found.page)
    return voice.finish(found.document, code=3 if found.number is None else 0)
