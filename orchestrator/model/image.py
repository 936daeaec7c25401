"""An image that we define: its base, what of ours lies in it, its lock, and bundles of images.

A bundle holds images and downloads as files in a folder, for nodes that no registry reaches.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from orchestrator.model.text import (
    AbsolutePath,
    Conflict,
    ImageReference,
    Matching,
    Module,
    Name,
    Noun,
    ProgramName,
    Scalar,
    Words,
)

# Every value below gets into a shell inside `docker build`: what a pattern lets through is plain
# there, and no word begins with '-'.
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?"
_REST = r"(/[A-Za-z0-9_.~+%=-]+)*"
_FILE = r"[A-Za-z0-9]([A-Za-z0-9_.+-]|%2[Bb])*"
_URL = rf"https?://{_HOST}{_REST}"
_COMMIT = r"[0-9a-f]{40}"
_PACKAGE = r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?"
_PROJECT = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = (
    rf"{_PROJECT}(\[{_PROJECT}(,{_PROJECT})*\])?==[A-Za-z0-9][A-Za-z0-9.+]*"
    rf"|git\+{_URL}@{_COMMIT}(#egg={_PROJECT})?"
)
_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
# What an image says of its containers.
_SETTINGS = (
    *("ArgsEscaped", "Cmd", "Entrypoint", "Env", "ExposedPorts", "Healthcheck", "Labels"),
    *("OnBuild", "Shell", "StopSignal", "User", "Volumes", "WorkingDir"),
)
BUNDLE_FILE = "bundle.json"
IMAGE_LABEL, INPUTS_LABEL = "dlperf.image", "dlperf.inputs"
STATE_LABEL, OWNER_LABEL = "dlperf.state", "dlperf.owner"


ImageName = Annotated[
    str,
    Matching(
        r"(?=.{2,63}$)[a-z0-9]+([._-][a-z0-9]+)*",
        "2 to 63 letters: small letters and digits with single '_', '.' or '-' between them, as"
        " Docker's names have",
    ),
]
Url = Annotated[
    str,
    Field(max_length=500),
    Matching(rf"{_URL}/?", "http(s)://host/path without a password, a query or a fragment"),
]
FileUrl = Annotated[
    str,
    Field(max_length=500),
    Matching(rf"{_URL}/{_FILE}", "http(s)://host/path/file without a password or a query"),
]
WheelUrl = Annotated[
    str,
    Field(max_length=500),
    Matching(rf"{_URL}/{_FILE}\.whl", "http(s)://host/path/file.whl without a password or a query"),
]
Digest = Annotated[str, Matching(r"sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits")]
Commit = Annotated[
    str, Matching(_COMMIT, "a whole commit id, 40 hexadecimal digits in small letters")
]
Package = Annotated[str, Matching(_PACKAGE, "a Debian package, such as git or git=1:2.17.1-1")]
Requirement = Annotated[
    str,
    Matching(_REQUIREMENT, "NAME==VERSION or git+https://HOST/PATH@COMMIT"),
]
OfedVersion = Annotated[
    str, Matching(r"[0-9]+\.[0-9]+(-[0-9]+(\.[0-9]+)*)?", "a version such as 4.9-0.1.7.0")
]
DriverVersion = Annotated[
    str,
    Matching(r"[0-9]+(\.[0-9]+){1,2}", "an NVIDIA driver's version, such as 440.33"),
]
PathInside = Annotated[
    str,
    Matching(
        r"(?!(.*/)?\.{0,2}(/|$))[A-Za-z0-9_.][A-Za-z0-9_./+-]*",
        "a path inside the repository, without '..', '.', '//', blanks or shell characters",
    ),
]
Tag = Annotated[
    str,
    Matching(
        r"dlperf/[a-z0-9]+([._-][a-z0-9]+)*:[0-9a-f]{16}",
        "dlperf/NAME: and 16 hexadecimal digits",
    ),
]
ImageFile = Annotated[str, Matching(rf"images/{_PART}\.tar", "images/NAME.tar")]
DownloadFile = Annotated[str, Matching(rf"downloads/{_PART}", "downloads/NAME")]


def derive_tag(name: str, inputs: str) -> str:
    """Return the name, on every node, of the image built from these inputs (``sha256:...``)."""
    repository = name.replace("@", "-").lower()  # a base's tag may have capitals
    return f"dlperf/{repository}:{inputs.removeprefix('sha256:')[:16]}"


def file_name(url: str) -> str:
    """Return the name of a download inside the build; a URL may write ``+`` as ``%2B``."""
    return re.sub("%2b", "+", url.rpartition("/")[2], flags=re.IGNORECASE)


class Ofed(Noun):
    """MLNX_OFED, whose user space ``infiniband: mlnx_ofed`` puts into the image."""

    url: FileUrl
    """The URL of its tarball; its sha256 belongs to the lock."""
    version: OfedVersion
    """The version that ``ofed_info -s`` must print once it is installed."""
    packages: tuple[Package, ...] = ()
    """Packages that its installer needs."""


class Apt(Noun):
    """Packages of the image's distribution."""

    packages: tuple[Package, ...] = ()
    """Installed in any case."""
    infiniband: tuple[Package, ...] = ("ibverbs-providers", "ibverbs-utils", "infiniband-diags")
    """Packages that ``infiniband: distribution`` installs."""
    mirror: Url | None = None
    """Take packages from here instead of from where the image says."""


