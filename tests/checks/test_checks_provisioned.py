"""What a provisioning itself finds: room for images, an end that was not reached, open digests."""

import pytest

from orchestrator import errors
from orchestrator.checks import provisioned
from orchestrator.model.site import Finding, ImageRecord


@pytest.mark.parametrize(
    ("severity", "code", "blocks"),
    [
        ("error", "DISK-FULL", True),
        ("error", "DOCKER-DOWN", True),
        ("warning", "DOCKER-OLD", False),
        ("error", "GPU-COUNT", False),
    ],
)
def test_images_need_an_engine_and_room(severity: str, code: str, blocks: bool) -> None:
    """A warning, or an error of something else, keeps no image off a node."""
    finding = Finding("error" if severity == "error" else "warning", code, "vs001", "", "", "")
    assert provisioned.blocks_images([finding]) is blocks


def test_an_unfinished_provisioning_names_its_first_failure() -> None:
    """Without one it was findings that left no room for images."""
    silent = errors.NodeError("no answer in 10 s", code="SILENT", node="vs002", fix="look at it")
    finding = provisioned.report_unfinished([silent])
    assert (finding.code, finding.seen) == ("NOT-PROVISIONED", "SILENT: no answer in 10 s")
    assert finding.fix == "look at it"  # "then provision again" is added by a sweep
    assert provisioned.report_unfinished([]).seen == "findings that left no room for images"


def test_what_stopped_the_images_is_a_finding_of_its_node() -> None:
    """With the error's own code and fix; of all nodes where it names none."""
    fix = "free some space"
    full = errors.UnfitError("3 GiB free", code="DISK-FULL", node="vs001", fix=fix)
    finding = provisioned.report_unprepared(full)
    assert (finding.code, finding.node, finding.fix) == ("DISK-FULL", "vs001", fix)
    assert provisioned.report_unprepared(errors.UnfitError("x", code="C", fix=fix)).node == "all"


def test_an_image_without_a_locked_base_is_a_warning() -> None:
    """It names the base and the digest that it had."""
    finding = provisioned.report_unlocked(
        ImageRecord(
            name="ngc",
            base="pytorch:20.03",
            base_digest="sha256:0123456789abcdef0123456789abcdef",
            id="sha256:1",
            tag="dlperf/ngc:1",
            inputs_digest="1",
            code="",
            python="3.6.10",
            locked=False,
        )
    )
    assert (finding.severity, finding.code) == ("warning", "UNLOCKED")
    assert finding.seen == "pytorch:20.03 was sha256:0123456789ab when it was resolved"
