"""Checks of GPUs and InfiniBand: each finding has its code, and what is well has none."""

import json
from dataclasses import replace

import pytest

from orchestrator.checks import fabric as fabric_checks
from orchestrator.checks import gpu as gpu_checks
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import DriverFacts, InfinibandFacts, Silent, VerbsFacts
from orchestrator.model.node import Node
from orchestrator.model.problem import Problem
from orchestrator.model.site import Topology
from orchestrator.probes import infiniband
from tests import SAMPLES
from tests.checks.facts import V100, WIRES, codes, driver

SEED = infiniband.parse((SAMPLES / "ibstat/dlperf_seed_vs002_mt4115.txt").read_text())
SOME_DOWN = infiniband.parse((SAMPLES / "ibstat/gpud_ibstat.47.0.some.down.0.txt").read_text())
WARNING = "no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0"


def member(*hcas: dict[str, object], runtime: str = "process", **gpus: object) -> Node:
    """A node that declares these adapters and GPUs."""
    said = {
        "name": "testers",
        "defaults": {"hcas": hcas, "runtime": runtime, "gpus": gpus},
        "nodes": [{"name": "n1", "address": "10.0.0.1"}],
    }
    return Cluster.model_validate_json(json.dumps(said)).members[0]


def hca(name: str = "mlx5_0", rate_gbps: int = 100, **more: object) -> dict[str, object]:
    """An adapter as inventories declare it."""
    return {"name": name, "rate_gbps": rate_gbps, **more}


@pytest.mark.parametrize(
    ("silent", "code"),
    [
        (Silent("HUNG", ""), "GPU-QUERY-HUNG"),
        (Silent("ABSENT", "sh: 1: nvidia-smi: not found"), "GPU-NO-DRIVER"),
        (
            Silent(
                "NO-XML",
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            ),
            "GPU-NO-DRIVER",
        ),
        (
            Silent("NO-XML", "Failed to initialize NVML: Driver/library version mismatch"),
            "GPU-DRIVER-MISMATCH",
        ),
        (
            Silent(
                "NO-XML",
                "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost."
                "  Reboot the system to recover this GPU",
            ),
            "GPU-LOST",
        ),
        (
            Silent(
                "NO-XML",
                "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
            ),
            "GPU-LOST",
        ),
        (Silent("NO-XML", "No devices were found"), "GPU-COUNT"),
        (Silent("XML", "<?xml version="), "GPU-QUERY-FAILED"),
    ],
)
def test_driver_that_gives_no_answer_is_told_apart(silent: Silent, code: str) -> None:
    """Its own words are shown; the remedy differs."""
    (found,) = gpu_checks.gpus(member(count=8), silent)
    assert (found.severity, found.code) == ("error", code)
    assert found.seen == (silent.message or "no answer in 20 s")


def test_gpus_that_were_not_asked_for_are_not_judged() -> None:
    """A node without GPUs has none to be wrong."""
    assert list(gpu_checks.gpus(member(), None)) == []


@pytest.mark.parametrize(
    ("driver", "old"),
    [
        ("440.33.01", False),
        ("440.100", False),
        ("440.33", True),
        ("418.87.00", True),
        (None, False),
    ],
)
def test_driver_older_than_the_images_need_is_found(driver: str | None, old: bool) -> None:
    """By its numbers: 440.100 is newer than 440.33.01."""
    facts = DriverFacts(driver, "10.2", (), ())
    found = codes(gpu_checks.gpus(member(), facts, driver="440.33.01"))
    assert found == (["error GPU-DRIVER-OLD"] if old else [])


@pytest.mark.parametrize("action", ["Reset", "Reboot", "Drain P2P", "OS Reboot"])
def test_the_driver_s_own_verdict_counts(action: str) -> None:
    """With all counters at 0; a GPU that no case may use keeps nobody off."""
    facts = driver(
        V100, replace(V100, recovery_action=action), replace(V100, recovery_action="None")
    )
    (found,) = gpu_checks.gpus(member(), facts)
    assert (found.severity, found.code) == ("error", "GPU-RECOVERY")
    assert found.seen == f"GPU 1: the driver asks for: {action}"
    assert list(gpu_checks.gpus(member(use=[0, 2]), facts)) == []


