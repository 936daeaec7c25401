"""Which Docker the tests start: the machine's own, or what two variables of the environment name.

``DOCKER_BIN`` is a folder with another Docker's programs; ``DOCKER_IMAGE_STORE=containerd`` has its
engines keep images in containerd, and ``mixed`` those of every second node only. ``make engines``
sets them.
"""

import os

_BIN = os.environ.get("DOCKER_BIN", "")
_STORE = os.environ.get("DOCKER_IMAGE_STORE", "")


def path(standard: str) -> str:
    """A PATH on which that Docker comes first."""
    return f"{_BIN}:{standard}" if _BIN else standard


def image_store(place: int) -> dict[str, object]:
    """dockerd's setting of where images lie, on the node of that place, from 0."""
    if not _STORE:
        return {}
    in_containerd = _STORE == "containerd" or place % 2 == 1
    return {"features": {"containerd-snapshotter": in_containerd}}
