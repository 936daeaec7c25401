"""provision: are these nodes fit to measure? Prepare their images, ask, and check the answers."""

from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import errors, nodeset, words
from orchestrator.checks import provisioned
from orchestrator.console import Voice
from orchestrator.fleet import Fleet, Pool, folded
from orchestrator.inputs import sites, user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Site
from orchestrator.model.text import shape
from orchestrator.planning import images
from orchestrator.planning.images import Action
from orchestrator.provisioning import (
    apply,
    between_nodes,
    image_files,
    in_containers,
    materials,
    observe,
    recipes,
    secrets,
    shown,
)
from orchestrator.schedulers import locks, strays
from orchestrator.state.store import Store
from orchestrator.submitting import submit
from orchestrator.sweeping.requested import Caller


@dataclass(frozen=True, slots=True)
class ProvisionOptions:
    """Options of ``provision``.

    Args:
        images: to prepare, instead of those of the inventory.
        nodes: names and globs of the nodes to use; None for all.
        bundle: a folder to take images and downloads from.
        lock: resolve base tags and hash downloads anew, and write both into the lock.
        recount: count the files of data sets anew.
        measure: playbooks to measure the speed of nodes by, at last; empty for those that are
            shipped, None for not at all.
    """

    inventory: str
    images: tuple[str, ...]
    nodes: str | None
    bundle: Path | None
    lock: bool
    recount: bool
    measure: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class _Request:
    """The options resolved; ``whole`` is the inventory before nodes were left out."""

    whole: Cluster
    cluster: Cluster
    inventory: Path
    images: tuple[str, ...]
    previous: Site | None


def dry_run(store: Store, options: ProvisionOptions, voice: Voice) -> int:
    """Ask the nodes, and show the actions that would follow; nothing is changed; exit code."""
    request = _resolve(store, options)
    if submit.is_needed(request.cluster):
        script, _ = submit.show(store, request.cluster, voice)
        return voice.finish({"scripts": [script]})
    with Fleet.of(request.cluster) as fleet:
        site, failures = _observe(store, fleet, request)
        todo: dict[str, Sequence[Action]] = {}
        if not failures and fleet.engines:
            preparing = materials.begin(
                store, fleet, voice, request.inventory, options.lock, options.bundle
            )
            for name in request.images:
                recipe, _ = recipes.recipe(preparing, name, request.previous)
                todo[name] = images.actions(recipe, apply.there(fleet, recipe.tag))
    shown.show_site(voice, site)
    for line in shown.list_questions(store, request.cluster):
        voice.result(line)
    shown.show_actions(voice, todo)
    return voice.finish(_build_document(site, todo), folded(failures), code=_choose_code(site))


def provision(store: Store, options: ProvisionOptions, caller: Caller) -> int:
    """Ask every node, prepare images, check nodes and containers, write the site; exit code."""
    voice, request = caller.voice, _resolve(store, options)
    if submit.is_needed(request.cluster):
        return submit.run(store, request.cluster, voice)
    names = [node.name for node in request.cluster.members]
    nodes = words.count(len(names), "node")
    voice.line(f"cluster {request.cluster.name}: {nodes}, {nodeset.fold(names)}")
    with store.lock(request.whole.name), Fleet.of(request.cluster) as fleet:
        site, failures = _observe(store, fleet, request)
        done: dict[str, Sequence[Action]] = {}
        if not failures and not provisioned.blocks_images(site.findings):
            try:
                with locks.held(fleet, store.root):
                    gangs = strays.others(fleet, store.sweep_ids(), options.inventory)
                    site = replace(site, findings=(*site.findings, *gangs))
                    site, done = _prepare_images(store, fleet, options, request, site, voice)
                    recount = options.recount
                    site, failures = _look_inside(fleet, request, site, voice, recount=recount)
            except (errors.NodeError, errors.UnfitError) as error:
                failures = [error]  # facts and findings so far are shown and kept all the same
                if isinstance(error, errors.UnfitError):
                    site = replace(
                        site, findings=(*site.findings, provisioned.report_unprepared(error))
                    )
        if failures or provisioned.blocks_images(site.findings):
            site = replace(site, provisioned=(provisioned.report_unfinished(failures),))
    kept = store.keep_site(request.whole.name, shape(Site).dump_json(site, indent=1))
    shown.show_site(voice, site)
    shown.show_actions(voice, done)
    document = _build_document(site, done)
    code = _choose_code(site)
    if code == 0 and options.measure is not None and not failures:
        code, document["measured"] = _measure_speeds(
            store, options, request.cluster, options.measure, caller
        )
    code = voice.finish(document, folded(failures), code=code)
    if code == 0:
        voice.result(f"Fit to measure: {nodes}. Facts and findings: {kept}")
        voice.result("next: dlperf-orch sweep PLAYBOOK")
    elif any(not isinstance(failure, errors.UnfitError) for failure in failures):
        voice.line(f"Not known whether fit: not every node could be asked. What is known: {kept}")
    else:
        voice.line(f"Not fit to measure; facts and findings: {kept}")
    bad = [finding.node for finding in site.findings if finding.severity == "error"]
    bad += [failure.where.get("node", "") for failure in failures]
    if command := sites.leaving_out(request.cluster, bad):
        voice.line(f"or leave them out: {command}")
    return code


