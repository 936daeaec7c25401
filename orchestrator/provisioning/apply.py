"""Images on all nodes: downloads, builds and loads, and carrying from the node that has one.

An image is carried through a registry, a folder that all nodes see, or this machine.
"""

import contextlib
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.checks import provisioned
from orchestrator.console import Voice
from orchestrator.fleet import Fleet, ask_all, settled
from orchestrator.model.image import file_name
from orchestrator.model.site import ImageRecord, Site
from orchestrator.planning import images
from orchestrator.planning.images import Action, HeldImage, ImageRecipe
from orchestrator.provisioning import materials, recipes
from orchestrator.provisioning.materials import Preparing

PIECES_AHEAD = 16  # in memory, for each node
LOOK_S = 1.0
Piece = bytes | errors.DlperfError
"""A piece of an image: an empty one ends it, an error says why its node could send no more."""


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
            preparing.fleet.images[action.node].load(materials.read_pieces(bundled / part.file))
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
        recipes.write_context(recipes.read_context(folder), parts, tar)
        title, show = f"{action.node}: build {image.name}", preparing.voice.working
        labels = images.labels(image, inputs, preparing.state, preparing.owner)
        node.build(
            materials.read_pieces(tar),
            recipe.tag,
            args,
            labels,
            lambda word: show(f"{title}: {word}"),
        )


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
    node.load(materials.read_pieces(path))
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


def carry(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Bring the image to every target.

    Raises:
        ImageError, UnfitError, NodeError: some nodes may have it already.
    """
    registry, show = preparing.fleet.cluster.registry, preparing.voice.line
    if registry is not None and registry.push is not None:
        _through_registry(preparing, f"{registry.push}/{tag}", tag, source, targets)
    elif preparing.fleet.cluster.slurm is not None:
        # What flows through a step of Slurm's flows slowly.
        engines = preparing.fleet.engines
        preparing.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = preparing.folder / f"{tag.replace('/', '-')}.tar"
        show(f"{tag}: from {source} through {path} to {', '.join(targets)}")
        try:
            engines[source].command_line("save", "--output", str(path), tag)
            load = ("load", "--quiet", "--input", str(path))
            settled(ask_all(targets, lambda node: engines[node].command_line(*load)))
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    else:
        show(f"{tag}: from {source} through this machine to {nodeset.fold(targets)}")
        _through_here(preparing, tag, source, targets)


def _through_registry(
    preparing: Preparing, name: str, tag: str, source: str, targets: Sequence[str]
) -> None:
    engines, credentials = preparing.fleet.images, preparing.credentials
    engines[source].tag(tag, name)
    preparing.voice.line(f"{source}: push {name}")
    engines[source].push(name, lambda *_: None, credentials)
    pushed = engines[source].find(name)
    for pinned in pushed.repo_digests if pushed else ():
        if pinned.partition("@")[0] == name.rpartition(":")[0]:
            break
    else:
        raise errors.ImageError(f"the push of {name} gave it no digest", code="REG-DIGEST")

    def pull(node: str) -> None:
        engines[node].pull(pinned, lambda *_: None, credentials)
        engines[node].tag(pinned, tag)

    preparing.voice.line(f"{', '.join(targets)}: pull {pinned}")
    settled(ask_all(targets, pull))


def _through_here(preparing: Preparing, tag: str, source: str, targets: Sequence[str]) -> None:
    """Load the image on every target, all at once: one reading of it feeds all of them."""
    engines = preparing.fleet.images
    pieces = engines[source].save(tag)
    pipes = {node: queue.Queue[Piece](PIECES_AHEAD) for node in targets}
    gone = set[str]()  # nodes that have ended their part

    def put(piece: Piece) -> None:
        for node, pipe in pipes.items():
            while node not in gone:
                with contextlib.suppress(queue.Full):
                    pipe.put(piece, timeout=LOOK_S)
                    break

    def take(node: str) -> Iterator[bytes]:
        while piece := pipes[node].get():
            if isinstance(piece, errors.DlperfError):
                raise piece
            yield piece

    def load(node: str) -> None:
        try:
            engines[node].load(take(node))
        finally:
            gone.add(node)

    threading.Thread(target=_feed, args=(source, pieces, put), daemon=True).start()
    # A node whose turn had yet to come would hold up all others.
    settled(ask_all(targets, load, at_once=len(targets)))


def _feed(source: str, pieces: Iterator[bytes], put: Callable[[Piece], None]) -> None:
    last: Piece = b""
    try:
        for piece in pieces:
            put(piece)
    except errors.DlperfError as error:
        last = error
    except Exception as error:  # noqa: BLE001 - whatever ends this thread, readers must get an end
        words = f"the image could not be read: {error}"
        last = errors.ImageError(words, code="CARRY", node=source)
    put(last)


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