WELL = {"state": "Completed", "status": "Success", "summary": "Healthy", "bandwidth": "Full"} | {
    "route_unhealthy": "False",
    "incorrect_configuration": "None",
    "gfm_state": "Connected",
}


@pytest.mark.parametrize(
    ("fabric", "seen"),
    [
        (WELL, None),
        ({"status": "Unknown Error"}, None),
        ({"state": "Completed"}, None),
        ({"state": "In Progress"}, "state In Progress"),
        ({"state": "Not Started", "status": "Success"}, "state Not Started"),
        ({"state": "Completed", "status": "Unknown Error"}, "status Unknown Error"),
        (WELL | {"summary": "Unhealthy"}, "summary Unhealthy"),
        (WELL | {"summary": "Limited Capacity"}, "summary Limited Capacity"),
        (
            WELL | {"bandwidth": "Degraded", "route_recovery_in_progress": "True"},
            "bandwidth Degraded, route recovery in progress True",
        ),
    ],
)
def test_a_fabric_that_is_not_ready_is_an_error(fabric: dict[str, str], seen: str | None) -> None:
    """Every CUDA program would end with error 802; GPUs of one state are one finding."""
    found = list(gpu_checks.gpus(member(), driver(*[replace(V100, fabric=fabric)] * 8)))
    if seen is None:
        assert found == []
    else:
        (one,) = found
        assert (one.severity, one.code) == ("error", "GPU-FABRIC")
        assert one.seen == f"GPU 0, 1, 2, 3, 4, 5, 6, 7: fabric {seen}"
        assert "nvidia-fabricmanager" in one.fix


def test_adapter_as_declared_is_fit() -> None:
    """The seeds' own adapter, at the rate of EDR; the names of two libraries for one layer."""
    assert list(fabric_checks.adapters(member(hca()), SEED)) == []
    ib = replace(SEED.ports[0], link_layer="IB")
    assert list(fabric_checks.adapters(member(hca()), InfinibandFacts((ib,), ()))) == []
    assert list(fabric_checks.adapters(member(), SOME_DOWN)) == []
    assert list(fabric_checks.adapters(member(hca()), None)) == []


@pytest.mark.parametrize(
    ("declared", "code", "seen"),
    [
        (hca("mlx5_2", 40), "IB-PORT", "mlx5_2/1 State=Down"),
        (hca("mlx5_0", 200), "IB-RATE", "mlx5_0/1 runs at 400 Gb/s"),
        (hca("mlx5_1", 100), "IB-LAYER", "mlx5_1/1 speaks Ethernet"),
    ],
)
def test_adapter_that_differs_from_the_inventory_is_found(
    declared: dict[str, object], code: str, seen: str
) -> None:
    """A port that is down, a rate and a layer that are others."""
    (found,) = fabric_checks.adapters(member(declared), SOME_DOWN)
    assert (found.severity, found.code, found.seen) == ("error", code, seen)


def test_adapter_that_is_not_there_is_found_with_those_that_are() -> None:
    """All in one finding, as when a range was copied."""
    many = (hca(), *(hca(f"mlx5_{number}") for number in range(1, 8)))
    (found,) = fabric_checks.adapters(member(*many), SEED)
    assert (found.code, found.seen) == ("IB-PORT", "adapters mlx5_0")
    assert found.expected == "mlx5_[1-7] among them"


def test_a_whole_number_stands_for_the_rate_of_one_lane() -> None:
    """Inventories have whole numbers: 2 is the 2.5 that software adapters have."""
    facts = InfinibandFacts((replace(SEED.ports[0], rate_gbps=2.5),), ())
    assert list(fabric_checks.adapters(member(hca(rate_gbps=2)), facts)) == []
    (found,) = fabric_checks.adapters(member(hca()), facts)
    assert (found.code, found.seen) == ("IB-RATE", "mlx5_0/1 runs at 2.5 Gb/s")


