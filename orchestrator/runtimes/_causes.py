"""From Docker's error messages to errors of ours."""

import re
from dataclasses import dataclass

from orchestrator import errors
from orchestrator.model import findings
from orchestrator.model.site import DOCKER_CODES, kind_of_silence


@dataclass(frozen=True, slots=True)
class _Cause:
    """A pattern of Docker's messages, the error that it stands for, and what to do."""

    words: str
    code: str
    fix: str
    kind: type[errors.DlperfError] = errors.ImageError


MISSING_FIX = (
    "correct the image's name or tag; a digest in the lock beside the inventory: provision --lock"
)
# The first that matches counts: a registry's message comes wrapped in the engine's.
CAUSES = (
    _Cause(
        r"no space left on device",
        "DISK-FULL",
        "free space where the engine keeps images (docker info says where; /var/lib/containerd"
        " where its driver is overlayfs)",
        errors.UnfitError,
    ),
    _Cause(
        r"toomanyrequests|429 Too Many|pull rate limit",
        "REG-RATELIMIT",
        "wait, log in (registry.user), or name a mirror (registry.mirror)",
    ),
    _Cause(
        r"filesystem layer verification failed|digest did not match|failed to verify|"
        r"manifest verification failed|failed digest|unexpected commit digest|"
        r"failed size validation",
        "REG-DIGEST",
        "the registry or something on the way to it damages what it sends; use another mirror",
    ),
    _Cause(
        r"manifest unknown|name unknown|manifest for .* not found|reference does not exist|"
        r"no such image|repository name not known|: not found",
        "IMAGE-MISSING",
        MISSING_FIX,
    ),
    _Cause(
        r"no basic auth credentials|unauthorized|authentication required|incorrect username|"
        r"pull access denied|requested access to the resource is denied|40[13] (?:Unauth|Forb)",
        "REG-AUTH",
        "give registry.user and its secret, and see that they may read this image",
    ),
    _Cause(
        r"\b5\d\d (?:Internal|Bad|Service|Gateway|HTTP)|HTTP status:? 5\d\d",
        "REG-5XX",
        "check the registry's log, or use another mirror",
    ),
    _Cause(
        r"server gave HTTP response to HTTPS client|x509|tls:",
        "REG-TLS",
        "give the registry a certificate that the nodes trust, or add it to insecure-registries"
        " of their daemon.json",
    ),
    _Cause(
        r"unexpected EOF|connection reset|: EOF\b",
        "REG-CUT",
        "something between node and registry cuts connections; use a mirror that is nearer",
    ),
    _Cause(
        r"no such host|connection refused|i/o timeout|no route to host|"
        r"network is unreachable|Client\.Timeout|server misbehaving|TLS handshake timeout",
        "REG-UNREACHABLE",
        "see that the node reaches the registry, or name a mirror (registry.mirror)",
    ),
    _Cause(
        r"client version .* is too (?:new|old)|requires API version|not supported by server",
        "DOCKER-API",
        "bring Docker on the node to 18.09 or later",
        errors.UnfitError,
    ),
    _Cause(
        r"could not select device driver|unknown or invalid runtime name|unknown runtime|"
        r"nvidia-container-cli|unresolvable CDI devices|CDI device injection failed",
        "GPU-RUNTIME",
        "install the NVIDIA container toolkit on the node, or set container.gpu_access",
        errors.UnfitError,
    ),
    _Cause(
        r"error setting rlimit|rlimit type",
        "ULIMIT",
        "the node does not allow container.ulimits of the inventory; lower them",
        errors.UnfitError,
    ),
    _Cause(
        r"bind source path does not exist",
        "MOUNT-MISSING",
        "make the folder on the node, or correct `data` of the inventory",
        errors.UnfitError,
    ),
)


# Source: Linux, include/uapi/asm-generic/resource.h; the names are those of Docker's ulimits.
_RLIMITS = {"3": "stack", "6": "nproc", "7": "nofile", "8": "memlock"}
_RLIMIT = re.compile(r"rlimit type (\d+)")


def refusal(text: str, node: str, otherwise: str) -> errors.DlperfError:
    """Return the error for an engine's message.

    Args:
        text: the message.
        otherwise: the code for a message that matches none of ``CAUSES``.
    """
    cause = _RLIMIT.sub(_with_name, " ".join(text.split()).rstrip("."))
    if kind_of_silence(cause) == "DOWN":
        return silence(cause, node, "", False)
    for entry in CAUSES:
        if re.search(entry.words, cause, re.IGNORECASE):
            return entry.kind(cause, code=entry.code, node=node, fix=entry.fix)
    return errors.UnfitError(cause or "no reason given", code=otherwise, node=node)


def _with_name(match: re.Match[str]) -> str:
    name = _RLIMITS.get(match[1])
    return f"{match[0]} ({name})" if name else match[0]


def silence(text: str, node: str, user: str, sudo: bool) -> errors.UnfitError:
    """Return the error for a docker command that could not reach its engine.

    Args:
        text: its standard error.
        user: the login user, and the owner of the socket, for the message.
        sudo: whether it was called by ``sudo -n``.
    """
    cause = " ".join(text.split()).rstrip(".")
    kind = kind_of_silence(cause) or "DOWN"
    code = DOCKER_CODES[kind]
    fix = findings.describe(code).fix
    if kind == "DENIED":
        cause = f"{user}: {cause}"
        fix = "let this user run docker by `sudo -n` without a password" if sudo else fix
    return errors.UnfitError(cause or "no answer", code=code, node=node, fix=fix)
