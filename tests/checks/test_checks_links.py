"""What GPUs are connected by is told before a sweep: few lanes, dead NVLinks, errors on them."""

from dataclasses import replace

from orchestrator import checks
from orchestrator.model.facts import Silent
from orchestrator.probes import nvlink
from tests import SAMPLES
from tests.checks.facts import V100, codes, driver, node

NODE = node()
FOLDER = SAMPLES / "health"
LINKS = nvlink.active((FOLDER / "azure_v100_nvlink_inactive.txt").read_text())
ERRORS = nvlink.errors((FOLDER / "scuffed_v100_nvlink_errors.txt").read_text())
SILENT = Silent("HUNG", "")


def test_a_gpu_on_few_lanes_is_told() -> None:
    """If it is in use; a driver that is silent is another finding."""
    narrow = replace(V100, pcie_width=8, pcie_width_max=16)
    whole = replace(V100, pcie_width=16, pcie_width_max=16)
    findings = list(checks.lanes(NODE, driver(whole, narrow, V100, V100)))
    assert codes(findings) == ["warning PCIE-WIDTH"]
    assert findings[0].seen == "GPU 1 uses 8 PCIe lanes"
    user = node(gpus={"count": 2, "use": [0]})
    assert codes(checks.lanes(user, driver(V100, narrow))) == []
    assert codes(checks.lanes(NODE, SILENT)) == []


def test_a_gpu_with_dead_links_is_told() -> None:
    """The recorded GPU 3 has two inactive NVLinks, others of its node would have none."""
    active = {**dict.fromkeys(range(3), (True,) * 6), **LINKS}
    (finding,) = checks.nvlinks(NODE, driver(*[V100] * 4), active, ())
    assert (finding.code, finding.severity) == ("NVLINK-DOWN", "warning")
    assert finding.seen == "GPU 3: NVLinks 3, 5 are inactive"
    assert finding.expected == "6 active, as on most GPUs of the node"


def test_a_gpu_all_of_whose_links_are_dead_is_told() -> None:
    """Beside others that have theirs; those of which one reports fewer links are whole."""
    active = {**dict.fromkeys(range(2), (True,) * 6), 2: (False,) * 6, 3: (True,) * 4}
    (finding,) = checks.nvlinks(NODE, driver(*[V100] * 4), active, ())
    assert (finding.code, finding.seen) == (
        "NVLINK-DOWN",
        "GPU 2: NVLinks 0, 1, 2, 3, 4, 5 are inactive",
    )


def test_errors_of_nvlinks_are_told_with_their_counts() -> None:
    """One finding for each GPU of the recorded machine that has any; none for one out of use."""
    gpus = driver(*[V100] * 4)
    first, second = checks.nvlinks(NODE, gpus, {}, ERRORS)
    assert (first.code, first.severity) == ("NVLINK-ERRORS", "warning")
    assert first.seen == "GPU 0: link 3: Replay Errors 211"
    assert second.seen == "GPU 2: link 0: Replay Errors 2, CRC Errors 65535"
    user = node(gpus={"count": 4, "use": [1, 2]})
    (only,) = checks.nvlinks(user, gpus, {}, ERRORS)
    assert only.seen == second.seen
    two = (*ERRORS, replace(ERRORS[1], link=4, counts={"Recovery Errors": 1}))
    *_, last = checks.nvlinks(NODE, gpus, {}, two)
    assert last.seen == f"{second.seen}; link 4: Recovery Errors 1"


def test_gpus_without_nvlinks_are_sound() -> None:
    """None active, or none at all; and what does not answer is not ill."""
    gpus = driver(V100, V100)
    assert codes(checks.nvlinks(NODE, gpus, dict.fromkeys(range(2), (False,) * 4), ())) == []
    assert codes(checks.nvlinks(NODE, gpus, {}, ())) == []
    assert codes(checks.nvlinks(NODE, gpus, SILENT, SILENT)) == []
    assert codes(checks.nvlinks(NODE, gpus, None, None)) == []
    assert codes(checks.nvlinks(NODE, SILENT, LINKS, ERRORS)) == []
