"""The actions that give every node an image."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator import nodeset
from orchestrator.images.recipe import HeldImage, ImageRecipe
from orchestrator.model.site import ImageRecord

Kind = Literal["resolve", "download", "load", "build", "carry", "import"]


@dataclass(frozen=True, slots=True)
class Action:
    """One step that provision takes for an image.

    resolve: ask the registry, or look into the archive, for the base's digest; download: fetch a
    file to this machine; load: send an image of a bundle; build; carry: bring the image from a
    node that has it; import: write it into a file that all nodes see.

    Args:
        node: where; empty for this machine.
        subject: the base, the URL, the image's tag; its name while the tag is not known.
    """

    kind: Kind
    node: str
    subject: str
    reason: str


def actions(
    recipe: ImageRecipe, there: Mapping[str, Mapping[str, HeldImage]]
) -> tuple[Action, ...]:
    """List, in order, the actions after which every node has the image; empty if all have it.

    A tag alone proves nothing, since anyone may give it: the label says what an image was built
    from, and among several that were built from the same, the last provisioning's counts.

    While the base's digest or a download's sha256 is not known, this is what will be done at the
    most: once they are, ask again, since the nodes may have the image already.

    Args:
        there: by node in rank order, the images that it has by their tags.
    """
    name = recipe.tag
    if name is None:
        return (*_unknown(recipe), *_build(recipe, recipe.image.name, tuple(there), {}))
    held = {node: has[name] for node, has in there.items() if name in has}
    ours = {node: image for node, image in held.items() if image.inputs == recipe.inputs}
    kind: Kind = "carry"
    if name in recipe.bundled:
        kind, where, target = "load", "the bundle", recipe.bundled[name]
    elif ours:
        provisioned = (node for node, image in ours.items() if image.id in recipe.known_ids)
        where = next(provisioned, next(iter(ours)))
        target = ours[where]
    else:
        return _build(recipe, name, tuple(there), held)
    return tuple(
        Action(kind, node, name, _why_not(held.get(node), target, where))
        for node in there
        if node not in held or not held[node].is_one_with(target)
    )


def known_as(ids: Mapping[str, str], before: ImageRecord | None) -> tuple[str, dict[str, str]]:
    """Return the id of an image in reports, and the ids on nodes where it differs.

    It stays what it was as long as a node knows the image as before, so that sweeps go on.

    Args:
        ids: by node in rank order, what its engine calls the image.
        before: of the last provisioning, which may have been of other nodes.
    """
    first, known = next(iter(ids.values())), dict(ids)
    if before is not None and any(before.on(node) == ids[node] for node in ids):
        first, known = before.id, {**before.ids, **ids}
    return first, {node: own for node, own in known.items() if own != first}


def _unknown(recipe: ImageRecipe) -> Iterator[Action]:
    image = recipe.image
    if recipe.base_digest is None and image.archive is None:
        yield Action("resolve", "", image.base, "its digest is not known")
    for url in recipe.needed:
        if url not in recipe.downloads:
            yield Action("download", "", url, "its sha256 is not known")
    if recipe.base_digest is None and image.archive is not None:
        yield Action("resolve", "", image.base, "its archive has not been looked into")


def _build(
    recipe: ImageRecipe, name: str, nodes: tuple[str, ...], foreign: Mapping[str, HeldImage]
) -> tuple[Action, ...]:
    first, *others = nodes
    besides = f"; another image has that name on {nodeset.fold(foreign)}" if foreign else ""
    checksums = {
        url: recipe.downloads[url] for url in recipe.image.downloads if url in recipe.downloads
    }
    return (
        *(
            Action("download", "", url, "this machine does not have it yet")
            for url, sha256 in checksums.items()
            if sha256 not in recipe.cached
        ),
        Action("build", first, name, f"no node has it{besides}"),
        *(Action("carry", node, name, f"{first} will have it") for node in others),
    )


def _why_not(seen: HeldImage | None, target: HeldImage, where: str) -> str:
    if seen is None:
        return f"the node has none; {where} has it"
    other = "" if seen.inputs == target.inputs else ", which was not built from these inputs"
    return f"the node has {_short(seen.id)}{other}; {where} has {_short(target.id)}"


def _short(image_id: str) -> str:
    return image_id.removeprefix("sha256:")[:12]
