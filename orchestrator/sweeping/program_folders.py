"""Where a playbook's program lies: in an image, in a folder here, or pushed to the nodes."""

import sys

from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.image import Program
from orchestrator.model.site import Site


def of(playbook: user_files.Playbook, cluster: Cluster, site: Site | None) -> Program:
    """The program as plans and provenance name it; its digest is empty until it is provisioned."""
    if cluster.in_containers:
        record = site.images.get(playbook.image.name) if site else None
        if record is None:
            return Program(playbook.image.code, playbook.image.python, "")
        file = record.tag if cluster.from_files else ""
        return Program(record.code, record.python, record.id, file, record.ids)
    digest = user_files.folder_digest(playbook.image_folder)
    if cluster.shares_files:
        return Program(str(playbook.image_folder), sys.executable, digest)
    folder = cluster.members[0].folder
    return Program(f"{folder}/code/{digest[7:23]}", playbook.image.python, digest)
