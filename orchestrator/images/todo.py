"""What is to be done until every node has an image."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator import nodeset
from orchestrator.images.recipe import Recipe

Kind = Literal["resolve", "download", "load", "build", "carry"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that provision must do for an image.

    resolve: ask the registry, or look into the archive, for the base's digest; download: fetch a
    file to this machine; load: send an image of a bundle; build; carry: bring the image from a
    node that has it.

    Args:
        node: where; empty for this machine.
        what: the base, the URL, the image's tag; its name while the tag is not known.
    """

    kind: Kind
    node: str
    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """An image that a node has under a tag; ``inputs`` is what its label says, if it has one."""

    id: str
    inputs: str | None


def actions(recipe: Recipe, there: Mapping[str, Mapping[str, Held]]) -> tuple[Action, ...]:
    """What must be done until every node has the image, in this order; empty when all have it.

    A tag alone proves nothing, since anyone may give it: the label says what an image was built
    from, and among several that were built from the same, the last provisioning's counts.

    While the base's digest or a download's sha256 is not known, this is what will be done at the
    most: once they are, ask again, since the nodes may have the image already.

    Args:
        there: by node in rank order, the images that it has by their tags.
    """
    name = recipe.tag
    if name is None:
        return (*_unknown(recipe), *_made(recipe, recipe.image.name, tuple(there), {}))
    held = {node: has[name] for node, has in there.items() if name in has}
    ours = {node: image for node, image in held.items() if image.inputs == recipe.inputs}
    kind: Kind = "carry"
    if name in recipe.bundled:
        kind, where, wanted = "load", "the bundle", Held(recipe.bundled[name], recipe.inputs)
    elif ours:
        known = (node for node, image in ours.items() if image.id == recipe.known_id)
        where = next(known, next(iter(ours)))
        wanted = ours[where]
    else:
        return _made(recipe, name, tuple(there), held)
    return tuple(
        Action(kind, node, name, _why_not(held.get(node), wanted, where))
        for node in there
        if held.get(node) != wanted
    )


def _unknown(recipe: Recipe) -> Iterator[Action]:
    image = recipe.image
    if recipe.base_digest is None and image.archive is None:
        yield Action("resolve", "", image.base, "its digest is not known")
    for url in recipe.wanted:
        if url not in recipe.downloads:
            yield Action("download", "", url, "its sha256 is not known")
    if recipe.base_digest is None and image.archive is not None:
        yield Action("resolve", "", image.base, "its archive has not been looked into")


def _made(
    recipe: Recipe, name: str, nodes: tuple[str, ...], foreign: Mapping[str, Held]
) -> tuple[Action, ...]:
    first, *others = nodes
    besides = f"; another image has that name on {nodeset.fold(foreign)}" if foreign else ""
    known = {
        url: recipe.downloads[url] for url in recipe.image.downloads if url in recipe.downloads
    }
    return (
        *(
            Action("download", "", url, "this machine does not have it yet")
            for url, sha256 in known.items()
            if sha256 not in recipe.cached
        ),
        Action("build", first, name, f"no node has it{besides}"),
        *(Action("carry", node, name, f"{first} will have it") for node in others),
    )


def _why_not(seen: Held | None, wanted: Held, where: str) -> str:
    if seen is None:
        return f"the node has none; {where} has it"
    other = "" if seen.inputs == wanted.inputs else ", which was not built from these inputs"
    return f"the node has {_short(seen.id)}{other}; {where} has {_short(wanted.id)}"


def _short(image_id: str) -> str:
    return image_id.removeprefix("sha256:")[:12]
