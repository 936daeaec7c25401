"""Hardware that is ill is told before a sweep: errors of GPUs, adapters, governors, swap."""

from dataclasses import replace

from orchestrator import checks
from orchestrator.model.facts import Silent
from orchestrator.model.health import HcaHealth, HealthFacts, LinkDown, Xid
from orchestrator.probes import health
from tests import SAMPLES
from tests.checks.facts import FACTS, V100S, cluster, codes, node

SOUND = HealthFacts({"performance": 48}, 0, (), (), ())
HCA = {"name": "mlx5_0", "rate_gbps": 100, "link_layer": "InfiniBand"}
NODE = node(hcas=[HCA])


def test_a_sound_node_and_a_silent_one_have_no_findings() -> None:
    """Not known is not ill."""
    assert codes(checks.health(NODE, SOUND)) == []
    assert codes(checks.health(NODE, None)) == []
    assert codes(checks.health(NODE, Silent("HUNG", ""))) == []
    assert (
        codes(checks.health(NODE, replace(SOUND, xids=None, link_downs=None, governors={}))) == []
    )


def test_the_doctored_node_is_told_with_everything_it_has() -> None:
    """A late Xid of the hardware is an error; an old one and one of a program are none."""
    facts = health.parse((SAMPLES / "health" / "node.txt").read_text())
    later = replace(facts, xids=tuple(replace(x, age_s=x.age_s + 60) for x in facts.xids or ()))
    findings = list(checks.health(NODE, later))
    assert codes(findings) == [
        "error GPU-XID",
        "warning CPU-GOVERNOR",
        "warning SWAP",
        "warning PCIE-WIDTH",
        "warning IB-ERRORS",
    ]
    xid, governor, swap, lanes, errors = (finding.seen for finding in findings)
    assert xid.startswith("NVRM: Xid (PCI:0002:00:00): 119, pid=67769, name=nvidia-smi, Timeout")
    assert xid.endswith("(61 minutes ago)")
    assert governor == "62 of 64 CPUs are governed: 62 with powersave"
    assert swap == "2 GiB of memory lie in swap"
    assert lanes == "mlx5_0 uses 8 PCIe lanes at 16.0 GT/s"
    assert errors == "mlx5_0: link_downed 12"


def test_an_xid_that_is_repeated_is_told_once() -> None:
    """Of one GPU and number the newest; adapters that are not declared are nobody's matter."""
    xids = tuple(Xid(63, "0000:01:00", age_s, "NVRM: Xid 63") for age_s in (300.0, 60.0))
    other = HcaHealth("mlx5_7", 1, 16, None, None, {"symbol_error": 99})
    findings = list(checks.health(NODE, replace(SOUND, xids=xids, hcas=(other,))))
    assert codes(findings) == ["error GPU-XID"]
    assert "(1 minutes ago)" in findings[0].seen


def test_an_adapter_at_a_lower_speed_is_told() -> None:
    """A slot of an older PCIe."""
    slow = HcaHealth("mlx5_0", 16, 16, 8.0, 16.0, {})
    assert codes(checks.health(NODE, replace(SOUND, hcas=(slow,)))) == ["warning PCIE-SPEED"]


def test_another_vbios_is_told() -> None:
    """Of nodes whose GPUs are of one model."""
    nodes = {
        name: replace(FACTS, gpu=replace(V100S, vbios=(bios, bios)))
        for name, bios in (("n1", "88.00.4F"), ("n2", "88.00.4F"), ("n3", "88.00.13"))
    }
    (finding,) = checks.alike(cluster({}, {}, {}), nodes)
    assert (finding.code, finding.node, finding.seen) == ("GPU-VBIOS", "n3", "VBIOS 88.00.13")
    assert finding.expected == "VBIOS 88.00.4F, as on n1 and 1 more"


def test_a_link_that_flaps_is_told() -> None:
    """Five times within 24 hours, as Azure's check has it; one that was down before is sound."""
    day_s = 24 * 3600.0
    often = tuple(LinkDown("enp83s0f0np0", age_s) for age_s in (7.0, 60.0, 61.0, 600.0, day_s))
    (finding,) = checks.health(NODE, replace(SOUND, link_downs=often))
    assert (finding.code, finding.severity) == ("LINK-FLAPS", "warning")
    assert finding.seen == "links went down within 24 hours: enp83s0f0np0 5 times"
    late = replace(often[-1], age_s=day_s + 1)
    assert codes(checks.health(NODE, replace(SOUND, link_downs=(*often[:-1], late)))) == []
    others = tuple(replace(down, name=f"eth{at}") for at, down in enumerate(often))
    assert codes(checks.health(NODE, replace(SOUND, link_downs=others))) == []


def test_an_adapter_that_nobody_declared_may_flap() -> None:
    """Of those that the node has; the declared one is told, the most restless first."""
    hcas = tuple(HcaHealth(f"mlx5_{at}", None, None, None, None, {}) for at in (0, 7))
    restless = [("mlx5_0", 5), ("mlx5_7", 9), ("ib0", 6)]
    downs = tuple(LinkDown(name, 60.0) for name, count in restless for _ in range(count))
    (finding,) = checks.health(NODE, replace(SOUND, hcas=hcas, link_downs=downs))
    assert finding.seen.endswith(": ib0 6 times, mlx5_0 5 times")


def test_error_counters_of_an_adapter_with_all_its_lanes_are_told() -> None:
    """One above the bound is enough."""
    whole = HcaHealth("mlx5_0", 16, 16, 16.0, 16.0, {"symbol_error": 11})
    assert codes(checks.health(NODE, replace(SOUND, hcas=(whole,)))) == ["warning IB-ERRORS"]
