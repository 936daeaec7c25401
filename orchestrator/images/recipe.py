"""What goes into an image: its recipe, the digest of its inputs, and its tag."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.model.image import Image, derived_tag, file_name

# Raised when the meaning of a recipe changes, so that every image is built again.
_FORMAT = 1
IMAGE_LABEL, INPUTS_LABEL = "dlperf.image", "dlperf.inputs"
STATE_LABEL, OWNER_LABEL = "dlperf.state", "dlperf.owner"
_DOCKER_HUB = "docker.io"


@dataclass(frozen=True, slots=True)
class Reference:
    """The parts of an image's name: registry host, repository and tag."""

    host: str
    repository: str
    tag: str


@dataclass(frozen=True, slots=True)
class HeldImage:
    """An image that a node has under a tag.

    Args:
        id: what the node's engine calls it.
        inputs: from its label, if it has one.
        content: of its layers and settings; None of a bundle that does not name it.
    """

    id: str
    inputs: str | None
    content: str | None

    def is_one_with(self, other: "HeldImage") -> bool:
        """Return True if both hold the same image, even under different ids of their engines."""
        if self.content is None or other.content is None:
            return (self.id, self.inputs) == (other.id, other.inputs)
        return (self.content, self.inputs) == (other.content, other.inputs)


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """An image, and all that is known of what goes into it.

    Args:
        base_digest: None until the lock or the registry has said it.
        files: sha256 by name of what lies beside image.yaml and goes into the build.
        downloads: sha256 by URL, as far as known.
        cached: sha256 of the downloads that this machine has already.
        bundled: images by tag of the bundle in use, if there is one.
        known_ids: of the image that the last provisioning left on the nodes, if there was one.
    """

    image: Image
    base_digest: str | None
    files: Mapping[str, str]
    downloads: Mapping[str, str]
    cached: frozenset[str] = frozenset()
    bundled: Mapping[str, HeldImage] = field(default_factory=dict)
    known_ids: frozenset[str] = frozenset()

    @property
    def tag(self) -> str | None:
        """Return the tag of the image; None until all of its inputs are known."""
        inputs = self.inputs
        return tag(self.image, inputs) if inputs else None

    @property
    def inputs(self) -> str | None:
        """Return the digest of everything that goes in; None until all of it is known."""
        if self.base_digest is None or any(url not in self.downloads for url in self.image.parts):
            return None
        parts = {url: self.downloads[url] for url in self.image.parts}
        return inputs_digest(self.image, self.base_digest, self.files, parts)

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the URLs whose sha256 must be known before the image has a name.

        A base's archive is not among them once the base's digest is known.
        """
        return self.image.downloads if self.base_digest is None else self.image.parts


def base_to_build_from(image: Image, digest: str, mirror: str | None) -> str:
    """Return the base by digest, or by the id that it has once its archive is loaded."""
    return digest if image.archive else pinned(image.base, digest, mirror)


def build_args(image: Image, *, base: str) -> dict[str, str]:
    """Return the build arguments of the image's Dockerfile.

    Args:
        base: what to build from, as ``base_to_build_from`` says it.
    """
    return {"BASE": base, **_values(image)}


def labels(image: Image, inputs: str, state: str, owner: str) -> dict[str, str]:
    """Return the labels of the image: its name, its inputs, and who made it.

    Args:
        state: the identity of the state folder that it is made from.
        owner: who and where, for a reader.
    """
    return {
        IMAGE_LABEL: image.name,
        INPUTS_LABEL: inputs,
        STATE_LABEL: state,
        OWNER_LABEL: owner,
    }


def ignored(image: Image, dockerfile: str) -> tuple[str, ...]:
    """Build arguments with a value in image.yaml and no ``ARG`` in the Dockerfile.

    The interpreter is left out, which many builds do not need.
    """
    lines = (line.split() for line in dockerfile.splitlines())
    declared = {words[1].partition("=")[0] for words in lines if words[:1] == ["ARG"]}
    values = _values(image)
    return tuple(
        name for name in values if name not in {*declared, "PYTHON"} and values[name] != "none"
    )


def inputs_digest(
    image: Image, base_digest: str, files: Mapping[str, str], downloads: Mapping[str, str]
) -> str:
    """Return the sha256 of everything that goes into a build, as ``sha256:...``.

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
    """Return the tag, on every node, of the image built from these inputs."""
    return derived_tag(image.name, inputs)


def _values(image: Image) -> dict[str, str]:
    """Return the arguments that image.yaml alone decides, without empty ones."""
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


def pinned(base: str, digest: str, mirror: str | None) -> str:
    """Return the name that Docker pulls for a digest, from the mirror if there is one."""
    origin = reference(base)
    return f"{mirror or origin.host}/{origin.repository}@{digest}"
