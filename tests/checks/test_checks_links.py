"""What GPUs are connected by is told before a sweep: few lanes, dead NVLinks, errors on them."""

from dataclasses import replace

from orchestrator.checks import gpu as gpu_checks
from orchestrator.model.facts import GpuFacts, Silent
from orchestrator.probes import gpu, topology
from tests import SAMPLES
from tests.checks.facts import V100, codes, driver, node

NODE = node()
FOLDER = SAMPLES / "health"
LINKS = topology.nvlinks((FOLDER / "azure_v100_nvlink_inactive.txt").read_text())
ERRORS = topology.nvlink_errors((FOLDER / "scuffed_v100_nvlink_errors.txt").read_text())
SILENT = Silent("HUNG", "")


def recorded(name: str) -> GpuFacts:
    """The GPU of a recorded `nvidia-smi -q -x`."""
    (one,) = gpu.parse((SAMPLES / "nvidia-smi" / name).read_text()).gpus
    return one


def found(*gpus: GpuFacts, **defaults: object) -> list[tuple[str, str]]:
    """Code and what was seen, about the lanes of GPUs of one node."""
    findings = gpu_checks.gpus(node(**defaults), driver(*gpus))
    return [(found.code, found.seen) for found in findings if found.code.startswith("PCIE-")]


def test_a_gpu_on_few_lanes_is_told() -> None:
    """If it is in use."""
    narrow = replace(V100, pcie_width=8, pcie_width_max=16)
    whole = replace(V100, pcie_width=16, pcie_width_max=16)
    said = ("PCIE-WIDTH", "GPU 1: uses 8 of 16 PCIe lanes")
    assert found(whole, narrow, V100, V100) == [said]
    assert found(V100, narrow, gpus={"count": 2, "use": [0]}) == []


def test_what_an_idle_gpu_saves_is_not_told() -> None:
    """Where it uses an older PCIe than it can, it may use fewer lanes too; awake it may not."""
    idle = replace(recorded("telegraf_a10g.xml"), virtual=False)
    assert (idle.pcie_generation, idle.pcie_width, idle.pcie_width_max) == (1, 8, 16)
    assert found(idle) == []
    awake = replace(idle, pcie_generation=4)
    assert found(awake) == [("PCIE-WIDTH", "GPU 0: uses 8 of 16 PCIe lanes")]


def test_lanes_of_gpus_in_virtual_machines_are_not_judged() -> None:
    """The recorded T4 of a cloud is awake and has 8 of 16 lanes, as all of its kind there."""
    cloud = recorded("telegraf_tesla-t4.xml")
    assert (cloud.virtual, cloud.pcie_generation, cloud.pcie_generation_max) == (True, 3, 3)
    assert found(cloud, replace(cloud, pcie_width=4)) == []


def test_a_link_that_is_slower_than_both_its_ends_is_told() -> None:
    """The recorded A100 and its slot have generation 4; a slot that has less is no fault."""
    whole = recorded("telegraf_a100-sxm4-v12.xml")
    assert found(whole) == []
    limited = replace(whole, pcie_generation=3, pcie_generation_max=3)
    assert found(limited) == [("PCIE-SPEED", "GPU 0: reaches PCIe generation 3 of 4")]
    assert found(replace(limited, pcie_generation_slot=3)) == []
    assert found(replace(limited, pcie_generation_gpu=None)) == []
    assert found(replace(limited, virtual=True)) == []


def test_a_gpu_that_is_slower_than_others_of_its_model_is_told() -> None:
    """By what it reaches; another model may be slower."""
    whole = replace(recorded("netdata_a100-sxm4-mig.xml"), virtual=False)
    limited = replace(whole, pcie_generation=3, pcie_generation_max=3)
    assert found(whole, limited) == [("PCIE-SPEED", "GPU 1: reaches PCIe generation 3 of 4")]
    assert found(whole, replace(limited, model="another")) == []
    assert found(whole, replace(whole, pcie_generation=1)) == []


def test_a_gpu_with_dead_links_is_told() -> None:
    """The recorded GPU 3 has two inactive NVLinks, others of its node would have none."""
    active = {**dict.fromkeys(range(3), (True,) * 6), **LINKS}
    (finding,) = gpu_checks.nvlinks(NODE, driver(*[V100] * 4), active, {})
    assert (finding.code, finding.severity) == ("NVLINK-DOWN", "warning")
    assert finding.seen == "GPU 3: NVLinks 3, 5 are inactive"
    assert finding.expected == "6 active, as on most GPUs of the node"


def test_a_gpu_all_of_whose_links_are_dead_is_told() -> None:
    """Beside others that have theirs; those of which one reports fewer links are whole."""
    active = {**dict.fromkeys(range(2), (True,) * 6), 2: (False,) * 6, 3: (True,) * 4}
    (finding,) = gpu_checks.nvlinks(NODE, driver(*[V100] * 4), active, {})
    assert (finding.code, finding.seen) == (
        "NVLINK-DOWN",
        "GPU 2: NVLinks 0, 1, 2, 3, 4, 5 are inactive",
    )


def test_errors_of_nvlinks_are_told_with_their_counts() -> None:
    """One finding for each GPU of the recorded machine that has any; none for one out of use."""
    gpus = driver(*[V100] * 4)
    first, second = gpu_checks.nvlinks(NODE, gpus, {}, ERRORS)
    assert (first.code, first.severity) == ("NVLINK-ERRORS", "warning")
    assert first.seen == "GPU 0: link 3: Replay Errors 211"
    assert second.seen == "GPU 2: link 0: Replay Errors 2, CRC Errors 65535"
    user = node(gpus={"count": 4, "use": [1, 2]})
    (only,) = gpu_checks.nvlinks(user, gpus, {}, ERRORS)
    assert only.seen == second.seen
    two = {**ERRORS, (2, 4): {"Recovery Errors": 1}}
    *_, last = gpu_checks.nvlinks(NODE, gpus, {}, two)
    assert last.seen == f"{second.seen}; link 4: Recovery Errors 1"


def test_gpus_without_nvlinks_are_sound() -> None:
    """None active, or none at all; and what does not answer is not ill."""
    gpus = driver(V100, V100)
    assert codes(gpu_checks.nvlinks(NODE, gpus, dict.fromkeys(range(2), (False,) * 4), {})) == []
    assert codes(gpu_checks.nvlinks(NODE, gpus, {}, {})) == []
    assert codes(gpu_checks.nvlinks(NODE, gpus, SILENT, SILENT)) == []
    assert codes(gpu_checks.nvlinks(NODE, gpus, None, None)) == []
    assert codes(gpu_checks.nvlinks(NODE, SILENT, LINKS, ERRORS)) == []
