"""provision: are these nodes fit to measure? Prepare their images, ask, and check the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import errors, nodeset, words
from orchestrator.checks import provisioned
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import IMAGES, PLAYBOOKS, DryRun, Inventory, Nodes, needs
from orchestrator.console import Voice
from orchestrator.fleet import Fleet, folded
from orchestrator.inputs import sites, user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Site
from orchestrator.model.text import shape
from orchestrator.planning import images
from orchestrator.planning.images import Action
from orchestrator.provisioning import (
    apply,
    image_files,
    last_checks,
    materials,
    observe,
    recipes,
)
from orchestrator.schedulers import locks, strays
from orchestrator.state.store import Store
from orchestrator.submitting import submit


@dataclass(frozen=True, slots=True)
class _Request:
    """Hold the resolved options; ``whole`` is the inventory before nodes were left out."""

    whole: Cluster
    cluster: Cluster
    inventory: Path
    images: tuple[str, ...]
    relock: bool
    bundle: Path | None
    previous: Site | None


@command("provision", "provision mine --lock", "provision local --dry-run")
def provision(
    face: Face,
    inventory: Inventory,
    dry_run: DryRun = False,
    lock: Annotated[bool, typer.Option("--lock", help="Write the lock file anew.")] = False,
    image: Annotated[
        list[str] | None,
        typer.Option(help="Default: those of the inventory.", autocompletion=IMAGES),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Take images and downloads from here.")
    ] = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Count data sets' files again.")
    ] = False,
    measure: Annotated[bool, typer.Option("--measure", help="Then measure nodes' speed.")] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(help="With --measure: a playbook that packs.", autocompletion=PLAYBOOKS),
    ] = None,
    nodes: Nodes = None,
) -> int:
    needs("--measure", measure, by=by)
    store, voice = face.store, face.voice
    whole, path = user_files.cluster(inventory)
    cluster = sites.narrow(whole, nodes)
    names = _choose_images(cluster, image or [], bundle)
    request = _Request(whole, cluster, path, names, lock, bundle, sites.of(store, whole))
    if dry_run:
        return _show_plan(store, request, voice)
    if submit.is_needed(cluster):
        return submit.run(store, cluster, voice)
    members = [node.name for node in cluster.members]
    counted = words.count(len(members), "node")
    voice.line(f"cluster {cluster.name}: {counted}, {nodeset.fold(members)}")
    with store.lock(whole.name), Fleet.of(cluster) as fleet:
        site, failures = _observe(store, fleet, request)
        done: dict[str, Sequence[Action]] = {}
        if not failures and not provisioned.blocks_images(site.findings):
            site, done, failures = _prepare(store, fleet, request, site, voice, recount=recount)
        if failures or provisioned.blocks_images(site.findings):
            site = replace(site, provisioned=(provisioned.report_unfinished(failures),))
    kept = store.keep_site(whole.name, shape(Site).dump_json(site, indent=1))
    observe.show_site(voice, site)
    apply.show_actions(voice, done)
    document = _build_document(site, done)
    code = _choose_code(site)
    if code == 0 and measure and not failures:
        code, document["measured"] = _measure_speeds(face, inventory, nodes, cluster, by or ())
    code = voice.finish(document, folded(failures), code=code)
    if code == 0:
        voice.result(f"Fit to measure: {counted}. Facts and findings: {kept}")
        voice.result("next: dlperf-orch sweep PLAYBOOK")
    elif any(not isinstance(failure, errors.UnfitError) for failure in failures):
        voice.line(f"Not known whether fit: not every node could be asked. What is known: {kept}")
    else:
        voice.line(f"Not fit to measure; facts and findings: {kept}")
    bad = [finding.node for finding in site.findings if finding.severity == "error"]
    bad += [failure.where.get("node", "") for failure in failures]
    if narrower := sites.leaving_out(cluster, bad):
        voice.line(f"or leave them out: {narrower}")
    return code


def _choose_images(cluster: Cluster, named: Sequence[str], bundle: Path | None) -> tuple[str, ...]:
    contained = cluster.in_containers
    if (named and not contained) or (bundle and (not contained or cluster.from_files)):
        raise errors.UsageError(
            f"no node of {cluster.name} runs containers; there is nowhere to put an image",
            code="NO-DOCKER",
            fix="leave out --image and --bundle, or say runtime: docker in the inventory",
        )
    names = (named or cluster.images) if contained else ()
    return tuple(dict.fromkeys(user_files.image(name)[0].name for name in names))


def _show_plan(store: Store, request: _Request, voice: Voice) -> int:
    """Ask the nodes, and show the actions that would follow; nothing is changed; exit code."""
    if submit.is_needed(request.cluster):
        script, _ = submit.show(store, request.cluster, voice)
        return voice.finish({"scripts": [script]})
    with Fleet.of(request.cluster) as fleet:
        site, failures = _observe(store, fleet, request)
        todo: dict[str, Sequence[Action]] = {}
        if not failures and fleet.engines:
            preparing = materials.begin(
                store, fleet, voice, request.inventory, request.relock, request.bundle
            )
            for name in request.images:
                recipe, _ = recipes.draft(preparing, name, request.previous)
                todo[name] = images.actions(recipe, apply.there(fleet, recipe.tag))
    observe.show_site(voice, site)
    apply.show_actions(voice, todo)
    return voice.finish(_build_document(site, todo), folded(failures), code=_choose_code(site))


def _observe(
    store: Store, fleet: Fleet, request: _Request
) -> tuple[Site, list[errors.DlperfError]]:
    images = [user_files.image(name)[0] for name in request.images]
    if not request.cluster.in_containers and (plain := user_files.plain_image()):
        images = [plain]
    return observe.observe(
        fleet.cluster,
        fleet.ask,
        store,
        request.inventory,
        sites.digest(request.whole),
        request.previous,
        images,
        is_certain=False,
    )


def _prepare(
    store: Store, fleet: Fleet, request: _Request, site: Site, voice: Voice, *, recount: bool
) -> tuple[Site, dict[str, Sequence[Action]], list[errors.DlperfError]]:
    """Prepare images and look into containers; facts and findings before a failure are kept."""
    done: dict[str, Sequence[Action]] = {}
    failures: list[errors.DlperfError] = []
    try:
        with locks.held(fleet, store.root):
            gangs = strays.others(fleet, store.sweep_ids(), str(request.inventory))
            site = replace(site, findings=(*site.findings, *gangs))
            names, state = request.images, store.root.resolve()
            if request.cluster.from_files:
                site, done = image_files.import_images(
                    fleet, state, names, site, voice, anew=request.relock
                )
            elif fleet.engines and names:
                preparing = materials.begin(
                    store, fleet, voice, request.inventory, request.relock, request.bundle
                )
                preparing.credentials = materials.credentials(request.cluster.registry)
                site, done = apply.prepare_images(preparing, names, request.previous, site)
                inside = last_checks.check_containers(fleet, site.images, site.nodes, names)
                site = site.with_provisioned(*inside)
            findings, data = last_checks.check_nodes(fleet, voice, site.nodes, recount=recount)
            site = replace(site.with_provisioned(*findings), data=data)
    except (errors.NodeError, errors.UnfitError) as error:
        failures = [error]
        if isinstance(error, errors.UnfitError):
            unprepared = provisioned.report_unprepared(error)
            site = replace(site, findings=(*site.findings, unprepared))
    return site, done, failures


def _measure_speeds(
    face: Face, inventory: str, nodes: str | None, cluster: Cluster, playbooks: Sequence[str]
) -> tuple[int, dict[str, object]]:
    from orchestrator.sweeping import node_speed  # a tenth of what loading takes

    codes, documents = [0], dict[str, object]()
    for playbook in playbooks or node_speed.list_shipped(cluster):
        more, documents[playbook] = node_speed.measure(
            face.store, inventory, nodes, playbook, face.voice
        )
        codes += more
    return errors.joined(codes), documents


def _build_document(site: Site, actions: Mapping[str, Sequence[Action]]) -> dict[str, object]:
    facts = shape(Site).dump_python(site, mode="json")
    return {"site": facts, "actions": apply.list_actions(actions)}


def _choose_code(site: Site) -> int:
    return 5 if any(finding.severity == "error" for finding in site.findings) else 0
