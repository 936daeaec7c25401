"""Findings about the health of a node: errors in the kernel's log, adapters, governors, swap."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from orchestrator.checks import health as health_checks
from orchestrator.model.facts import HcaHealth, HealthFacts, Silent, Xid
from orchestrator.model.site import Finding
from orchestrator.probes import health
from tests import SAMPLES
from tests.checks.facts import changed, hca, node, table

NODE = node(hcas=[hca()])
SOUND = HealthFacts({"performance": 48}, 0, (), ())


def judged(facts: HealthFacts | Silent | None) -> Iterator[Finding]:
    return health_checks.health(NODE, facts)


def sound(**change: object) -> Iterator[Finding]:
    return judged(changed(SOUND, **change))


def adapter(width: int, speed: float, errors: int = 0, name: str = "mlx5_0") -> Iterator[Finding]:
    """Judge an adapter that can use 16 lanes at 16 GT/s."""
    return sound(hcas=(HcaHealth(name, width, 16, speed, 16.0, {"symbol_error": errors}),))


def logged(*lines: str, now_s: float = 7200.0) -> Iterator[Finding]:
    """Judge a node whose kernel logged these lines, a second apart, just before now."""
    first_s = now_s - len(lines)
    timed = [
        line if line[0] == "[" else f"[{first_s + at:.6f}] {line}" for at, line in enumerate(lines)
    ]
    kernel = "".join(f"kernel {line.strip()}\n" for line in timed)
    return judged(health.parse(f"uptime {now_s}\nkernel_log\n{kernel}"))


def sample(name: str) -> list[str]:
    return (SAMPLES / "health" / name).read_text().splitlines()


def untimed(*lines: str) -> Iterator[Finding]:
    """Judge a node whose kernel logs no times."""
    text = "".join(f"kernel {line}\n" for line in lines)
    return judged(health.parse(f"uptime 90000.0\nkernel_log\n{text}"))


DOCTORED = health.parse((SAMPLES / "health/node.txt").read_text())
LATER = tuple(replace(xid, age_s=(xid.age_s or 0) + 60) for xid in DOCTORED.xids or ())
TWICE = tuple(Xid(63, "0000:01:00", age_s, "NVRM: Xid 63") for age_s in (300.0, 60.0))
XID = "NVRM: Xid (PCI:0000:18:00): "
NVLINK = "NVRM: Xid (PCI:0019:01:00): 149, NETIR Nonfatal"
RESET = f"{XID}154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
RECOVERY = sample("gpud_recovery_action.txt")
DONE = (
    "[171199.0] NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from"
    " 0x4 (Drain and Reset) to 0x0 (None)"
)
SXID = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress"


test_health = table(
    sound=(sound(), ""),
    not_asked=(judged(None), ""),
    silent=(judged(Silent("HUNG", "")), ""),
    unknown=(sound(xids=None, governors={}, swap_used_mib=None), ""),
    everything=(
        judged(replace(DOCTORED, xids=LATER)),
        "error GPU-XID, warning GPU-XID, warning GPU-XID, warning CPU-GOVERNOR, warning SWAP,"
        " warning PCIE-WIDTH, warning IB-ERRORS",
    ),
    swap_border=(sound(swap_used_mib=1024), ""),
    swap=(sound(swap_used_mib=1025), "warning SWAP"),
    all_lanes=(adapter(16, 16.0, errors=10), ""),
    fewer_lanes=(adapter(8, 16.0), "warning PCIE-WIDTH"),
    slower_lanes=(adapter(16, 8.0), "warning PCIE-SPEED"),
    link_errors=(adapter(16, 16.0, errors=11), "warning IB-ERRORS"),
    adapter_not_declared=(adapter(1, 8.0, 99, "mlx5_7"), ""),
    # Of one GPU and number the newest line counts, unless another says Fatal
    repeated=(sound(xids=TWICE), "error GPU-XID"),
    fatal_first=(logged(*sample("gpud_xid_149.txt"), NVLINK), "error GPU-XID"),
    fatal=(logged(*sample("gpud_xid_149.txt")), "error GPU-XID"),
    nonfatal=(logged(*sample("gpud_xid_145.txt")), "warning GPU-XID"),
    gone=(logged("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus."), "error GPU-XID"),
    no_time=(untimed(f"{XID}119, pid=1"), "error GPU-XID"),
    # None as the recovery that the driver asks for means that there was a reset
    reset=(untimed(f"{XID}119, pid=1", RESET), "warning GPU-XID"),
    error_after_reset=(untimed(f"{XID}119, pid=1", RESET, f"{XID}119, pid=1"), "error GPU-XID"),
    recovery=(
        logged(*RECOVERY, now_s=171200.0),
        "error GPU-XID, error GPU-XID, error GPU-XID",
    ),
    recovered=(logged(*RECOVERY, DONE, now_s=171200.0), "error GPU-XID, warning GPU-XID"),
    switch=(
        logged(*sample("gpud_bus_and_switch.txt"), now_s=6781760.0),
        "error GPU-XID, error NVSWITCH-SXID, error NVSWITCH-SXID, error NVSWITCH-SXID",
    ),
    switch_nonfatal=(logged(SXID), "warning NVSWITCH-SXID"),
    # What a program did keeps no sweep off; nor does a number that the catalog lacks
    wear=(logged(f"{XID}93, Non-fatal violation of provisioned wear limit"), "warning GPU-XID"),
    program=(logged(f"{XID}13, pid=7, name=fatal, Graphics SM Exception"), "warning GPU-XID"),
    path=(logged(f"{XID}31, pid=7, name=/opt/fatal/train, MMU Fault"), "warning GPU-XID"),
    channel=(logged(f"{XID}43, pid=7, name=python, channel 00000008"), "warning GPU-XID"),
    preemptive=(logged(f"{XID}45, pid=7, name=python, Ch 00000008"), "warning GPU-XID"),
    of_a_mig_slice=(
        logged("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel"),
        "warning GPU-XID",
    ),
    unknown_number=(logged(f"{XID}999, words of tomorrow"), "warning GPU-XID"),
)


@pytest.mark.parametrize("number", [1, 13, 149, 162, 900])
@pytest.mark.parametrize("hours", [0, 9])
def test_fatal_counts_for_every_number_and_age(number: int, hours: int) -> None:
    """The kernel's log begins with the node's start."""
    (finding,) = logged(f"[1.0] {XID}{number}, UNIT Fatal XC0", now_s=hours * 3600.0 + 60)
    assert (finding.severity, finding.code) == ("error", "GPU-XID")
    assert "no reset or reboot logged since" in finding.seen


@pytest.mark.parametrize(
    "number", [48, 62, 74, 79, 95, 110, 119, 136, 140, 143, 144, 150, 158, 171]
)
def test_numbers_that_ask_for_a_reset_are_errors_within_two_hours(number: int) -> None:
    line = f"[60.0] {XID}{number}, pid=1"
    for now_s, severity in ((7260.0, "error"), (7261.0, "warning")):
        (finding,) = logged(line, now_s=now_s)
        assert (finding.severity, finding.code) == (severity, "GPU-XID")
