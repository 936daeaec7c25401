"""list: which playbooks, workloads, images, inventories and sweeps there are."""

from orchestrator import errors, workloads
from orchestrator.collecting import settled
from orchestrator.console import Voice
from orchestrator.files import shipped
from orchestrator.state.store import Store, Sweep

KINDS = ("playbooks", "workloads", "images", "inventories", "sweeps")


def list_all(store: Store, kind: str, voice: Voice) -> int:
    """Show everything of a kind; exit code."""
    if kind not in KINDS:
        raise errors.UsageError(
            f"there are no {kind!r} to list", code="NO-KIND", fix=f"one of {', '.join(KINDS)}"
        )
    if kind == "sweeps":
        head: tuple[str, ...] = ("sweep", "cluster", "created", "trials", "valid")
        rows = _sweeps(store)
        rows += [(name, _unread(why), "", "", "") for name, why in store.unreadable().items()]
    elif kind == "workloads":
        head, rows = ("workload", "title"), _workloads()
    else:
        folder: shipped.Kind = "inventory" if kind == "inventories" else _kind(kind)
        head = ("name", "file")
        rows = [(name, str(path)) for name, path in sorted(shipped.names(folder).items())]
    voice.table(kind, head, rows)
    if not rows:
        voice.result(f"no {kind}")
    voice.document([dict(zip(head, row, strict=True)) for row in rows])
    return 0


def _kind(kind: str) -> shipped.Kind:
    return "playbooks" if kind == "playbooks" else "images"


def _workloads() -> list[tuple[str, ...]]:
    installed = ((name, workloads.find(name)) for name in workloads.names())
    return [(name, workload.title if workload else "?") for name, workload in installed]


def _sweeps(store: Store) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for sweep in store.sweeps():
        record = sweep.record()
        count, valid = _counts(sweep)
        rows.append(
            (
                sweep.id,
                record.cluster,
                record.created,
                count,
                valid,
            )
        )
    return rows


def _unread(why: errors.DlperfError) -> str:
    return "other version" if why.code == "STORE-VERSION" else "damaged"


def _counts(sweep: Sweep) -> tuple[str, str]:
    """How many trials are needed, and how many of them are valid."""
    plan = sweep.record().plan
    try:
        histories = sweep.histories()
        rests = settled.not_needed(sweep, plan, histories)
    except errors.DlperfError:
        return str(len(plan.trials)), "damaged"
    valid = sum(history.state == "valid" for history in histories.values())
    return str(len(plan.trials) - len(rests)), str(valid)
