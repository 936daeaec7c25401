"""What is to be done for an image, done: downloads, builds and what nodes are given."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import errors, images
from orchestrator.console import Voice
from orchestrator.files import shipped
from orchestrator.fleet import Fleet, ask_all
from orchestrator.images import Action, Held, Recipe
from orchestrator.model.image import file_name
from orchestrator.model.site import ImageRecord
from orchestrator.provisioning import context, image_inputs
from orchestrator.provisioning.carry import carry
from orchestrator.provisioning.materials import Preparing

if TYPE_CHECKING:
    from orchestrator.runtimes.images import Images, Progress, Say

CHUNK_BYTES = 1 << 20


def there(fleet: Fleet, tag: str | None) -> dict[str, dict[str, Held]]:
    """By node in rank order, the image of that tag, where it has one.

    Raises:
        NodeError, UnfitError: the first node that could not say.
    """
    answers = ask_all(list(fleet.images), lambda name: held(fleet.images[name], tag) if tag else {})
    return {answer.node: answer.checked() for answer in answers}


def held(engine: "Images", tag: str) -> dict[str, Held]:
    """The image that an engine has of that tag, by it; empty if there is none."""
    seen = engine.find(tag)
    return {tag: Held(seen.id, seen.labels.get(images.INPUTS_LABEL))} if seen else {}


def apply(preparing: Preparing, todo: Sequence[Action], what: Recipe, folder: Path) -> None:
    """Do what is to be done, in its order; carrying goes to all nodes at once.

    Raises:
        ImageError, NodeError: what was done stays, and the next run goes on from there.
    """
    carried = [action.node for action in todo if action.kind == "carry"]
    for action in todo:
        if action.kind == "download":
            image_inputs.fetched(preparing, what, action.what)
        elif action.kind == "build":
            _build(preparing, action, what, folder)
        elif action.kind == "load":
            _load(preparing, action)
    if carried and what.tag:
        source = next(name for name in preparing.fleet.images if name not in carried)
        carry(preparing, what.tag, source, carried)


def record(preparing: Preparing, what: Recipe) -> ImageRecord:
    """What the nodes have now, the same everywhere.

    Raises:
        ImageError: IMAGE-SKEW, and on which nodes something is still to be done.
    """
    inputs = what.inputs
    if what.tag is None or what.base_digest is None or inputs is None:
        raise errors.ImageError(f"image {what.image.name} is not known", code="IMAGE-MISSING")
    has = there(preparing.fleet, what.tag)
    if left := images.actions(what, has):
        raise _skew(what, left)
    (found,) = {images_there[what.tag].id for images_there in has.values()}
    image = what.image
    return ImageRecord(
        name=image.name,
        base=image.base,
        base_digest=what.base_digest,
        id=found,
        tag=what.tag,
        inputs_digest=inputs,
        code=image.code,
        python=image.python,
        locked=image.base in preparing.lock.images,
    )


def _skew(what: Recipe, left: Sequence[Action]) -> errors.ImageError:
    said = ", ".join(f"{action.node}: {action.reason}" for action in left if action.node)
    again = "make the bundle again" if what.tag in what.bundled else "see who else gives this tag"
    return errors.ImageError(
        f"the nodes do not have the one image {what.tag}: {said}",
        code="IMAGE-SKEW",
        fix=f"{again}, and provision again",
    )


def _build(preparing: Preparing, action: Action, what: Recipe, folder: Path) -> None:
    node, image, inputs = preparing.fleet.images[action.node], what.image, what.inputs
    if inputs is None or what.tag is None:
        raise AssertionError("only a resolved recipe is built")
    base = _base(preparing, action.node, what)
    parts = {file_name(url): image_inputs.fetched(preparing, what, url) for url in image.parts}
    args = images.build_args(image, base=base)
    preparing.voice.line(f"{action.node}: build {what.tag}")
    with tempfile.TemporaryDirectory() as temporary:
        tar = Path(temporary) / "context.tar"
        context.write(context.files(folder, shipped.SCRIPTS), parts, tar)
        say = _words(preparing.voice, f"{action.node}: build {image.name}")
        node.build(_chunks(tar), what.tag, args, images.labels(image, inputs), say)


def _base(preparing: Preparing, name: str, what: Recipe) -> str:
    """What the build begins with; afterwards the node has it, pulled or loaded."""
    node, image = preparing.fleet.images[name], what.image
    base = images.base_to_build_from(image, what.base_digest or "", preparing.mirror)
    if node.find(base) is not None:
        return base
    if image.archive is None:
        progress = _bytes(preparing.voice, f"{name}: pull {image.base}")
        node.pull(base, progress, preparing.credentials)
        return base
    path = image_inputs.fetched(preparing, what, image.archive)
    preparing.voice.line(f"{name}: load {image.base}")
    node.load(_chunks(path))
    if node.find(base) is None:
        raise errors.ImageError(
            f"{image.archive} was loaded, and there is no {image.base} of id {base[:19]}",
            code="ARCHIVE",
            node=name,
            fix="lock it again with provision --lock",
        )
    return base


def _load(preparing: Preparing, action: Action) -> None:
    bundle, folder = preparing.bundle, preparing.wanted.bundle
    part = bundle.image(action.what) if bundle else None
    if part is None or folder is None:
        raise AssertionError("only what a bundle has is loaded")
    preparing.voice.line(f"{action.node}: load {part.file}")
    preparing.fleet.images[action.node].load(_chunks(folder / part.file))


def _chunks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _bytes(voice: Voice, title: str) -> "Progress":
    return lambda came, known: voice.working(f"{title}: {came >> 20} of {known >> 20} MiB")


def _words(voice: Voice, title: str) -> "Say":
    return lambda words: voice.working(f"{title}: {words}")
