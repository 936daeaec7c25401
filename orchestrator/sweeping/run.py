"""Run a sweep from its request to its report."""

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.model.report import Report
from orchestrator.state.sweep import Sweep
from orchestrator.sweeping import loop, resume
from orchestrator.sweeping.campaign import HeldNodes
from orchestrator.sweeping.requested import Requested


def run(held: HeldNodes, request: Requested) -> tuple[Sweep, Report]:
    """Run every requested trial that has no valid outcome yet, then measure and write the report.

    Raises:
        LeftoverError: tasks may still run on nodes; after other errors none does.
    """
    request.refuse_unprepared()
    with held.open([request]) as (campaign,):
        loop.run_trials(campaign)
        resume.note_end(campaign.sweep)
        found = measured(campaign.sweep, strict=request.options.strict)
        report_files.write(campaign.sweep, found)
        return campaign.sweep, found
