"""Hardware that is ill is told before a sweep: errors of GPUs, lanes, links, governors, swap."""

from dataclasses import replace

from orchestrator import checks
from orchestrator.model.facts import Silent
from orchestrator.model.health import HcaHealth, HealthFacts, Xid
from orchestrator.probes import health
from tests import SAMPLES
from tests.checks.facts import FACTS, V100, V100S, cluster, codes, driver, node

SOUND = HealthFacts({"performance": 48}, 0, (), ())
HCA = {"name": "mlx5_0", "rate_gbps": 100, "link_layer": "InfiniBand"}
NODE = node(hcas=[HCA])
LINKS = health.nvlinks((SAMPLES / "health" / "azure_v100_nvlink_inactive.txt").read_text())


def test_a_sound_node_and_a_silent_one_have_no_findings() -> None:
    """Not known is not ill."""
    assert codes(checks.health(NODE, SOUND)) == []
    assert codes(checks.health(NODE, None)) == []
    assert codes(checks.health(NODE, Silent("HUNG", ""))) == []
    assert codes(checks.health(NODE, replace(SOUND, xids=None, governors={}))) == []


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
    assert swap == "2047 MiB of memory lie in swap"
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
    assert codes(checks.health(NODE, replace(SOUND, hcas=(slow,)))) == ["warning PCIE-WIDTH"]


def test_gpus_on_few_lanes_or_with_dead_links_are_told() -> None:
    """The recorded GPU 3 has two inactive NVLinks, others of its node would have none."""
    narrow = replace(V100, pcie_width=8, pcie_width_max=16)
    whole = replace(V100, pcie_width=16, pcie_width_max=16)
    gpus = driver(whole, narrow, V100, V100)
    nvlinks = {**dict.fromkeys(range(3), (True,) * 6), **LINKS}
    findings = list(checks.links(NODE, gpus, nvlinks))
    assert codes(findings) == ["warning PCIE-WIDTH", "warning NVLINK-DOWN"]
    assert findings[0].seen == "GPU 1 uses 8 PCIe lanes"
    assert findings[1].seen == "GPU 3: NVLinks 3, 5 are inactive"
    assert findings[1].expected == "6 active, as on most GPUs of the node"


def test_a_gpu_all_of_whose_links_are_dead_is_told() -> None:
    """Beside others that have theirs; those of which one reports fewer links are whole."""
    nvlinks = {**dict.fromkeys(range(2), (True,) * 6), 2: (False,) * 6, 3: (True,) * 4}
    (finding,) = checks.links(NODE, driver(V100, V100, V100, V100), nvlinks)
    assert (finding.code, finding.seen) == (
        "NVLINK-DOWN",
        "GPU 2: NVLinks 0, 1, 2, 3, 4, 5 are inactive",
    )


def test_gpus_without_nvlinks_are_sound() -> None:
    """None active, or none at all; and a driver that is silent is another finding."""
    gpus = driver(V100, V100)
    assert codes(checks.links(NODE, gpus, dict.fromkeys(range(2), (False,) * 4))) == []
    assert codes(checks.links(NODE, gpus, {})) == []
    assert codes(checks.links(NODE, Silent("HUNG", ""), LINKS)) == []
    assert codes(checks.links(NODE, None, LINKS)) == []


def test_another_vbios_is_told() -> None:
    """Of nodes whose GPUs are of one model."""
    nodes = {
        name: replace(FACTS, gpu=replace(V100S, vbios=(bios, bios)))
        for name, bios in (("n1", "88.00.4F"), ("n2", "88.00.4F"), ("n3", "88.00.13"))
    }
    (finding,) = checks.alike(cluster({}, {}, {}), nodes)
    assert (finding.code, finding.node, finding.seen) == ("GPU-VBIOS", "n3", "VBIOS 88.00.13")
    assert finding.expected == "VBIOS 88.00.4F, as on n1 and 1 more"


def test_gpus_and_adapters_out_of_use_or_whole_are_not_told() -> None:
    """A narrow GPU that `use` leaves out; an adapter with all its lanes whose counters grew."""
    narrow = replace(V100, pcie_width=8, pcie_width_max=16)
    user = node(gpus={"count": 2, "use": [0]})
    assert codes(checks.links(user, driver(V100, narrow), {})) == []
    whole = HcaHealth("mlx5_0", 16, 16, 16.0, 16.0, {"symbol_error": 11})
    assert codes(checks.health(NODE, replace(SOUND, hcas=(whole,)))) == ["warning IB-ERRORS"]
