"""Hardware that is ill is told before a sweep: errors of GPUs, adapters, governors, swap."""

from dataclasses import replace

import pytest

from orchestrator.checks import health as health_checks
from orchestrator.checks import nodes as nodes_checks
from orchestrator.model.facts import HcaHealth, HealthFacts, Silent, Xid
from orchestrator.probes import health
from tests import SAMPLES
from tests.checks.facts import FACTS, V100S, cluster, codes, node

SOUND = HealthFacts({"performance": 48}, 0, (), ())
HCA = {"name": "mlx5_0", "rate_gbps": 100, "link_layer": "InfiniBand"}
NODE = node(hcas=[HCA])


def test_a_sound_node_and_a_silent_one_have_no_findings() -> None:
    """Not known is not ill."""
    assert codes(health_checks.health(NODE, SOUND)) == []
    assert codes(health_checks.health(NODE, None)) == []
    assert codes(health_checks.health(NODE, Silent("HUNG", ""))) == []
    assert codes(health_checks.health(NODE, replace(SOUND, xids=None, governors={}))) == []


def test_the_doctored_node_is_told_with_everything_it_has() -> None:
    """A late Xid of the hardware is an error; an old one and one of a program are shown."""
    facts = health.parse((SAMPLES / "health" / "node.txt").read_text())
    later = replace(
        facts, xids=tuple(replace(x, age_s=(x.age_s or 0) + 60) for x in facts.xids or ())
    )
    findings = list(health_checks.health(NODE, later))
    assert codes(findings) == [
        "error GPU-XID",
        "warning GPU-XID",
        "warning GPU-XID",
        "warning CPU-GOVERNOR",
        "warning SWAP",
        "warning PCIE-WIDTH",
        "warning IB-ERRORS",
    ]
    xid, old, program, governor, swap, lanes, errors = (finding.seen for finding in findings)
    assert xid.startswith("NVRM: Xid (PCI:0002:00:00): 119, pid=67769, name=nvidia-smi, Timeout")
    assert xid.endswith("(61 minutes ago)")
    assert "GPU has fallen off the bus" in old
    assert "): 13, pid=1234, name=python" in program
    assert governor == "62 of 64 CPUs are governed: 62 with powersave"
    assert swap == "2 GiB of memory lie in swap"
    assert lanes == "mlx5_0 uses 8 PCIe lanes at 16.0 GT/s"
    assert errors == "mlx5_0: link_downed 12"


def test_an_xid_that_is_repeated_is_told_once() -> None:
    """Of one GPU and number the newest; adapters that are not declared are nobody's matter."""
    xids = tuple(Xid(63, "0000:01:00", age_s, "NVRM: Xid 63") for age_s in (300.0, 60.0))
    other = HcaHealth("mlx5_7", 1, 16, None, None, {"symbol_error": 99})
    findings = list(health_checks.health(NODE, replace(SOUND, xids=xids, hcas=(other,))))
    assert codes(findings) == ["error GPU-XID"]
    assert "(1 minutes ago)" in findings[0].seen


def logged(*lines: str, now_s: float = 7200.0) -> HealthFacts:
    """The facts of a node whose kernel logged these lines, a second apart, just before now."""
    first_s = now_s - len(lines)
    timed = [
        line if line[0] == "[" else f"[{first_s + at:.6f}] {line}" for at, line in enumerate(lines)
    ]
    kernel = "".join(f"kernel {line.strip()}\n" for line in timed)
    return health.parse(f"uptime {now_s}\nkernel_log\n{kernel}")


def sample(name: str) -> list[str]:
    """The lines of a recorded log."""
    return (SAMPLES / "health" / name).read_text().splitlines()


def judged(*lines: str, now_s: float = 7200.0) -> list[str]:
    """Severity, code and line of each finding about a kernel's log."""
    findings = health_checks.health(NODE, logged(*lines, now_s=now_s))
    return [f"{finding.severity} {finding.code} {finding.seen}" for finding in findings]


@pytest.mark.parametrize(
    ("name", "severity", "words"),
    [
        ("gpud_xid_149.txt", "error", "149, NETIR Fatal XC0 i0 Link -1"),
        ("gpud_xid_145.txt", "warning", "145, RLW_RXPIPE Nonfatal XC0 i0 Link 13"),
    ],
)
def test_a_line_that_says_fatal_is_an_error(name: str, severity: str, words: str) -> None:
    """NVLink errors of Blackwell have one number for both; the line tells them apart."""
    (finding,) = judged(*sample(name))
    assert finding.startswith(f"{severity} GPU-XID NVRM: Xid (PCI:00")
    assert words in finding


@pytest.mark.parametrize("number", [1, 13, 149, 162, 900])
@pytest.mark.parametrize("hours", [0, 9])
def test_fatal_counts_for_every_number_and_age(number: int, hours: int) -> None:
    """The kernel's log begins with the node's start, and nothing in it tells of a reset."""
    line = f"[1.0] NVRM: Xid (PCI:0000:18:00): {number}, UNIT Fatal XC0"
    (finding,) = judged(line, now_s=hours * 3600.0 + 60)
    assert finding.startswith("error GPU-XID ")
    assert "no reset or reboot logged since" in finding


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:18:00): 93, Non-fatal violation of provisioned InfoROM wear limit",
        "NVRM: Xid (PCI:0000:18:00): 13, pid=7, name=fatal, Graphics SM Warp Exception",
        "NVRM: Xid (PCI:0000:18:00): 31, pid=7, name=/opt/fatal/train, MMU Fault",
        "NVRM: Xid (PCI:0000:18:00): 43, pid=7, name=python, channel 00000008",
        "NVRM: Xid (PCI:0000:18:00): 45, pid=7, name=python, Ch 00000008",
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9).",
        "NVRM: Xid (PCI:0000:18:00): 999, words of tomorrow",
    ],
)
def test_what_a_program_did_is_shown_and_keeps_nobody_off(line: str) -> None:
    """Also a number that the catalog does not know."""
    (finding,) = judged(line)
    assert finding.startswith(f"warning GPU-XID {line}")


