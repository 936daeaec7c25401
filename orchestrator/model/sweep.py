"""What a sweep is of: its record, which is written before anything of it starts."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import JSON
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A sweep as its sweep.json has it.

    Args:
        cluster: its name.
        identity: sha256 of ``inputs``.
        inputs: what must stay the same for two runs to be one sweep, as plain data.
        inventory: what the sweep was last run on.
        plan: every trial requested so far.
        site: as it was when the sweep was new.
        id, created: the store gives them to a new sweep.
        commands: the command lines of the sweep so far, in order; empty in those of old versions.
        written_by: the version of this tool that wrote it; the store gives it.
    """

    experiment: str
    cluster: str
    identity: str
    inputs: Mapping[str, JSON]
    inventory: Cluster
    plan: Plan
    site: Site
    id: str = ""
    created: str = ""
    commands: tuple[str, ...] = ()
    written_by: str = ""
