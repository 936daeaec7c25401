"""explain: how the number of one case came to be, on one page."""

from pathlib import Path

from orchestrator.collecting import explained_page, explanation
from orchestrator.collecting.explanation import Explanation
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
        return _show(explanation.explained(opening.sweep, case), voice)


def explain_logs(folder: Path, case: str, reading: Reading, voice: Voice) -> int:
    """The same of a folder of logs that belong to no sweep.

    Raises:
        UsageError: as of ``explain``; NO-LOGS, NO-WORKLOAD, NO-RULE.
    """
    return _show(explanation.of_logs(folder, reading, case), voice)


def _show(found: Explanation, voice: Voice) -> int:
    for line in explained_page.page(found):
        voice.result(line)
    code = 0 if found.result.statistics else 3
    voice.document({"exit_code": code, **explained_page.document(found)})
    return code