def _resolve(store: Store, options: ProvisionOptions) -> _Request:
    whole, path = user_files.cluster(options.inventory)
    cluster = sites.narrow(whole, options.nodes)
    contained, engines = cluster.in_containers, cluster.in_containers and not cluster.from_files
    names = (options.images or cluster.images) if contained else ()
    if (options.images and not contained) or (options.bundle and not engines):
        raise errors.UsageError(
            f"no node of {whole.name} runs containers; there is nowhere to put an image",
            code="NO-DOCKER",
            fix="leave out --image and --bundle, or say runtime: docker in the inventory",
        )
    images = tuple(dict.fromkeys(user_files.image(name)[0].name for name in names))
    return _Request(whole, cluster, path, images, sites.of(store, whole))


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


def _prepare_images(
    store: Store,
    fleet: Fleet,
    options: ProvisionOptions,
    request: _Request,
    site: Site,
    voice: Voice,
) -> tuple[Site, dict[str, Sequence[Action]]]:
    names, relock = request.images, options.lock
    if request.cluster.from_files:
        state = store.root.resolve()
        return image_files.import_images(fleet, state, names, site, voice, anew=relock)
    if not fleet.engines or not names:
        return site, {}
    preparing = materials.begin(store, fleet, voice, request.inventory, relock, options.bundle)
    preparing.credentials = secrets.credentials(request.cluster.registry)
    return apply.prepare_images(preparing, names, request.previous, site)


def _look_inside(
    fleet: Fleet, request: _Request, site: Site, voice: Voice, *, recount: bool
) -> tuple[Site, list[errors.DlperfError]]:
    """Add what containers see, and meanwhile what holds between nodes, to the site.

    The latter is missing if a node stopped answering, whose error is returned too.
    """
    pool = Pool(1)
    facts = site.nodes
    looking = pool.submit(lambda: between_nodes.check_nodes(fleet, voice, facts, recount=recount))
    pool.close()
    names = request.images if fleet.engines and not request.cluster.from_files else ()
    try:
        inside = in_containers.findings(fleet, site.images, site.nodes, names) if names else []
    except errors.DlperfError:
        futures.wait((looking,))  # what still counts files would disturb what is measured next
        raise
    site = site.with_provisioned(*inside)
    try:
        findings, data = looking.result()
    except errors.NodeError as error:
        return site, [error]
    return replace(site.with_provisioned(*findings), data=data), []


def _measure_speeds(
    store: Store,
    options: ProvisionOptions,
    cluster: Cluster,
    playbooks: Sequence[str],
    caller: Caller,
) -> tuple[int, dict[str, object]]:
    from orchestrator.sweeping import node_speed  # a tenth of what loading takes

    codes, documents = [0], dict[str, object]()
    for playbook in playbooks or node_speed.list_shipped(cluster):
        found = node_speed.measure(store, options.inventory, options.nodes, playbook, caller)
        node_speed.show_speeds(caller.voice, playbook, found)
        codes += [0 if found.is_whole else 3, 5 if found.is_slow else 0]
        documents[playbook] = node_speed.document_speeds(found)
    return errors.joined(codes), documents


def _build_document(site: Site, actions: Mapping[str, Sequence[Action]]) -> dict[str, object]:
    facts = shape(Site).dump_python(site, mode="json")
    return {"site": facts, "actions": shown.actions_json(actions)}


def _choose_code(site: Site) -> int:
    return 5 if any(finding.severity == "error" for finding in site.findings) else 0
