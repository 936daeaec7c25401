"""Container images: what goes into one and what it is called, and what a node still lacks. Pure.

Which digest of a base is believed (lock, last provisioning, registry) is decided in
``provisioning/recipes``.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator import nodeset
from orchestrator.model.image import HeldImage, Image, derive_tag, file_name
from orchestrator.model.site import ImageRecord

Kind = Literal["resolve", "download", "load", "build", "carry", "import"]
# Raised when the meaning of a recipe changes, so that every image is built again.
_FORMAT = 1
_DOCKER_HUB = "docker.io"


@dataclass(frozen=True, slots=True)
class Reference:
    """The parts of an image's name: registry host, repository and tag."""

    host: str
    repository: str
    tag: str


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """An image, and all that is known of what goes into it.

    Args:
        base_digest: None until the lock or the registry has said it.
        files: sha256 by name of what lies beside image.yaml and goes into the build.
        downloads: sha256 by URL, as far as known.
        cached: sha256 of the downloads that this machine has already.
        bundled: images by tag of the bundle in use, if there is one.
        before: the image of the last provisioning, which may have been of other nodes.
    """

    image: Image
    base_digest: str | None
    files: Mapping[str, str]
    downloads: Mapping[str, str]
    cached: frozenset[str] = frozenset()
    bundled: Mapping[str, HeldImage] = field(default_factory=dict)
    before: ImageRecord | None = None

    @property
    def tag(self) -> str | None:
        """Return the tag of the image; None until all of its inputs are known."""
        inputs = self.inputs
        return derive_tag(self.image.name, inputs) if inputs else None

    @property
    def inputs(self) -> str | None:
        """Return the sha256 of everything that goes in, as ``sha256:...``; None until it is known.

        It depends on the base's digest and not on where the base comes from. What a distribution's
        archive holds on the day of the build cannot be known beforehand and is not in it: therefore
        an image is built once, and carried.
        """
        if self.base_digest is None or any(url not in self.downloads for url in self.image.parts):
            return None
        everything = {
            "format": _FORMAT,
            "name": self.image.name,
            "base": self.base_digest,
            "args": values(self.image),
            "files": dict(self.files),
            "downloads": {url: self.downloads[url] for url in self.image.parts},
        }
        plain = json.dumps(everything, sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(plain.encode()).hexdigest()}"

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the URLs whose sha256 must be known before the image has a name.

        A base's archive is not among them once the base's digest is known.
        """
        return self.image.downloads if self.base_digest is None else self.image.parts


def base_to_build_from(image: Image, digest: str, mirror: str | None) -> str:
    """Return the base by digest, from the mirror if there is one.

    A base of an archive is called by its id, which it has once it is loaded.
    """
    origin = reference(image.base)
    name = f"{mirror or origin.host}/{origin.repository}@{digest}"
    return digest if image.archive else name


def values(image: Image) -> dict[str, str]:
    """Return the build arguments that image.yaml alone decides, without empty ones."""
    source = image.source
    arguments = {
        "PYTHON": image.python,
        "CODE": image.code,
        "INFINIBAND": image.infiniband,
        "OFED_TAR": file_name(image.ofed_url) if image.ofed_url else "",
        "OFED_VERSION": image.ofed.version if image.ofed and image.ofed_url else "",
        "APT_PACKAGES": " ".join(image.packages),
        "APT_MIRROR": image.apt.mirror or "",
        "PIP_PACKAGES": " ".join(image.pip),
        "WHEELS": " ".join(map(file_name, image.wheels)),
        "SOURCE_URL": source.url if source else "",
        "SOURCE_COMMIT": source.commit if source else "",
        "SOURCE_PATH": (source.path if source else None) or "",
    }
    return {name: value for name, value in arguments.items() if value}


def reference(base: str) -> Reference:
    """Split a base reference into its parts; without a registry it means Docker Hub."""
    path, _, its_tag = base.rpartition(":")
    host, slash, repository = path.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, repository = _DOCKER_HUB, path
    if host == _DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(host, repository, its_tag)


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


def actions(recipe: ImageRecipe, there: Mapping[str, HeldImage | None]) -> tuple[Action, ...]:
    """List, in order, the actions after which every node has the image; empty if all have it.

    A tag alone proves nothing, since anyone may give it: the label says what an image was built
    from, and among several that were built from the same, the last provisioning's counts.

    While the base's digest or a download's sha256 is not known, this is what will be done at the
    most: once they are, ask again, since the nodes may have the image already.

    Args:
        there: by node in rank order, the image that it has under the recipe's tag.
    """
    name = recipe.tag
    if name is None:
        return (*_unknown(recipe), *_build(recipe, recipe.image.name, tuple(there), {}))
    held = {node: image for node, image in there.items() if image}
    ours = {node: image for node, image in held.items() if image.inputs == recipe.inputs}
    kind: Kind = "carry"
    if name in recipe.bundled:
        kind, where, target = "load", "the bundle", recipe.bundled[name]
    elif ours:
        before = recipe.before
        known = {before.id, *before.ids.values()} if before else set[str]()
        where = next((node for node, image in ours.items() if image.id in known), next(iter(ours)))
        target = ours[where]
    else:
        return _build(recipe, name, tuple(there), held)
    lacking = []
    for node, seen in there.items():
        if seen is None:
            lacking.append(Action(kind, node, name, f"the node has none; {where} has it"))
        elif (seen.content, seen.inputs) != (target.content, target.inputs):
            ids = [image.id.removeprefix("sha256:")[:12] for image in (seen, target)]
            other = (
                "" if seen.inputs == target.inputs else ", which was not built from these inputs"
            )
            reason = f"the node has {ids[0]}{other}; {where} has {ids[1]}"
            lacking.append(Action(kind, node, name, reason))
    return tuple(lacking)


def known_as(ids: Mapping[str, str], before: ImageRecord | None) -> tuple[str, dict[str, str]]:
    """Return the id of an image in reports, and the ids on nodes where it differs.

    It stays what it was as long as a node knows the image as before, so that sweeps go on.
    """
    first, known = next(iter(ids.values())), dict(ids)
    if before is not None and any(before.on(node) == ids[node] for node in ids):
        first, known = before.id, {**before.ids, **ids}
    return first, {node: own for node, own in known.items() if own != first}


def _unknown(recipe: ImageRecipe) -> Iterator[Action]:
    for url in recipe.needed:
        if url not in recipe.downloads:
            yield Action("download", "", url, "its sha256 is not known")
    if recipe.base_digest is None:
        yield Action("resolve", "", recipe.image.base, "its digest is not known")


def _build(
    recipe: ImageRecipe, name: str, nodes: tuple[str, ...], foreign: Mapping[str, HeldImage]
) -> tuple[Action, ...]:
    first, *others = nodes
    besides = f"; another image has that name on {nodeset.fold(foreign)}" if foreign else ""
    return (
        *(
            Action("download", "", url, "this machine does not have it yet")
            for url in recipe.image.downloads
            if url in recipe.downloads and recipe.downloads[url] not in recipe.cached
        ),
        Action("build", first, name, f"no node has it{besides}"),
        *(Action("carry", node, name, f"{first} will have it") for node in others),
    )
