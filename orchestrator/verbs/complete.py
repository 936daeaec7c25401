"""Names for shell completion, looked up without messages and without writing anything."""

import contextlib
from collections.abc import Iterator

from orchestrator import errors
from orchestrator.state.store import Store


def sweep_names(store: Store) -> list[str]:
    """Sweeps of the state folder, by folder name; no record is read for a TAB."""
    return sorted(path.parent.name for path in store.root.glob("sweeps/*/sweep.json"))


def trial_names(store: Store, sweep: str | None) -> list[tuple[str, str]]:
    """Return case and name of each trial of a sweep; without its name of the newest."""
    with contextlib.suppress(errors.DlperfError, OSError):
        trials = store.sweep(sweep or None).record().plan.trials
        return [(it.name_of_case or it.case.placement, it.name) for it in trials]
    return []


def case_names(playbook: str | None, typed: str) -> list[str]:
    """Cases of a playbook, each after the comma-separated names typed so far."""
    before = typed[: typed.rfind(",") + 1]
    with contextlib.suppress(errors.DlperfError, OSError):
        return [before + name for name in dict.fromkeys(_name_cases(playbook or ""))]
    return []


def _name_cases(name: str) -> Iterator[str]:
    from orchestrator.inputs import user_files
    from orchestrator.planning import matrix

    playbook = user_files.playbook(name)
    for case in matrix.cases(playbook.experiment):
        yield playbook.workload.case_name(case) if playbook.workload.case_name else case.placement
