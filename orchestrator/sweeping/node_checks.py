"""Check just before a sweep starts that its nodes are fit to measure."""

from dataclasses import replace

from orchestrator import errors, nodeset, words
from orchestrator.console import Voice
from orchestrator.fleet import folded
from orchestrator.inputs import user_files
from orchestrator.model.site import Finding, Site
from orchestrator.model.text import shape
from orchestrator.provisioning import observe
from orchestrator.schedulers import Scheduler
from orchestrator.state.store import Store
from orchestrator.sweeping.requested import Requested


def site(store: Store, requested: Requested, scheduler: Scheduler, voice: Voice) -> Site:
    """Observe the site in one round trip; return it with the images that provisioning prepared.

    Raises:
        NodeError: a node does not answer.
        UnfitError: some finding is an error; nothing was started.
    """
    cluster, playbook = requested.cluster, requested.playbook
    observed = _observed(store, requested, scheduler, voice)
    scheduler.preflight(playbook.image.name, requested.recipe.program)
    if not cluster.in_containers:
        store.keep_site(cluster.name, shape(Site).dump_json(observed, indent=1))
        code = requested.recipe.program.code
        scheduler.push(user_files.folder_files(playbook.image_folder), code)
    busy = scheduler.others(
        store.sweep_ids(), str(requested.options.inventory or requested.inventory)
    )
    observed = replace(observed, findings=(*busy, *observed.findings))
    _say_findings(observed, requested.known, voice)
    wrong = [found for found in observed.findings if found.severity == "error"]
    if wrong:
        first = wrong[0]
        unfit = errors.UnfitError(
            f"{words.count(len(wrong), 'error')} found, the first: {first.seen};"
            f" needed {first.expected}",
            code=first.code,
            node=first.node,
            phase="preflight",
            fix=first.fix,
        )
        unfit.others = tuple(finding.node for finding in wrong)
        raise unfit
    return observed


def _say_findings(site: Site, earlier: Site | None, voice: Voice) -> None:
    """Print new findings in a line each, and the codes of earlier warnings in one line."""
    before = {(finding.code, finding.node) for finding in (earlier.findings if earlier else ())}
    old = [
        finding
        for finding in site.findings
        if finding.severity != "error" and (finding.code, finding.node) in before
    ]
    fresh = [finding for finding in site.findings if finding not in old]
    for new in dict.fromkeys(replace(finding, node="") for finding in fresh):
        nodes = nodeset.fold(finding.node for finding in fresh if replace(finding, node="") == new)
        seen = f"{new.severity} {new.code} {nodes}: {new.seen}"
        voice.line(f"{seen}; needed {new.expected}. Fix: {new.fix}.")
    codes = dict.fromkeys(finding.code for finding in old)
    unchanged = [
        f"{code} {nodeset.fold(finding.node for finding in old if finding.code == code)}"
        for code in codes
    ]
    if unchanged:
        voice.line(f"warnings as before: {', '.join(unchanged)}")


def _observed(store: Store, requested: Requested, scheduler: Scheduler, voice: Voice) -> Site:
    image = requested.playbook.image
    asking = observe.Asking(
        store, requested.inventory, requested.digest, None, requested.known, (image,)
    )
    if not requested.cluster.in_containers:
        asking = replace(asking, image=image, images=())
    site, failures = observe.observe(requested.cluster, scheduler.ask, asking)
    if failed := folded(failures):
        gravest = voice.gravest(failed)
        gravest.others = tuple(failure.where.get("node", "") for failure in failures)
        raise gravest
    before = requested.known.provisioned if requested.known else ()
    return replace(site, findings=(*site.findings, *_provisioned(requested)), provisioned=before)


def _provisioned(requested: Requested) -> tuple[Finding, ...]:
    """Return the last provisioning's findings about what a sweep does not check again."""
    names = {node.name for node in requested.cluster.members}
    findings = requested.known.provisioned if requested.known else ()
    return tuple(
        replace(finding, fix=f"{finding.fix}; then provision again")
        for finding in findings
        if finding.node in names or finding.node == "all"
    )
