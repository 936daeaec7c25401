"""Schedulers give nodes and run gangs on them; nothing outside this room knows how.

``scheduler`` says what each does, and does what all share: it runs a ``gang`` on a fleet.
``fanout`` gives nodes over SSH and on this machine, kept from other controllers by ``locks``;
``slurm`` gives those of a job, whose steps run ``slurm_tasks``. To add one, write a module here
with a subclass of ``Scheduler``, and choose it in ``choice`` by what the inventory says.
"""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator import errors

Watch = Callable[[bytes], None]
"""Called with every new piece of the raw log that is measured."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A task as its node shows it now.

    Args:
        phase: absent, waiting, running, ended or lost.
        log_bytes: the size of its raw log.
        refusal: why it never came into its container; None unless it is lost by that.
    """

    phase: str
    log_bytes: int
    refusal: errors.DlperfError | None = None
