"""Findings about drivers, GPUs, PCIe lanes and NVLinks."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from orchestrator.checks import gpu as gpu_checks
from orchestrator.model.facts import DriverFacts, GpuFacts, GpuProcess, Silent
from orchestrator.model.problem import Problem
from orchestrator.model.site import Finding
from orchestrator.probes import gpu, topology
from tests import SAMPLES
from tests.checks.facts import V100, changed, driver, node, table

MANY = {"count": 8}


def silent(code: str, message: str) -> Iterator[Finding]:
    return gpu_checks.gpus(node(gpus=MANY), Silent(code, message))


def older(version: str | None) -> Iterator[Finding]:
    """Judge a node of that driver for images that run on 440.33.01."""
    return gpu_checks.gpus(node(), DriverFacts(version, "10.2", (), ()), driver="440.33.01")


LOST = "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost."
UNKNOWN = "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error"
FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
RESET = "GPU 00000000:0A:00.0 requires a reset"


test_driver = table(
    not_asked=(gpu_checks.gpus(node(), None), ""),
    hung=(silent("HUNG", ""), "error GPU-QUERY-HUNG"),
    absent=(silent("ABSENT", "sh: 1: nvidia-smi: not found"), "error GPU-NO-DRIVER"),
    failed=(silent("UNREADABLE", FAILED), "error GPU-NO-DRIVER"),
    mismatch=(
        silent("UNREADABLE", "Failed to initialize NVML: Driver/library version mismatch"),
        "error GPU-DRIVER-MISMATCH",
    ),
    lost=(silent("UNREADABLE", LOST), "error GPU-LOST"),
    handle=(silent("UNREADABLE", UNKNOWN), "error GPU-LOST"),
    reset=(silent("UNREADABLE", RESET), "error GPU-RECOVERY"),
    no_devices=(silent("UNREADABLE", "No devices were found"), "error GPU-COUNT"),
    other=(silent("UNREADABLE", "<?xml version="), "error GPU-QUERY-FAILED"),
    driver_as_old=(older("440.33.01"), ""),
    driver_newer=(older("440.100"), ""),
    driver_older=(older("440.33"), "error GPU-DRIVER-OLD"),
    driver_much_older=(older("418.87.00"), "error GPU-DRIVER-OLD"),
    driver_unknown=(older(None), ""),
)


def gpus(*there: GpuFacts, **declared: object) -> Iterator[Finding]:
    return gpu_checks.gpus(node(gpus=declared), driver(*there))


def spoiled(**change: object) -> Iterator[Finding]:
    """Judge two GPUs, the second of them with the change."""
    return gpus(V100, changed(V100, **change), count=2)


def slowed(*reasons: str) -> Iterator[Finding]:
    return spoiled(throttle_reasons=reasons)


def fabric(**words: str) -> Iterator[Finding]:
    return gpus(*[replace(V100, fabric=words)] * 8)


SILENT = changed(
    V100,
    **dict.fromkeys(("ecc_uncorrected", "ecc_volatile_uncorrected", "ecc_sram_uncorrected")),
    **dict.fromkeys(("page_retirement_pending", "persistence", "mig", "throttle_reasons")),
    processes=None,
)
V100_32GB = replace(V100, model="Tesla V100-SXM2-32GB")
OFF = replace(V100, persistence=False)
BROKEN = replace(OFF, ecc_volatile_uncorrected=7)
READY = {"state": "Completed", "status": "Success", "summary": "Healthy", "bandwidth": "Full"} | {
    "route_unhealthy": "False",
    "incorrect_configuration": "None",
    "gfm_state": "Connected",
}
NORMAL = ("gpu_idle", "applications_clocks_setting", "sync_boost", "display_clocks_setting")
UNREAD = driver(V100, problems=(Problem("ATTACHED-GPUS", "2 are announced, 1 is there"),))
WARNED = driver(V100, problems=(Problem("GPU-WARNING", "WARNING: infoROM is corrupted"),))


# A finding names GPUs by index, so that a person finds them on the node.
test_gpus = table(
    fit=(gpus(V100, SILENT, count=2, model="Tesla V100-SXM2-16GB"), ""),
    not_declared=(gpu_checks.gpus(node(), driver(V100)), ""),
    not_declared_but_broken=(
        gpu_checks.gpus(node(), driver(BROKEN)),
        "error GPU-ECC, warning GPU-PERSISTENCE",
    ),
    one_of_two=(gpus(V100, count=2), "error GPU-COUNT"),
    three_of_two=(gpus(V100, V100, V100, count=2), "error GPU-COUNT"),
    # Eight GPUs of another kind are one thing to mend; a name that cannot be read is another
    models=(
        gpus(V100, V100_32GB, V100_32GB, replace(V100, model=None), model="Tesla V100-SXM2-16GB"),
        "error GPU-MODEL, error GPU-MODEL",
    ),
    ecc_since_boot=(spoiled(ecc_volatile_uncorrected=1), "error GPU-ECC"),
    ecc_sram=(spoiled(ecc_uncorrected=5, ecc_sram_uncorrected=2), "error GPU-ECC"),
    # Counts over a GPU's life stay through reboots
    ecc_dram=(spoiled(ecc_uncorrected=3, ecc_sram_uncorrected=0, rows_remapped=512), ""),
    remap_pending=(spoiled(row_remap_pending=True), "error GPU-ECC"),
    remap_failed=(spoiled(row_remap_failed=True), "error GPU-ECC"),
    remapped=(spoiled(rows_remapped=513), "error GPU-ECC"),
    retirement=(spoiled(page_retirement_pending=True), "error GPU-ECC"),
    mig=(spoiled(mig=True), "error GPU-MIG"),
    persistence=(spoiled(persistence=False), "warning GPU-PERSISTENCE"),
    slowed=(
        slowed("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown"),
        "warning GPU-THROTTLED",
    ),
    slowed_by_power=(slowed("hw_power_brake_slowdown"), "warning GPU-THROTTLED"),
    slowed_by_heat=(slowed("sw_thermal_slowdown"), "warning GPU-THROTTLED"),
    slow_as_usual=(slowed("sw_power_cap", *NORMAL), ""),
    busy=(spoiled(processes=(GpuProcess(675, "/usr/lib/xorg/Xorg", 22),)), "error GPU-BUSY"),
    busy_unknown=(spoiled(processes=(GpuProcess(None, None, None),)), "error GPU-BUSY"),
    # GPUs of one fault are one finding
    alike=(
        gpus(OFF, replace(OFF, mig=True), V100, OFF),
        "warning GPU-PERSISTENCE, error GPU-MIG",
    ),
    # Leaving a broken GPU out of gpus.use is what the finding asks for
    not_used=(gpus(V100, BROKEN, V100, count=3, use=[0, 2]), ""),
    used=(
        gpus(V100, BROKEN, V100, count=3, use=[2, 1]),
        "error GPU-ECC, warning GPU-PERSISTENCE",
    ),
    unreadable=(gpu_checks.gpus(node(), UNREAD), "error ATTACHED-GPUS"),
    warned=(gpu_checks.gpus(node(), WARNED), "warning GPU-WARNING"),
    recovery=(spoiled(recovery_action="Drain P2P"), "error GPU-RECOVERY"),
    no_recovery=(spoiled(recovery_action="None"), ""),
    # Without a ready fabric every CUDA program ends with error 802
    fabric=(fabric(**READY), ""),
    fabric_none=(fabric(status="Unknown Error"), ""),
    fabric_done=(fabric(state="Completed"), ""),
    fabric_begins=(fabric(state="In Progress"), "error GPU-FABRIC"),
    fabric_not_begun=(fabric(state="Not Started", status="Success"), "error GPU-FABRIC"),
    fabric_failed=(fabric(state="Completed", status="Unknown Error"), "error GPU-FABRIC"),
    fabric_unhealthy=(fabric(**READY | {"summary": "Limited Capacity"}), "error GPU-FABRIC"),
    fabric_slow=(
        fabric(**READY | {"bandwidth": "Degraded", "route_recovery_in_progress": "True"}),
        "error GPU-FABRIC",
    ),
)


def recorded(name: str, **change: object) -> GpuFacts:
    """Return the GPU of a recorded `nvidia-smi -q -x` outside of a virtual machine."""
    (one,) = gpu.parse((SAMPLES / "nvidia-smi" / name).read_text()).gpus
    real: GpuFacts = changed(one, **{"virtual": False, **change})
    return real


NARROW = replace(V100, pcie_width=8, pcie_width_max=16)
WHOLE = replace(V100, pcie_width=16, pcie_width_max=16)
IDLE = recorded("telegraf_a10g.xml")  # generation 1 of 4, and 8 of 16 lanes
T4 = recorded("telegraf_tesla-t4.xml", virtual=True)  # of a cloud: awake, with 8 of 16 lanes
A100 = recorded("telegraf_a100-sxm4-v12.xml")  # GPU and slot have generation 4
LIMITED = replace(A100, pcie_generation=3, pcie_generation_max=3)
OTHERS = recorded("netdata_a100-sxm4-mig.xml")  # knows only what it reaches: generation 4
SLOWER = replace(OTHERS, pcie_generation=3, pcie_generation_max=3)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ((WHOLE, NARROW, V100, V100), "PCIE-WIDTH GPU 1: uses 8 of 16 PCIe lanes"),
        ((IDLE,), ""),
        ((replace(IDLE, pcie_generation=4),), "PCIE-WIDTH GPU 0: uses 8 of 16 PCIe lanes"),
        ((T4, replace(T4, pcie_width=4)), ""),
        ((A100,), ""),
        ((LIMITED,), "PCIE-SPEED GPU 0: reaches PCIe generation 3 of 4"),
        ((replace(LIMITED, pcie_generation_slot=3),), ""),
        ((replace(LIMITED, pcie_generation_gpu=None),), ""),
        ((replace(LIMITED, virtual=True),), ""),
        ((OTHERS, SLOWER), "PCIE-SPEED GPU 1: reaches PCIe generation 3 of 4"),
        ((OTHERS, replace(SLOWER, model="another")), ""),
        ((OTHERS, replace(OTHERS, pcie_generation=1)), ""),
    ],
)
def test_lanes_fewer_or_slower_than_gpu_and_slot_have(
    there: tuple[GpuFacts, ...], expected: str
) -> None:
    """An idle GPU saves power; a slot that can do less, and a virtual machine, are no fault."""
    found = [it for it in gpus(*there) if it.code.startswith("PCIE-")]
    assert ", ".join(f"{it.code} {it.seen}" for it in found) == expected


FOUR = driver(*[V100] * 4)
HEALTH = SAMPLES / "health"
LINKS = topology.nvlinks((HEALTH / "azure_v100_nvlink_inactive.txt").read_text())
ERRORS = topology.nvlink_errors((HEALTH / "scuffed_v100_nvlink_errors.txt").read_text())
UP, DOWN = (True,) * 6, (False,) * 6


test_nvlinks = table(
    # The recorded GPU 3 has two inactive NVLinks
    down=(
        gpu_checks.nvlinks(node(), FOUR, {**dict.fromkeys(range(3), UP), **LINKS}, {}),
        "warning NVLINK-DOWN",
    ),
    all_down=(
        gpu_checks.nvlinks(node(), FOUR, {0: UP, 1: UP, 2: DOWN, 3: (True,) * 4}, {}),
        "warning NVLINK-DOWN",
    ),
    none_up=(gpu_checks.nvlinks(node(), FOUR, {0: DOWN, 1: DOWN}, {}), ""),
    none=(gpu_checks.nvlinks(node(), FOUR, {}, {}), ""),
    errors=(
        gpu_checks.nvlinks(node(), FOUR, {}, {**ERRORS, (2, 4): {"Recovery Errors": 1}}),
        "warning NVLINK-ERRORS, warning NVLINK-ERRORS",
    ),
    errors_used=(
        gpu_checks.nvlinks(node(gpus={"count": 4, "use": [1, 2]}), FOUR, {}, ERRORS),
        "warning NVLINK-ERRORS",
    ),
    down_not_used=(
        gpu_checks.nvlinks(node(gpus={"count": 4, "use": [0, 1]}), FOUR, {0: UP, **LINKS}, {}),
        "",
    ),
    silent=(gpu_checks.nvlinks(node(), FOUR, Silent("HUNG", ""), Silent("HUNG", "")), ""),
    not_asked=(gpu_checks.nvlinks(node(), FOUR, None, None), ""),
    silent_driver=(gpu_checks.nvlinks(node(), Silent("HUNG", ""), LINKS, ERRORS), ""),
)
