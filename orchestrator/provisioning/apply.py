"""Carries out the actions for an image: downloads, builds, loads and carrying to nodes."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.checks import provisioned
from orchestrator.files import shipped
from orchestrator.fleet import Fleet, ask_all
from orchestrator.model.image import file_name
from orchestrator.model.site import ImageRecord, Site
from orchestrator.planning import images
from orchestrator.planning.images import Action, HeldImage, ImageRecipe
from orchestrator.provisioning import context, materials, recipes
from orchestrator.provisioning.carry_image import carry
from orchestrator.provisioning.materials import Preparing

CHUNK_BYTES = 1 << 20


def prepare_images(
    preparing: Preparing, names: Sequence[str], previous: Site | None, site: Site
) -> tuple[Site, dict[str, Sequence[Action]]]:
    """Return the site with its images, the same on all nodes, and by name what was done.

    Args:
        previous: the site of the last provisioning.

    Raises:
        ImageError, NodeError, UnfitError: finished actions stay done.
    """
    done: dict[str, Sequence[Action]] = {}
    records: dict[str, ImageRecord] = dict(site.images)
    for name in names:
        recipe, folder = recipes.recipe(preparing, name, previous)
        recipe = recipes.resolve(preparing, recipe)
        held_now = there(preparing.fleet, recipe.tag)
        done[name] = images.actions(recipe, held_now)
        if done[name]:
            apply(preparing, done[name], recipe, folder)
            held_now = there(preparing.fleet, recipe.tag)
        before = previous.images.get(name) if previous else None
        records[name] = record(preparing, recipe, held_now, before)
    if preparing.relock or preparing.bundle:
        materials.keep_lock(preparing)
    unlocked = [
        provisioned.report_unlocked(records[name]) for name in done if not records[name].locked
    ]
    return replace(site.with_provisioned(*unlocked), images=records), done


def there(fleet: Fleet, tag: str | None) -> dict[str, dict[str, HeldImage]]:
    """Return by node in rank order, then by tag, the image of that tag that a node has.

    Raises:
        NodeError, UnfitError: of the first node that gave no answer.
    """

    def look(name: str) -> dict[str, HeldImage]:
        image = fleet.images[name].find(tag) if tag else None
        if image is None or tag is None:
            return {}
        return {tag: HeldImage(image.id, image.labels.get(images.INPUTS_LABEL), image.content)}

    return {answer.node: answer.checked() for answer in ask_all(list(fleet.images), look)}


def apply(preparing: Preparing, todo: Sequence[Action], recipe: ImageRecipe, folder: Path) -> None:
    """Carry out actions in their order, those of kind ``carry`` last and to all nodes at once.

    Raises:
        ImageError, NodeError: finished actions stay done; the next run continues from there.
    """
    carried = [action.node for action in todo if action.kind == "carry"]
    bundle, bundled = preparing.bundle, preparing.bundled
    for action in todo:
        if action.kind == "download":
            recipes.fetch(preparing, recipe, action.subject)
        elif action.kind == "build":
            _build(preparing, action, recipe, folder)
        elif action.kind == "load":
            part = bundle.image(action.subject) if bundle else None
            if part is None or bundled is None:
                raise AssertionError("only what a bundle has is loaded")
            preparing.voice.line(f"{action.node}: load {part.file}")
            preparing.fleet.images[action.node].load(_chunks(bundled / part.file))
    if carried and recipe.tag:
        source = next(name for name in preparing.fleet.images if name not in carried)
        carry(preparing, recipe.tag, source, carried)


def record(
    preparing: Preparing,
    recipe: ImageRecipe,
    has: Mapping[str, Mapping[str, HeldImage]],
    before: ImageRecord | None,
) -> ImageRecord:
    """Return the image that all nodes have now, for the site file.

    Args:
        has: as ``there`` says, after all actions.
        before: of the last provisioning, which may have been of other nodes.

    Raises:
        ImageError: IMAGE-SKEW; names the nodes that still lack it.
    """
    inputs = recipe.inputs
    if recipe.tag is None or recipe.base_digest is None or inputs is None:
        raise errors.ImageError(f"image {recipe.image.name} is not known", code="IMAGE-MISSING")
    if left := images.actions(recipe, has):
        reasons = ", ".join(f"{action.node}: {action.reason}" for action in left if action.node)
        bundled = recipe.tag in recipe.bundled
        again = "make the bundle again" if bundled else "see who else gives this tag"
        raise errors.ImageError(
            f"the nodes do not have the one image {recipe.tag}: {reasons}",
            code="IMAGE-SKEW",
            fix=f"{again}, and provision again",
        )
    held = {node: images_there[recipe.tag].id for node, images_there in has.items()}
    image_id, ids = images.known_as(held, before)
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
        context.write(context.files(folder, shipped.SCRIPTS), parts, tar)
        title, show = f"{action.node}: build {image.name}", preparing.voice.working
        labels = images.labels(image, inputs, preparing.state, preparing.owner)
        node.build(_chunks(tar), recipe.tag, args, labels, lambda word: show(f"{title}: {word}"))


def _base(preparing: Preparing, name: str, recipe: ImageRecipe) -> str:
    """Return the base to build from, pulled or loaded onto the node if it lacks it."""
    node, image = preparing.fleet.images[name], recipe.image
    base = images.base_to_build_from(image, recipe.base_digest or "", preparing.mirror)
    if node.find(base) is not None:
        return base
    if image.archive is None:
        title, show = f"{name}: pull {image.base}", preparing.voice.working
        node.pull(
            base,
            lambda received, total: show(f"{title}: {received >> 20} of {total >> 20} MiB"),
            preparing.credentials,
        )
        return base
    path = recipes.fetch(preparing, recipe, image.archive)
    preparing.voice.line(f"{name}: load {image.base}")
    node.load(_chunks(path))
    if node.find(base) is not None:
        return base
    # Engines that keep images in containerd call it otherwise.
    loaded, held = node.find(image.base), recipes.find_archived(path, image)
    if loaded is None or (base, loaded.content) != held:
        raise errors.ImageError(
            f"{image.archive} was loaded, and there is no {image.base} of id {base[:19]}",
            code="ARCHIVE",
            node=name,
            fix="lock it again with provision --lock",
        )
    return loaded.id


def _chunks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
