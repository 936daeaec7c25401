"""Output for people, and for programs that request JSON. The home of rich.

``terminal`` prints lines and tables that fit it, ``view`` shows a running sweep.
"""

import json
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator import errors, nodeset

if TYPE_CHECKING:  # a program that requested JSON does not wait for rich, nor for what it shows
    from orchestrator.console.terminal import Stream
    from orchestrator.console.view import View
    from orchestrator.model.site import Finding

WORKING_EVERY_S = 10.0
# Control characters, and those that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Escape control characters of a text, which may come from a node or a log."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


class Voice:
    """Writes to the user, or to a program that requested JSON.

    Results go to standard output, progress and errors to standard error; with ``as_json``
    standard output holds one JSON document and nothing else.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._worked = time.monotonic()

    @cached_property
    def _out(self) -> "Stream":
        from orchestrator.console import terminal

        return terminal.output()

    @cached_property
    def _err(self) -> "Stream":
        from orchestrator.console import terminal

        return terminal.progress()

    @property
    def _width(self) -> int:
        """Characters in a line of the terminal; a file or a pipe has no width to fold to."""
        return self._out.width if self._out.is_terminal else sys.maxsize

    def line(self, text: str) -> None:
        """Print one line on standard error."""
        self._err.say(harmless(text))

    def working(self, text: str) -> None:
        """Print the progress of a long step, one line every 10 s."""
        if time.monotonic() - self._worked > WORKING_EVERY_S:
            self._worked = time.monotonic()
            self.line(text)

    def result(self, text: str) -> None:
        """Print lines of a result on standard output; nothing with ``as_json``."""
        if not self.as_json:
            self._out.say(harmless(text))

    def sentences(self, lines: Iterable[str]) -> None:
        """Print lines as results; on a terminal they wrap between words."""
        if self.as_json:
            return
        from orchestrator.console import terminal

        for line in lines:
            self.result("\n".join(terminal.wrap(line, self._width)))

    def clear(self) -> None:
        """Clear the terminal for the next look; elsewhere an empty line parts it from the last."""
        if self._out.is_terminal:
            self._out.clear()
        else:
            self.result("")

    def document(self, document: object) -> None:
        """Print the one JSON document, with ``as_json`` only."""
        if self.as_json:
            sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
            sys.stdout.flush()

    def error(self, error: errors.DlperfError) -> None:
        """Print an error on standard error, and with ``as_json`` as the document too."""
        for line in str(error).splitlines():
            self.line(line)
        self.document({"exit_code": error.exit_code, "errors": error.documents()})

    def finish(
        self,
        document: Mapping[str, object],
        failures: Sequence[errors.DlperfError] | None = None,
        *,
        code: int = 0,
    ) -> int:
        """End a command: print its failures and its JSON document; return the exit code.

        A command that never goes on after an error gives None for ``failures``.
        """
        listed = [it for failure in failures or () for it in failure.documents()]
        code = errors.joined((code, *(failure.exit_code for failure in failures or ())))
        if failures:
            from orchestrator.fleet import folded

            for failure in folded(failures):
                self.line(str(failure))
        more = {} if failures is None else {"errors": listed}
        self.document({"exit_code": code, **document, **more})
        return code

    def gravest(self, failures: Sequence[errors.DlperfError]) -> errors.DlperfError:
        """Return the gravest of these errors, to be raised; print the others."""
        gravest = errors.gravest(failures)
        for failure in failures:
            if failure is not gravest:
                self.line(str(failure))
        return gravest

    def table(
        self,
        title: str,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        spare: Sequence[str] = (),
    ) -> None:
        """Print a table as a result; nothing without rows; empty columns are left out.

        On a narrow terminal the columns of ``spare`` may be hidden, in that order.
        """
        if self.as_json or not rows:
            return
        from orchestrator.console import terminal

        cells = [[harmless(cell) for cell in column] for column in zip(*rows, strict=True)]
        columns = [*zip(head, cells, strict=True)]
        lines, hidden = terminal.render(columns, self._width, spare)
        self.result("\n".join((title, *lines)))
        if hidden:
            self.line(f"columns hidden at this width: {', '.join(hidden)}; --json has everything")

    def listing(
        self, title: str, records: Sequence[Mapping[str, object]], spare: Sequence[str] = ()
    ) -> None:
        """Print records as a table with their keys as its head."""
        head = [*(records[0] if records else ())]
        self.table(title, head, [[*map(str, record.values())] for record in records], spare)

    def findings(self, findings: "Sequence[Finding]") -> None:
        """Print a table of findings, equal ones of several nodes in one row."""
        folded: dict[tuple[str, ...], list[str]] = {}
        for finding in findings:
            key = (finding.severity, finding.code, finding.seen, finding.expected, finding.fix)
            folded.setdefault(key, []).append(finding.node)
        rows = [
            (severity, code, nodeset.fold(nodes), seen, expected, fix)
            for (severity, code, seen, expected, fix), nodes in folded.items()
        ]
        head = ("severity", "code", "node", "seen", "expected", "what to do")
        self.table("Findings", head, rows)

    def view(self, name: str, total: int, done: int) -> "View":
        """Return the live view of a sweep of ``total`` trials, of which ``done`` need no run."""
        from orchestrator.console.view import View

        live = not self.as_json and self._err.is_terminal
        return View(self.line, self._err if live else None, name, total, done)