class Source(Noun):
    """The benchmark's own code, at one commit."""

    url: Url
    """A git repository."""
    commit: Commit
    """The commit to use."""
    path: PathInside | None = None
    """The folder in it whose content becomes ``code``; else all of it."""


class Image(Noun):
    """The validated image.yaml."""

    name: ImageName
    description: Words | None = None
    base: ImageReference
    """The base image; its digest belongs to the lock, never to this file."""
    archive: FileUrl | None = None
    """A file of `docker save` that holds the base, where no registry has it."""
    workloads: tuple[Name, ...] = ()
    """Workloads whose programs lie in it; empty where it does not say. A playbook that wants one of
    another image is refused."""
    requires: tuple[Module, ...] = ()
    """Python modules that must be importable where the program runs as a plain process."""
    extra: Name | None = None
    """The extra of this package that brings those modules."""
    python: ProgramName = "python"
    """The interpreter, inside the image."""
    code: AbsolutePath = "/workspace"
    """The program's folder inside the image."""
    params: dict[str, Scalar] = Field(default_factory=dict)
    """Parameters of a workload that this image decides, such as the release of its program;
    playbooks that say otherwise are refused."""
    driver: DriverVersion | None = None
    """The oldest NVIDIA driver that it runs on."""
    ofed: Ofed | None = None
    """The source of MLNX_OFED, which is used only if ``infiniband`` says so."""
    infiniband: Literal["mlnx_ofed", "distribution", "none"] = "none"
    """User space for InfiniBand to install: that of ``ofed``, the distribution's, or no other
    than what the base has."""
    apt: Apt = Field(default_factory=Apt)
    """Packages of the image's distribution."""
    pip: tuple[Requirement, ...] = ()
    """Python packages, each at one version and without what it depends on: pip could put another
    PyTorch in place of the base's."""
    wheels: tuple[WheelUrl, ...] = ()
    """Python packages from where they lie, for those that no index has; likewise without what they
    depend on."""
    left_open: tuple[Literal["wheels"], ...] = ()
    """Keys that whoever uses the image must say: nothing is built until they are there."""
    source: Source | None = None
    """The benchmark's code; else it lies beside this file."""

    @field_validator("infiniband")
    @classmethod
    def _ofed_has_a_source(cls, value: str, info: ValidationInfo) -> str:
        if value == "mlnx_ofed" and info.data.get("ofed", "misfit") is None:
            raise ValueError("mlnx_ofed; needed `ofed: {url: ..., version: ...}` beside it")
        return value

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the distribution's packages to install, depending on ``infiniband``."""
        ofed = self.ofed.packages if self.ofed else ()
        ours = {"mlnx_ofed": ofed, "distribution": self.apt.infiniband, "none": ()}
        return tuple(dict.fromkeys((*self.apt.packages, *ours[self.infiniband])))

    @property
    def ofed_url(self) -> str | None:
        return self.ofed.url if self.ofed and self.infiniband == "mlnx_ofed" else None

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the URLs of the files that go into the build."""
        return tuple(filter(None, (self.ofed_url, *self.wheels)))

    @property
    def downloads(self) -> tuple[str, ...]:
        """Return the URLs that the controller fetches: the parts, and the base's archive."""
        return tuple(filter(None, (*self.parts, self.archive)))

    def unsaid(self) -> Iterator[Conflict]:
        """Yield the key of ``left_open`` if it is missing; only building the image needs it."""
        if self.left_open and not self.wheels:
            yield Conflict(
                ("left_open", 0),
                "wheels is left to whoever uses this image; needed `wheels:` in a copy of this"
                " folder, in images/ where you work",
            )


