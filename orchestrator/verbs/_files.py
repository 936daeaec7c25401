"""The files that a user writes, found, read and judged, with every complaint at once."""

import difflib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator import errors, load, matrix, shipped, workloads
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image
from orchestrator.model.text import Contradiction, Noun
from orchestrator.workloads import Workload

N = TypeVar("N", bound=Noun)


@dataclass(frozen=True, slots=True)
class Playbook:
    """A playbook with everything that it names, brought together."""

    name: str
    document: load.Document
    experiment: Experiment
    workload: Workload
    image: Image
    image_folder: Path


def cluster(name: str) -> tuple[Cluster, Path]:
    """The inventory of that name or path, judged, and where it lies.

    Raises:
        ConfigError: all that is wrong with it.
        UsageError: there is none.
    """
    path = _found("inventory", name)
    return judged_cluster(load.read(path)), path


def judged_cluster(document: load.Document) -> Cluster:
    """The inventory in a document.

    Raises:
        ConfigError: all that is wrong with it.
    """
    found = load.validated(document, Cluster)
    refuse(document, found.contradictions())
    return found


def playbook(name: str) -> Playbook:
    """The playbook of that name or path, judged as far as that needs no inventory.

    Raises:
        ConfigError: all that is wrong with it.
        UsageError: there is none.
    """
    path = _found("playbooks", name)
    return judged_playbook(load.read(path), path.stem)


def judged_playbook(document: load.Document, name: str) -> Playbook:
    """The playbook in a document.

    Raises:
        ConfigError: all that is wrong with it.
    """
    experiment = load.validated(document, Experiment)
    unknown = list(_unknown(experiment))
    workload = workloads.find(experiment.workload)
    if workload is None:
        refuse(document, unknown)
        raise AssertionError("an unknown workload is a complaint")
    refuse(document, [*unknown, *matrix.contradictions(experiment, workload, None)])
    image, folder = _image(experiment.image)
    return Playbook(name, document, experiment, workload, image, folder)


def refuse_on(found: Playbook, where: Cluster) -> None:
    """Judge a playbook on the cluster where it is to run.

    Raises:
        ConfigError: all that cannot be there.
    """
    refuse(found.document, matrix.contradictions(found.experiment, found.workload, where))


def judged_image(document: load.Document) -> Image:
    """The image definition in a document.

    Raises:
        ConfigError: all that is wrong with it.
    """
    return load.validated(document, Image)


def refuse(document: load.Document, found: Iterable[Contradiction]) -> None:
    """Raise all contradictions of a document as complaints, if there are any.

    Raises:
        ConfigError: there are some.
    """
    complaints = [document.complaint(each.path, each.text) for each in found]
    if complaints:
        raise errors.ConfigError(complaints)


def folder_digest(folder: Path) -> str:
    """sha256 over the names and contents of a folder's files, as ``sha256:...``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"


def _unknown(experiment: Experiment) -> Iterable[Contradiction]:
    places = (
        ("workload", experiment.workload, workloads.names()),
        ("image", experiment.image, tuple(shipped.names("images"))),
    )
    for key, name, known in places:
        if name not in known:
            hint = difflib.get_close_matches(name, known, 1)
            also = f"; did you mean {hint[0]!r}" if hint else ""
            yield Contradiction(
                (key,), f"there is no {key} {name!r}; needed one of {', '.join(known)}{also}"
            )


def _image(name: str) -> tuple[Image, Path]:
    path = shipped.names("images")[name]
    return judged_image(load.read(path)), path.parent.resolve()


def _found(kind: shipped.Kind, name: str) -> Path:
    path = shipped.find(kind, name)
    if path is None:
        known = shipped.names(kind)
        hint = difflib.get_close_matches(Path(name).stem, known, 1)
        what = {"inventory": "inventory", "playbooks": "playbook", "images": "image"}[kind]
        raise errors.UsageError(
            f"there is no {what} {name!r}; here and shipped are: {', '.join(known) or 'none'}",
            code="NO-FILE",
            fix=f"did you mean {hint[0]}?" if hint else f"give a path to the {what}",
        )
    return path
