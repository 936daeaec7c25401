"""Images on all nodes: downloads, builds and loads, and carrying from the node that has one."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.checks import provisioned
from orchestrator.console import Voice
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet, Pool, ask_all, settled
from orchestrator.model.image import IMAGE_LABEL, INPUTS_LABEL, HeldImage, file_name
from orchestrator.model.site import ImageRecord, Site
from orchestrator.planning import images
from orchestrator.planning.images import Action, ImageRecipe
from orchestrator.provisioning import materials, recipes
from orchestrator.provisioning.materials import Preparing

GROWN_S = 0.1  # between reads by an engine that is faster than the file of an image grows


def prepare_images(
    preparing: Preparing, names: Sequence[str], previous: Site | None, site: Site
) -> tuple[Site, dict[str, Sequence[Action]]]:
    """Return the site with its images, the same on all nodes, and by name what was done.

    Raises:
        ImageError, NodeError, UnfitError: finished actions stay done; the next run continues.
    """
    done: dict[str, Sequence[Action]] = {}
    records: dict[str, ImageRecord] = dict(site.images)
    for name in names:
        recipe, folder = recipes.draft(preparing, name, previous)
        recipe = recipes.resolve(preparing, recipe)
        held_now = there(preparing.fleet, recipe.tag)
        done[name] = images.actions(recipe, held_now)
        if done[name]:
            apply(preparing, done[name], recipe, folder)
            held_now = there(preparing.fleet, recipe.tag)
        records[name] = record(preparing, recipe, held_now)
    if preparing.relock or preparing.bundled:
        materials.keep_lock(preparing)
    unlocked = [
        provisioned.report_unlocked(records[name]) for name in done if not records[name].locked
    ]
    return replace(site.with_provisioned(*unlocked), images=records), done


def there(fleet: Fleet, tag: str | None) -> dict[str, HeldImage | None]:
    """Return by node in rank order the image of that tag that a node has."""
    engines = fleet.images
    answers = ask_all(list(engines), lambda node: engines[node].find(tag) if tag else None)
    settled(answers)
    return {answer.node: answer.value for answer in answers}


def apply(preparing: Preparing, todo: Sequence[Action], recipe: ImageRecipe, folder: Path) -> None:
    """Carry out actions in their order, those of kind ``carry`` last and to all nodes at once."""
    carried = [action.node for action in todo if action.kind == "carry"]
    for action in todo:
        if action.kind == "build":  # which downloads what it needs
            _build(preparing, action, recipe, folder)
        elif action.kind == "load":
            file = preparing.files[action.subject]
            preparing.voice.line(f"{action.node}: load {file}")
            preparing.fleet.images[action.node].load(materials.read_pieces(file))
    if carried and recipe.tag:
        source = next(name for name in preparing.fleet.images if name not in carried)
        carry(preparing, recipe.tag, source, carried)


def record(
    preparing: Preparing, recipe: ImageRecipe, has: Mapping[str, HeldImage | None]
) -> ImageRecord:
    """Return the image that all nodes have now, for the site file.

    Raises:
        ImageError: IMAGE-SKEW; names the nodes that still lack it.
    """
    inputs = recipe.inputs
    if recipe.tag is None or recipe.base_digest is None or inputs is None:
        raise AssertionError("only a resolved recipe is recorded")
    if left := images.actions(recipe, has):
        reasons = ", ".join(f"{action.node}: {action.reason}" for action in left if action.node)
        bundled = recipe.tag in recipe.bundled
        again = "make the bundle again" if bundled else "see who else gives this tag"
        raise errors.ImageError(
            f"the nodes do not have the one image {recipe.tag}: {reasons}",
            code="IMAGE-SKEW",
            fix=f"{again}, and provision again",
        )
    held = {node: image.id for node, image in has.items() if image}
    image_id, ids = images.known_as(held, recipe.before)
    image = recipe.image
    return ImageRecord(
        name=image.name,
        base=image.base,
        base_digest=recipe.base_digest,
        id=image_id,
        tag=recipe.tag,
        inputs_digest=inputs,
        code=image.code,
        python=image.python,
        locked=image.base in preparing.lock.images,
        ids=ids,
    )


def _build(preparing: Preparing, action: Action, recipe: ImageRecipe, folder: Path) -> None:
    node, image, inputs = preparing.fleet.images[action.node], recipe.image, recipe.inputs
    if inputs is None or recipe.tag is None:
        raise AssertionError("only a resolved recipe is built")
    base = _base(preparing, action.node, recipe)
    parts = {file_name(url): recipes.fetch(preparing, recipe, url) for url in image.parts}
    args = {"BASE": base, **images.values(image)}
    preparing.voice.line(f"{action.node}: build {recipe.tag}")
    with tempfile.TemporaryDirectory() as temporary:
        tar = Path(temporary) / "context.tar"
        recipes.write_context(recipes.read_context(folder), parts, tar)
        labels = {IMAGE_LABEL: image.name, INPUTS_LABEL: inputs, **preparing.labels}
        show = preparing.show(f"{action.node}: build {image.name}")
        node.build(materials.read_pieces(tar), recipe.tag, args, labels, show)


def _base(preparing: Preparing, name: str, recipe: ImageRecipe) -> str:
    """Return the base to build from, pulled or loaded onto the node if it lacks it."""
    node, image = preparing.fleet.images[name], recipe.image
    base = images.base_to_build_from(image, recipe.base_digest or "", preparing.mirror)
    if node.find(base) is not None:
        return base
    if image.archive is None:
        node.pull(base, preparing.show(f"{name}: pull {image.base}"), preparing.credentials)
        return base
    path = recipes.fetch(preparing, recipe, image.archive)
    preparing.voice.line(f"{name}: load {image.base}")
    node.load(materials.read_pieces(path))
    if node.find(base) is not None:
        return base
    # Engines that keep images in containerd give it another id.
    loaded, held = node.find(image.base), recipes.find_archived(path, image)
    if loaded is None or (base, loaded.content) != held:
        raise errors.ImageError(
            f"{image.archive} was loaded, and there is no {image.base} of id {base[:19]}",
            code="ARCHIVE",
            node=name,
            fix="lock it again with provision --lock",
        )
    return loaded.id


def carry(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Bring the image to every target by a registry, the shared folder, or this machine."""
    registry, folder = preparing.fleet.cluster.registry, preparing.downloads.folder
    names, show = nodeset.fold(targets), preparing.voice.line
    with on_disk(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if registry is not None and registry.push is not None:
        _through_registry(preparing, f"{registry.push}/{tag}", tag, source, targets)
    elif preparing.fleet.cluster.slurm is not None:
        # A pipe through a Slurm step is slow.
        engines = preparing.fleet.engines
        path = folder / f"{tag.replace('/', '-')}.tar"
        show(f"{tag}: from {source} through {path} to {names}")
        try:
            engines[source].command_line("save", "--output", str(path), tag)
            load = ("load", "--quiet", "--input", str(path))
            settled(ask_all(targets, lambda node: engines[node].command_line(*load)))
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    else:
        show(f"{tag}: from {source} through this machine to {names}")
        _through_here(preparing, tag, source, targets)


def _through_here(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Load the image from a file that still grows, so that a slow node holds up no other."""
    engines, folder = preparing.fleet.images, preparing.downloads.folder
    with on_disk(folder), tempfile.TemporaryFile(dir=folder) as file:

        def save() -> None:
            with on_disk(folder):
                for piece in engines[source].save(tag):
                    file.write(piece)
                    file.flush()

        def read() -> Iterator[bytes]:
            at = 0
            while True:
                has_ended = saving.done()
                with on_disk(folder):
                    piece = os.pread(file.fileno(), materials.MIB, at)
                at += len(piece)
                if piece:
                    yield piece
                elif not has_ended:
                    wait((saving,), GROWN_S)
                elif saving.exception() is None:
                    return
                else:  # the engine would take a part for the whole image
                    raise errors.ImageError(f"{source} sent only a part", code="IMAGE-MISSING")

        with contextlib.closing(Pool(1)) as pool:
            saving = pool.submit(save)
        loaded = ask_all(targets, lambda node: engines[node].load(read()))
        if saving.done():
            saving.result()
        settled(loaded)


def _through_registry(
    preparing: Preparing, name: str, tag: str, source: str, targets: Sequence[str]
) -> None:
    engines, credentials = preparing.fleet.images, preparing.credentials
    engines[source].tag(tag, name)
    preparing.voice.line(f"{source}: push {name}")
    engines[source].push(name, preparing.show(f"{source}: push"), credentials)
    pushed = engines[source].find(name)
    for pinned in pushed.repo_digests if pushed else ():
        if pinned.partition("@")[0] == name.rpartition(":")[0]:
            break
    else:
        raise errors.ImageError(f"the push of {name} gave it no digest", code="REG-DIGEST")

    def pull(node: str) -> None:
        engines[node].pull(pinned, lambda _: None, credentials)
        engines[node].tag(pinned, tag)

    preparing.voice.line(f"{nodeset.fold(targets)}: pull {pinned}")
    settled(ask_all(targets, pull))


def list_actions(todo: Mapping[str, Sequence[Action]]) -> list[dict[str, str]]:
    """Return actions by image as rows of a table, and as they are in JSON."""
    return [
        {
            "image": name,
            "kind": action.kind,
            "node": action.node or "this machine",
            "what": action.subject,
            "reason": action.reason,
        }
        for name, of_image in todo.items()
        for action in of_image
    ]


def show_actions(voice: Voice, todo: Mapping[str, Sequence[Action]]) -> None:
    if rows := [tuple(action.values()) for action in list_actions(todo)]:
        voice.table("Actions", ("image", "action", "where", "what", "why"), rows)
    elif todo:
        voice.result("Nothing to do: every node has every image.")