def test_rate_that_cannot_be_read_is_no_rate() -> None:
    """What was not understood is not taken for good; the reason stands beside it."""
    port = replace(SEED.ports[0], rate_gbps=None)
    problem = Problem("UNREADABLE", "ibstat, line 12: cannot read 'Rate: fast'")
    facts = InfinibandFacts((port,), (problem,))
    found = fabric_checks.adapters(member(hca()), facts)
    assert codes(found) == ["warning UNREADABLE", "error IB-RATE"]


@pytest.mark.parametrize(
    ("silent", "runtime", "code"),
    [
        (Silent("ABSENT", "sh: 1: ibstat: not found"), "process", "error IB-TOOLS"),
        (Silent("ABSENT", "sh: 1: ibstat: not found"), "docker", "warning IB-TOOLS"),
        (Silent("HUNG", ""), "docker", "error IB-QUERY-HUNG"),
        (Silent("UNREADABLE", "ibstat: no line like CA 'mlx5_0'"), "docker", "error IB-PORT"),
    ],
)
def test_adapters_that_give_no_answer_are_told_apart(
    silent: Silent, runtime: str, code: str
) -> None:
    """Where containers bring the program, the node itself may lack it."""
    assert codes(fabric_checks.adapters(member(hca(), runtime=runtime), silent)) == [code]


def test_adapter_that_no_program_can_open_is_found() -> None:
    """Whatever ibstat says; the library's own mistake is shown."""
    assert list(fabric_checks.openable(member(hca()), None)) == []
    assert list(fabric_checks.openable(member(hca()), VerbsFacts(("mlx5_0",), ("oh",)))) == []
    (found,) = fabric_checks.openable(member(hca()), VerbsFacts((), (WARNING,)))
    assert (found.severity, found.code) == ("error", "IB-NO-DRIVER")
    assert found.seen == f"ibv_devinfo lists none ({WARNING})"
    (found,) = fabric_checks.openable(member(hca(), runtime="docker"), VerbsFacts(("mlx4_0",), ()))
    assert (found.severity, found.seen) == ("warning", "ibv_devinfo lists mlx4_0")
    (found,) = fabric_checks.openable(member(hca()), Silent("HUNG", ""))
    assert found.seen == "ibv_devinfo: HUNG"
    absent = Silent("ABSENT", "sh: 1: ibv_devinfo: not found")
    assert codes(fabric_checks.openable(member(hca()), absent)) == ["error IB-NO-DRIVER"]
    assert list(fabric_checks.openable(member(hca(), runtime="docker"), absent)) == []


@pytest.mark.parametrize(
    ("use", "found"),
    [([1], ["warning HCA-FAR"]), ([0, 1], []), ([0], []), (None, [])],
)
def test_adapter_far_from_every_gpu_in_use_is_found(
    use: list[int] | None, found: list[str]
) -> None:
    """One near GPU is enough; GPUs that no case may use do not count."""
    assert codes(fabric_checks.distances(member(hca(), use=use), WIRES)) == found


def test_distance_that_is_not_known_is_not_far() -> None:
    """An adapter that the table does not name, a GPU without a row."""
    assert list(fabric_checks.distances(member(hca("mlx5_9")), WIRES)) == []
    assert list(fabric_checks.distances(member(hca()), None)) == []
    assert list(fabric_checks.distances(member(hca()), Topology({}, None))) == []


def test_wiring_that_cannot_be_read_is_said() -> None:
    """It is then not compared, which nobody should take for equal."""
    (found,) = fabric_checks.distances(member(), Silent("HUNG", ""))
    assert (found.severity, found.code, found.seen) == ("warning", "TOPO-UNREADABLE", "HUNG")
    doubted = replace(WIRES, problems=(Problem("UNREADABLE", "line 2: GPU0"),))
    (found,) = fabric_checks.distances(member(), doubted)
    assert found.seen == "UNREADABLE: line 2: GPU0"
