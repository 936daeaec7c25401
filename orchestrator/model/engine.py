"""Why a node's docker command does not reach the node's own Docker, by what it prints."""

import re

REMEDIES = {
    "ABSENT": ("DOCKER-MISSING", "install Docker, or use runtime: process"),
    "HUNG": ("DOCKER-HUNG", "restart the engine (systemctl restart docker)"),
    "DENIED": (
        "DOCKER-PERM",
        "put {user} into the group docker, or say `sudo: true` where sudo -n docker works",
    ),
    "DOWN": ("DOCKER-DOWN", "start the engine (systemctl start docker)"),
    "FOREIGN": (
        "DOCKER-FOREIGN",
        "let `docker` on the node reach the node's own Docker (no podman-docker, no rootless one,"
        " no DOCKER_HOST or context of another machine), or use runtime: process",
    ),
}
"""The finding's code and the fix, for each kind of silence."""

# The first that matches counts. Sources: podman 4.3.1 of Debian 12 with podman-docker; CLIs 20.10
# and 28.2.2; since 29 the client's words are others (moby/moby, client/request.go).
_KINDS = (
    # "Emulate Docker CLI using podman. Create ...", "podman version 4.3.1"
    (r"podman", "FOREIGN"),
    (r"command not found|sudo: .*not found", "ABSENT"),
    (r"permission denied|a password is required|not allowed to execute|^sudo: ", "DENIED"),
    # "Cannot connect to the Docker daemon at tcp://10.0.0.9:2375. Is the docker daemon running?"
    (r"(?:docker daemon|docker API) at (?!unix:)\w+:|command \[ssh .* dial-stdio\]", "FOREIGN"),
    (
        r"Cannot connect to the Docker daemon|docker daemon is not running"
        r"|failed to connect to the docker API|error during connect",
        "DOWN",
    ),
    (r"not found|no such file or directory$", "ABSENT"),
)


def kind_of_silence(said: str) -> str:
    """Return a key of ``REMEDIES`` for what the docker command printed; empty if unknown."""
    words = " ".join(said.split()).rstrip(".")
    return next((kind for words_of, kind in _KINDS if re.search(words_of, words, re.I)), "")
