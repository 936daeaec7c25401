"""What goes into an image, what it is called, and what is to be done until every node has it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator import nodeset
from orchestrator.model.image import Image, derived_tag, file_name

Kind = Literal["resolve", "download", "load", "build", "carry"]
# Raised when a recipe as a whole means something else: then every image is built anew.
_FORMAT = 1
_DOCKER_HUB = "docker.io"
INPUTS_LABEL = "dlperf.inputs"


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a base lies: a registry, a repository there, a tag in it."""

    host: str
    repository: str
    tag: str


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


@dataclass(frozen=True, slots=True)
class Recipe:
    """An image, and all that is known of what goes into it.

    Args:
        base_digest: None until the lock or the registry has said it.
        files: sha256 by name of what lies beside image.yaml and goes into the build.
        downloads: sha256 by URL, as far as known.
        cached: sha256 of the downloads that this machine has already.
        bundled: image ids by tag of the bundle in use, if there is one.
        known_id: of the image that the last provisioning left on the nodes, if there was one.
    """

    image: Image
    base_digest: str | None
    files: Mapping[str, str]
    downloads: Mapping[str, str]
    cached: frozenset[str] = frozenset()
    bundled: Mapping[str, str] = field(default_factory=dict)
    known_id: str | None = None

    @property
    def tag(self) -> str | None:
        """What the image will be called; None until everything that goes in is known."""
        inputs = self.inputs
        return tag(self.image, inputs) if inputs else None

    @property
    def inputs(self) -> str | None:
        """The digest of everything that goes in; None until all of it is known."""
        if self.base_digest is None or any(url not in self.downloads for url in self.image.parts):
            return None
        parts = {url: self.downloads[url] for url in self.image.parts}
        return inputs_digest(self.image, self.base_digest, self.files, parts)

    @property
    def wanted(self) -> tuple[str, ...]:
        """URLs whose sha256 must be known before the image has a name.

        A base's archive is not among them once the base's digest is known.
        """
        return self.image.downloads if self.base_digest is None else self.image.parts


def reference(base: str) -> Reference:
    """The parts of a base reference; one that begins with no registry means Docker Hub."""
    path, _, its_tag = base.rpartition(":")
    host, slash, repository = path.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, repository = _DOCKER_HUB, path
    if host == _DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(host, repository, its_tag)


def pinned(base: str, digest: str, mirror: str | None) -> str:
    """What Docker pulls to get exactly these bytes: from the mirror if there is one."""
    origin = reference(base)
    return f"{mirror or origin.host}/{origin.repository}@{digest}"


def base_to_build_from(image: Image, digest: str, mirror: str | None) -> str:
    """What a build begins with: the base by digest, or by the id that it has once it is loaded."""
    return digest if image.archive else pinned(image.base, digest, mirror)


def build_args(image: Image, *, base: str) -> dict[str, str]:
    """The build arguments of the image's Dockerfile.

    Args:
        base: what to build from, as ``base_to_build_from`` says it.
    """
    return {"BASE": base, **_values(image)}


def labels(image: Image, inputs: str) -> dict[str, str]:
    """What is written on the image, by which it is known to be ours and of which inputs."""
    return {"dlperf.image": image.name, INPUTS_LABEL: inputs}


def ignored(image: Image, dockerfile: str) -> tuple[str, ...]:
    """Build arguments that the image has a value for and that its Dockerfile knows nothing of.

    The interpreter is left out, which many builds do not need.
    """
    lines = (line.split() for line in dockerfile.splitlines())
    known = {words[1].partition("=")[0] for words in lines if words[:1] == ["ARG"]}
    said = _values(image)
    return tuple(name for name in said if name not in {*known, "PYTHON"} and said[name] != "none")


def inputs_digest(
    image: Image, base_digest: str, files: Mapping[str, str], downloads: Mapping[str, str]
) -> str:
    """The sha256 of everything that goes into a build, as ``sha256:...``.

    It depends on the base's digest and not on where the base comes from. What a distribution's
    archive holds on the day of the build cannot be known beforehand and is not in it: therefore an
    image is built once, and carried.
    """
    everything = {
        "format": _FORMAT,
        "name": image.name,
        "base": base_digest,
        "args": _values(image),
        "files": dict(files),
        "downloads": dict(downloads),
    }
    plain = json.dumps(everything, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(plain.encode()).hexdigest()}"


def tag(image: Image, inputs: str) -> str:
    """What the image built from these inputs is called on every node."""
    return derived_tag(image.name, inputs)


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
    ours = {node: each for node, each in held.items() if each.inputs == recipe.inputs}
    kind: Kind = "carry"
    if name in recipe.bundled:
        kind, where, wanted = "load", "the bundle", Held(recipe.bundled[name], recipe.inputs)
    elif ours:
        known = (node for node, each in ours.items() if each.id == recipe.known_id)
        where = next(known, next(iter(ours)))
        wanted = ours[where]
    else:
        return _made(recipe, name, tuple(there), held)
    return tuple(
        Action(kind, node, name, _why_not(held.get(node), wanted, where))
        for node in there
        if held.get(node) != wanted
    )


def _values(image: Image) -> dict[str, str]:
    """The arguments that image.yaml alone decides; without those that would be empty."""
    source = image.source
    found = {
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
    return {name: value for name, value in found.items() if value}


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
