"""The classes of validation images: from a file here, or from one beside the sources on a node."""

from pathlib import Path

from orchestrator import errors
from orchestrator.datasets import labels
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet
from orchestrator.model.site import Finding
from orchestrator.preparing_data.plan import DataRequest, Planned
from orchestrator.transports import Transport

MOST_BYTES = 64 << 20


def given(path: Path | None) -> bytes | None:
    """The user's labels file as lines ``FILE CLASS``; None if none is given.

    Raises:
        LocalError: it cannot be read.
        UsageError: LABELS; it is in no known form.
    """
    if path is None:
        return None
    with on_disk(path, code="LABELS", fix="give a file that can be read"):
        text = path.read_text(errors="replace")
    try:
        return labels.lines(labels.parse(text, str(path))).encode()
    except errors.LogError as error:
        raise errors.UsageError(error.cause, code=error.code, fix=error.fix) from error


def beside(fleet: Fleet, request: DataRequest, planned: Planned) -> bytes | Finding:
    """The labels file among a node's sources, as lines ``FILE CLASS``; or a finding without one.

    Raises:
        NodeError: the node does not answer.
    """
    node, name = planned.node.name, planned.observed.labels
    if not name:
        return Finding(
            "error",
            "LABELS",
            node,
            f"neither --labels FILE nor {' or '.join(labels.NAMES)} in {request.source}",
            "the class of each validation image",
            "give --labels with one of these files, which come with ImageNet's tools",
        )
    path = f"{request.source}/{name}"
    try:
        text = _whole(fleet.transports[node], path).decode(errors="replace")
        return labels.lines(labels.parse(text, path)).encode()
    except errors.LogError as error:
        needed = "the class of each validation image"
        return Finding("error", error.code, node, error.cause, needed, error.fix)


def _whole(transport: Transport, path: str) -> bytes:
    content = b""
    while len(content) < MOST_BYTES and (piece := transport.get(path, len(content))):
        content += piece
    return content
