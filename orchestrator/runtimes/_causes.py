"""From Docker's error messages to errors of ours."""

import re

from orchestrator import errors
from orchestrator.model import findings
from orchestrator.model.site import DOCKER_CODES, kind_of_silence

MISSING_FIX = (
    "correct the image's name or tag; a digest in the lock beside the inventory: provision --lock"
)
PROVISION_FIX = "run `dlperf-orch provision` again"
# Patterns of messages, the code that each stands for, and what to do. The first that matches
# counts: a registry's message comes wrapped in the engine's.
CAUSES = (
    (
        r"no space left on device",
        "DISK-FULL",
        "free space where the engine keeps images (docker info says where; /var/lib/containerd"
        " where its driver is overlayfs)",
    ),
    (
        r"toomanyrequests|429 Too Many|pull rate limit",
        "REG-RATELIMIT",
        "wait, log in (registry.user), or name a mirror (registry.mirror)",
    ),
    (
        r"filesystem layer verification failed|digest did not match|failed to verify|"
        r"manifest verification failed|failed digest|unexpected commit digest|"
        r"failed size validation",
        "REG-DIGEST",
        "the registry or something on the way to it damages what it sends; use another mirror",
    ),
    (
        r"manifest unknown|name unknown|manifest for .* not found|reference does not exist|"
        r"no such image|repository name not known|: not found",
        "IMAGE-MISSING",
        MISSING_FIX,
    ),
    (
        r"no basic auth credentials|unauthorized|authentication required|incorrect username|"
        r"pull access denied|requested access to the resource is denied|40[13] (?:Unauth|Forb)",
        "REG-AUTH",
        "give registry.user and its secret, and see that they may read this image",
    ),
    (
        r"\b5\d\d (?:Internal|Bad|Service|Gateway|HTTP)|HTTP status:? 5\d\d",
        "REG-5XX",
        "check the registry's log, or use another mirror",
    ),
    (
        r"server gave HTTP response to HTTPS client|x509|tls:",
        "REG-TLS",
        "give the registry a certificate that the nodes trust, or add it to insecure-registries"
        " of their daemon.json",
    ),
    (
        r"unexpected EOF|connection reset|: EOF\b",
        "REG-CUT",
        "something between node and registry cuts connections; use a mirror that is nearer",
    ),
    (
        r"no such host|connection refused|i/o timeout|no route to host|"
        r"network is unreachable|Client\.Timeout|server misbehaving|TLS handshake timeout",
        "REG-UNREACHABLE",
        "see that the node reaches the registry, or name a mirror (registry.mirror)",
    ),
    (
        r"client version .* is too (?:new|old)|requires API version|not supported by server",
        "DOCKER-API",
        "bring Docker on the node to 18.09 or later",
    ),
    (
        r"could not select device driver|unknown or invalid runtime name|unknown runtime|"
        r"nvidia-container-cli|unresolvable CDI devices|CDI device injection failed",
        "GPU-RUNTIME",
        "install the NVIDIA container toolkit on the node, or set container.gpu_access",
    ),
    (
        r"error setting rlimit|rlimit type",
        "ULIMIT",
        "the node does not allow container.ulimits of the inventory; lower them",
    ),
    (
        r"bind source path does not exist",
        "MOUNT-MISSING",
        "make the folder on the node, or correct `data` of the inventory",
    ),
)


def refusal(text: str, node: str, otherwise: str = "DOCKER-REFUSED") -> errors.DlperfError:
    """Return the error for an engine's message."""
    cause = " ".join(text.split()).rstrip(".")
    if kind_of_silence(cause) == "DOWN":
        return silence(cause, node, "", False)
    for words, code, fix in CAUSES:
        if re.search(words, cause, re.IGNORECASE):
            is_image = code.startswith("REG-") or code == "IMAGE-MISSING"
            kind = errors.ImageError if is_image else errors.UnfitError
            return kind(cause, code=code, node=node, fix=fix)
    return errors.UnfitError(cause or "no reason given", code=otherwise, node=node)


def missing_image(cause: str, node: str, fix: str = MISSING_FIX) -> errors.ImageError:
    return errors.ImageError(cause, code="IMAGE-MISSING", node=node, fix=fix)


def silence(text: str, node: str, user: str, sudo: bool) -> errors.UnfitError:
    """Return the error for a docker command that could not reach its engine.

    Args:
        text: its standard error.
        user: the login user.
        sudo: whether it was called by ``sudo -n``.
    """
    cause = " ".join(text.split()).rstrip(".")
    kind = kind_of_silence(cause) or "DOWN"
    code = DOCKER_CODES[kind]
    fix = findings.describe(code).fix
    if kind == "DENIED":
        cause = f"user {user} may not use Docker: {cause}"
        fix = "let this user run docker by `sudo -n` without a password" if sudo else fix
    return errors.UnfitError(cause or "no answer", code=code, node=node, fix=fix)
