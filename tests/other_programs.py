"""Which Docker and which Slurm the tests start: the machine's own, or what the environment names.

``OTHER_BIN`` names folders, with colons between, whose programs come before the machine's own.
``DOCKER_IMAGE_STORE=containerd`` has Docker keep images in containerd, and ``mixed`` on every
second node only. ``make engines`` and ``make slurm`` set them.
"""

import os

_BIN = os.environ.get("OTHER_BIN", "")
_STORE = os.environ.get("DOCKER_IMAGE_STORE", "")


def path(standard: str) -> str:
    """A PATH on which these programs come first."""
    return f"{_BIN}:{standard}" if _BIN else standard


def image_store(place: int) -> dict[str, object]:
    """dockerd's setting of where images lie, on the node of that place, from 0."""
    if not _STORE:
        return {}
    in_containerd = _STORE == "containerd" or place % 2 == 1
    return {"features": {"containerd-snapshotter": in_containerd}}