@dataclass(frozen=True, slots=True)
class Program:
    """The paths and the digest of an image's program, the same on every node.

    Args:
        digest: of everything in it, as ``sha256:...``; empty while it is not known.
        image: what its containers are started from, where that is not the digest: a file.
        ids: by node name, the id of its image where the node's engine calls it otherwise.
    """

    code: str
    python: str
    digest: str
    image: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeldImage:
    """An image as an engine or a bundle has it.

    Args:
        id: what its engine calls it: the digest of its configuration, or of its manifest where the
            engine keeps images in containerd.
        inputs: from its label, if it has one.
        content: what is the same on every engine (``content_digest``).
    """

    id: str
    inputs: str | None
    content: str
    repo_digests: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and secret for a registry; the secret is never shown."""

    user: str
    secret: str = field(repr=False)


def content_digest(layers: Iterable[str], settings: Mapping[str, object]) -> str:
    """Return the digest of an image's content, ``sha256:...``, the same in every engine.

    Args:
        layers: digests of the layers as tar files that are not compressed, the lowest first.
        settings: ``config`` of the image's configuration; what says nothing does not count.

    Source: OCI image specification 1.1, config.md, "config"; ``Healthcheck``, ``OnBuild`` and
    ``Shell`` are Docker's.
    """
    said = {name: settings[name] for name in _SETTINGS if settings.get(name)}
    plain = json.dumps([list(layers), said], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(plain.encode()).hexdigest()}"


class LockFile(Noun):
    """The validated lock file; its JSON is also YAML, and read as strictly."""

    version: Literal[1]
    images: dict[ImageReference, Digest] = Field(default_factory=dict)
    """The digest that its registry reported, for each base reference."""
    downloads: dict[FileUrl, Digest] = Field(default_factory=dict)
    """The sha256 of the downloaded bytes, for each URL."""

    def extend(self, images: Mapping[str, str], downloads: Mapping[str, str]) -> "LockFile":
        """Return a copy with these digests, which replace those of the same names."""
        return LockFile(
            version=self.version,
            images={**self.images, **images},
            downloads={**self.downloads, **downloads},
        )

    def text(self) -> str:
        """Return the content of the lock file, sorted so that its diffs are small."""
        return json.dumps(self.model_dump(), indent=2, sort_keys=True) + "\n"


class _BundledFile(Noun):
    file: str
    sha256: Digest
    """Digest of the file."""
    size: Annotated[int, Field(ge=1)]
    """Size of the file, in bytes."""


class BundledImage(_BundledFile):
    """A derived image, as `docker save` wrote it."""

    name: ImageName
    tag: Tag
    id: Digest
    """The image's id in the engine that saved it."""
    content: Digest
    """Digest of its layers and settings, which each node must show after loading."""
    base: ImageReference
    base_digest: Digest
    inputs: Digest
    """Digest of everything that went in."""
    file: ImageFile


class BundledDownload(_BundledFile):
    """A file that an image is built from."""

    url: FileUrl
    file: DownloadFile


class Bundle(Noun):
    """The validated bundle.json."""

    version: Literal[1]
    created: Words
    """Time of creation, in UTC."""
    images: tuple[BundledImage, ...] = ()
    downloads: tuple[BundledDownload, ...] = ()

    @property
    def files(self) -> dict[str, str]:
        """Map each file of the bundle, by its path in it, to the sha256 that it must have."""
        return {part.file: part.sha256 for part in (*self.images, *self.downloads)}

    def text(self) -> str:
        return json.dumps(self.model_dump(), indent=2) + "\n"
