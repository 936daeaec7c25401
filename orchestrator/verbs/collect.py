"""collect: medians, speedups, tables and reports of a sweep; offline and repeatable."""

from dataclasses import replace

from orchestrator.collecting.show import Out, present
from orchestrator.collecting.sweep import measured
from orchestrator.console import Voice
from orchestrator.state.opened import opened
from orchestrator.state.store import Store


def collect_sweep(store: Store, name: str | None, voice: Voice, out: Out, *, strict: bool) -> int:
    """Measure a sweep again from its logs, write its reports, show the table; exit code.

    Reports on an archive, which is never changed, are written only where ``out`` has a folder.

    Args:
        strict: trials that the state of their nodes marks do not count.
    """
    with opened(store, name) as opening:
        if opening.archive and not out.folder:
            voice.line(f"{opening.archive} stays as it is; --out FOLDER writes reports")
        to = out.folder or (None if opening.archive else opening.sweep.folder)
        found = measured(opening.sweep, strict=strict)
        return present(
            opening.sweep, found, voice, replace(out, folder=to, linked=not opening.archive)
        )
