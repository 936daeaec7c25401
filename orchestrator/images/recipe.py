"""What goes into an image, and what it is called: its recipe, the digest of its inputs, its tag."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.images.base import pinned
from orchestrator.model.image import Image, derived_tag, file_name

# Raised when a recipe as a whole means something else: then every image is built anew.
_FORMAT = 1
INPUTS_LABEL = "dlperf.inputs"


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