@pytest.mark.parametrize(
    "number", [48, 62, 74, 79, 95, 110, 119, 136, 140, 143, 144, 150, 158, 171]
)
def test_todays_numbers_are_errors_within_two_hours(number: int) -> None:
    """What asks for a reset, a reboot or a look at the links."""
    line = f"[60.0] NVRM: Xid (PCI:0000:18:00): {number}, pid=1"
    assert judged(line)[0].startswith("error GPU-XID")
    assert judged(line, now_s=7261.0)[0].startswith("warning GPU-XID")


def test_a_kernel_that_logs_no_times_is_read_too() -> None:
    """What may be of just now counts as that; the order of lines tells of a reset."""
    line = "NVRM: Xid (PCI:0000:18:00): 119, pid=1"
    was = "NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x1"
    text = f"uptime 90000.0\nkernel_log\nkernel {line}\n"
    (found,) = health_checks.health(NODE, health.parse(text))
    assert found.severity == "error"
    assert found.seen == f"{line}; no reset or reboot logged since (its time is not logged)"
    reset = f"{text}kernel {was} (GPU Reset Required) to 0x0 (None)\n"
    assert codes(health_checks.health(NODE, health.parse(reset))) == ["warning GPU-XID"]
    again = f"{reset}kernel {line}\n"
    assert codes(health_checks.health(NODE, health.parse(again))) == ["error GPU-XID"]


def test_a_fatal_line_is_told_though_later_ones_are_not() -> None:
    """Of one GPU and number the worst line counts, with its own words."""
    fatal, other = sample("gpud_xid_149.txt")[0], "NVRM: Xid (PCI:0019:01:00): 149, NETIR Nonfatal"
    (finding,) = judged(fatal, other)
    assert finding.startswith(f"error GPU-XID {fatal}")


def test_a_switch_is_told_as_a_switch() -> None:
    """A fatal SXid is an error; lines of its data are none of their own, and others are shown."""
    lines = sample("gpud_bus_and_switch.txt")
    found = judged(*lines, now_s=6781760.0)
    assert [line.split(" NVRM")[0].split(" nvidia")[0] for line in found] == [
        "error GPU-XID",
        "error NVSWITCH-SXID",
        "error NVSWITCH-SXID",
        "error NVSWITCH-SXID",
    ]
    assert "0000:07:00.0): 20034, Fatal, Link 37 LTSSM Fault Up" in found[3]
    mild = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress"
    assert judged(mild)[0].startswith(f"warning NVSWITCH-SXID {mild}")


def test_a_gpu_that_is_gone_without_a_number_is_told() -> None:
    """Some drivers say it in words alone."""
    (finding,) = judged("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.")
    assert finding.startswith("error GPU-XID NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.")


def test_the_recovery_that_the_driver_asks_for_is_an_error_until_it_was_done() -> None:
    """Its last word counts; None tells of a reset, and makes earlier errors those of before."""
    lines = sample("gpud_recovery_action.txt")
    found = judged(*lines, now_s=171200.0)
    assert [line.split(" NVRM")[0] for line in found] == ["error GPU-XID"] * 3
    was = "GPU recovery action changed from 0x4 (Drain and Reset)"
    done = f"[171199.0] NVRM: Xid (PCI:0009:01:00): 154, {was} to 0x0 (None)"
    found = judged(*lines, done, now_s=171200.0)
    assert [line.split(" NVRM")[0] for line in found] == ["error GPU-XID", "warning GPU-XID"]
    assert "PCI:0019:01:00): 154" in found[0]
    assert "the driver asks for no recovery since" in found[1]


def test_an_adapter_at_a_lower_speed_is_told() -> None:
    """A slot of an older PCIe."""
    slow = HcaHealth("mlx5_0", 16, 16, 8.0, 16.0, {})
    assert codes(health_checks.health(NODE, replace(SOUND, hcas=(slow,)))) == ["warning PCIE-SPEED"]


def test_another_vbios_is_told() -> None:
    """Of nodes whose GPUs are of one model."""
    nodes = {
        name: replace(FACTS, gpu=replace(V100S, vbios=(bios, bios)))
        for name, bios in (("n1", "88.00.4F"), ("n2", "88.00.4F"), ("n3", "88.00.13"))
    }
    (finding,) = nodes_checks.alike(cluster({}, {}, {}), nodes)
    assert (finding.code, finding.node, finding.seen) == ("GPU-VBIOS", "n3", "VBIOS 88.00.13")
    assert finding.expected == "VBIOS 88.00.4F, as on n1 and 1 more"


def test_error_counters_of_an_adapter_with_all_its_lanes_are_told() -> None:
    """One above the bound is enough."""
    whole = HcaHealth("mlx5_0", 16, 16, 16.0, 16.0, {"symbol_error": 11})
    assert codes(health_checks.health(NODE, replace(SOUND, hcas=(whole,)))) == ["warning IB-ERRORS"]
