"""Where a playbook's program lies: in an image, in a folder here, or pushed to the nodes."""

import sys
from pathlib import Path

from orchestrator import errors
from orchestrator.inputs import yaml_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import Program
from orchestrator.model.site import ImageRecord, Site


def of(found: yaml_files.Playbook, cluster: Cluster, site: Site | None) -> Program:
    """The program as plans and provenance name it; without a digest where none is known yet."""
    if cluster.in_containers:
        record = site.images.get(found.image.name) if site else None
        if record is None:
            return Program(found.image.code, found.image.python, "")
        return Program(record.code, record.python, record.id)
    digest = yaml_files.folder_digest(found.image_folder)
    if cluster.is_here:
        return Program(str(found.image_folder), sys.executable, digest)
    folder = cluster.members[0].folder
    return Program(f"{folder}/code/{digest[7:23]}", found.image.python, digest)


def record(found: yaml_files.Playbook, cluster: Cluster, site: Site | None) -> ImageRecord:
    """The image that provisioning prepared.

    Raises:
        UnfitError: it never did.
    """
    known = site.images.get(found.image.name) if site else None
    if known is None:
        raise errors.UnfitError(
            f"image {found.image.name} was never prepared on cluster {cluster.name}",
            code="IMAGE-NOT-PROVISIONED",
            fix=f"dlperf-orch provision INVENTORY --image {found.image.name}",
        )
    return known


def files(folder: Path) -> dict[str, bytes]:
    """What a program's folder holds, by path below it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
