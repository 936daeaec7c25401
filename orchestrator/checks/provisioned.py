"""Findings of provisioning itself, beside those from answers of nodes."""

from collections.abc import Sequence

from orchestrator import errors
from orchestrator.model.findings import found
from orchestrator.model.site import Finding, ImageRecord


def blocks_images(findings: Sequence[Finding]) -> bool:
    """Return True if an error rules images out: Docker does not work, or a disk is full."""
    codes = [finding.code for finding in findings if finding.severity == "error"]
    return any(code == "DISK-FULL" or code.startswith("DOCKER-") for code in codes)


def report_unfinished(failures: Sequence[errors.DlperfError]) -> Finding:
    """Return the finding that keeps sweeps off a cluster whose provisioning did not finish."""
    seen, fix = "findings that left no room for images", "mend what they name"
    if failures:
        seen, fix = f"{failures[0].code}: {failures[0].cause}", failures[0].fix or "mend that"
    return found("NOT-PROVISIONED", "all", seen, fix=fix)


def report_unprepared(error: errors.UnfitError) -> Finding:
    """Return the error that stopped the preparation of images as a finding."""
    node, needed = error.where.get("node", "all"), "images on every node, and containers that start"
    return found(error.code, node, error.cause, needed, error.fix, severity="error")


def report_unlocked(record: ImageRecord) -> Finding:
    """Return the finding of an image whose base may be another one tomorrow."""
    seen = f"{record.base} was {record.base_digest[:19]} when it was resolved"
    return found("UNLOCKED", "all", seen)
