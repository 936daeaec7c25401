"""Checks: each finding fires beyond its border and stays silent on it."""

from dataclasses import replace

import pytest

from orchestrator.checks import gpu as gpu_checks
from orchestrator.checks import machine as machine_checks
from orchestrator.checks import nodes as nodes_checks
from orchestrator.model.facts import GpuProcess
from orchestrator.model.problem import Problem
from orchestrator.model.site import Finding, NodeFacts, Site
from tests.checks.facts import HOST, V100, codes, driver, node

SILENT = replace(
    V100,
    ecc_uncorrected=None,
    ecc_volatile_uncorrected=None,
    ecc_sram_uncorrected=None,
    page_retirement_pending=None,
    persistence=None,
    mig=None,
    throttle_reasons=None,
)


def test_host_on_every_border_is_fit() -> None:
    """1 GiB of disk, 256 open files, half the CPUs busy and the interface there: no finding."""
    assert list(machine_checks.host(node(interface="ib0"), HOST, machine_checks.Demands())) == []
    assert (
        list(machine_checks.host(node(), replace(HOST, interfaces=()), machine_checks.Demands()))
        == []
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"free_disk_mib": 1023}, "error DISK-FULL"),
        ({"open_files": 255}, "error LIMITS"),
        ({"load": 24.01}, "warning BUSY"),
        ({"interfaces": ("lo", "ib01")}, "error INTERFACE-MISSING"),
        ({"interfaces": ()}, "error INTERFACE-MISSING"),
        ({"missing_modules": ("torch",)}, "error MODULE-MISSING"),
    ],
)
def test_host_beyond_a_border_is_found(change: dict[str, object], code: str) -> None:
    """One finding for one thing wrong."""
    facts = replace(HOST, **change)  # type: ignore[arg-type] # one field of each type
    assert codes(machine_checks.host(node(interface="ib0"), facts, machine_checks.Demands())) == [
        code
    ]


def test_host_without_a_limit_on_files_is_fit() -> None:
    """Unlimited is not too few."""
    assert (
        list(machine_checks.host(node(), replace(HOST, open_files=None), machine_checks.Demands()))
        == []
    )


def test_finding_says_what_was_seen_what_is_needed_and_what_to_do() -> None:
    """Enough to act on without reading anything else."""
    facts = replace(HOST, missing_modules=("torch", "numpy"))
    first, second = machine_checks.host(node(), facts, machine_checks.Demands("demo"))
    assert first == Finding(
        severity="error",
        code="MODULE-MISSING",
        node="n1",
        seen="no Python module torch",
        expected="torch importable",
        fix="install torch for that Python: pip, pipx inject or uv pip install, or from a checkout:"
        " pip install '.[demo]'",
    )
    assert second.seen == "no Python module numpy"
    (alone,) = machine_checks.host(
        node(), replace(HOST, missing_modules=("numpy",)), machine_checks.Demands()
    )
    assert alone.fix == "install numpy for that Python: pip, pipx inject or uv pip install"
    (warned, _) = machine_checks.host(
        node(), facts, machine_checks.Demands("demo", is_certain=False)
    )
    assert warned.severity == "warning"


@pytest.mark.parametrize(("transport", "where"), [("ssh", "`folder:`"), ("local", "--state")])
def test_a_full_disk_is_left_by_the_way_that_leads_out(transport: str, where: str) -> None:
    """Attempts lie in the state folder here, and in the node's folder elsewhere."""
    said = {"transport": transport, "runtime": "process"}
    (found,) = machine_checks.host(
        node(**said), replace(HOST, free_disk_mib=0), machine_checks.Demands()
    )
    assert where in found.fix


def test_everything_wrong_with_a_host_is_found_at_once() -> None:
    """One provisioning shows all that is to be mended."""
    facts = replace(
        HOST, missing_modules=("torch",), free_disk_mib=0, open_files=0, load=99.0, interfaces=()
    )
    assert codes(machine_checks.host(node(interface="ib0"), facts, machine_checks.Demands())) == [
        "error MODULE-MISSING",
        "error DISK-FULL",
        "error LIMITS",
        "warning BUSY",
        "error INTERFACE-MISSING",
    ]


def test_gpus_as_declared_are_fit() -> None:
    """Idle clocks are no throttling, and what the driver does not report is not held against it."""
    declared = node(gpus={"count": 2, "model": "Tesla V100-SXM2-16GB"})
    assert list(gpu_checks.gpus(declared, driver(V100, SILENT))) == []
    assert list(gpu_checks.gpus(declared, driver(V100, replace(V100, processes=None)))) == []


def test_gpus_of_which_nothing_is_declared_are_only_looked_at() -> None:
    """Count and model are then free; broken memory is not."""
    assert list(gpu_checks.gpus(node(), driver(V100))) == []
    assert list(gpu_checks.gpus(node(gpus={}), driver(V100))) == []
    broken = driver(replace(V100, ecc_volatile_uncorrected=1))
    assert codes(gpu_checks.gpus(node(), broken)) == ["error GPU-ECC"]
    assert codes(gpu_checks.gpus(node(gpus={}), broken)) == ["error GPU-ECC"]


@pytest.mark.parametrize(("there", "seen"), [(1, "1 GPU"), (3, "3 GPUs")])
def test_other_number_of_gpus_is_found(there: int, seen: str) -> None:
    """One that fell off the bus, and one that the inventory forgets."""
    (found,) = gpu_checks.gpus(node(gpus={"count": 2}), driver(*[V100] * there))
    assert (found.code, found.seen, found.expected) == ("GPU-COUNT", seen, "2 GPUs")


def test_other_model_is_found_once_for_all_gpus_of_it() -> None:
    """Eight GPUs of another kind are one thing to mend; a name that cannot be read is another."""
    declared = node(gpus={"model": "Tesla V100-SXM2-16GB"})
    other = replace(V100, model="Tesla V100-SXM2-32GB")
    found = list(gpu_checks.gpus(declared, driver(V100, other, other, replace(V100, model=None))))
    assert codes(found) == ["error GPU-MODEL"] * 2
    assert [finding.seen for finding in found] == ["2 x Tesla V100-SXM2-32GB", "1 x None"]


@pytest.mark.parametrize(
    ("change", "code", "seen"),
    [
        (
            {"ecc_volatile_uncorrected": 1},
            "error GPU-ECC",
            "GPU 1: 1 uncorrected memory errors since the driver was loaded",
        ),
        (
            {"ecc_uncorrected": 5, "ecc_sram_uncorrected": 2},
            "error GPU-ECC",
            "GPU 1: 2 uncorrected SRAM errors over its life",
        ),
        ({"row_remap_pending": True}, "error GPU-ECC", "GPU 1: a row remapping is pending"),
        ({"row_remap_failed": True}, "error GPU-ECC", "GPU 1: a row remapping has failed"),
        (
            {"rows_remapped": 513},
            "error GPU-ECC",
            "GPU 1: 513 rows remapped for uncorrected errors",
        ),
        (
            {"page_retirement_pending": True},
            "error GPU-ECC",
            "GPU 1: a page retirement is pending",
        ),
        ({"mig": True}, "error GPU-MIG", "GPU 1: MIG is on"),
        ({"persistence": False}, "warning GPU-PERSISTENCE", "GPU 1: persistence mode is off"),
        (
            {"throttle_reasons": ("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown")},
            "warning GPU-THROTTLED",
            "GPU 1: clocks held down by hw_slowdown, hw_thermal_slowdown",
        ),
        (
            {"throttle_reasons": ("hw_power_brake_slowdown",)},
            "warning GPU-THROTTLED",
            "GPU 1: clocks held down by hw_power_brake_slowdown",
        ),
        (
            {"throttle_reasons": ("sw_thermal_slowdown",)},
            "warning GPU-THROTTLED",
            "GPU 1: clocks held down by sw_thermal_slowdown",
        ),
        (
            {"processes": (GpuProcess(675, "/usr/lib/xorg/Xorg", 22),)},
            "error GPU-BUSY",
            "GPU 1: process 675 (/usr/lib/xorg/Xorg) uses 22 MiB",
        ),
    ],
)
def test_gpu_that_would_spoil_a_number_is_found(
    change: dict[str, object], code: str, seen: str
) -> None:
    """By its index, so that it can be found on the node."""
    spoiled = replace(V100, **change)  # type: ignore[arg-type] # one field of each type
    (found,) = gpu_checks.gpus(node(gpus={"count": 2}), driver(V100, spoiled))
    assert (f"{found.severity} {found.code}", found.seen) == (code, seen)


def test_gpus_with_the_same_fault_are_one_finding() -> None:
    """By their indexes; another fault, or another number of errors, is one of its own."""
    off = replace(V100, persistence=False)
    found = list(gpu_checks.gpus(node(), driver(off, replace(off, mig=True), V100, off)))
    assert [finding.seen for finding in found] == [
        "GPU 0, 1, 3: persistence mode is off",
        "GPU 1: MIG is on",
    ]


def test_gpu_with_an_old_remapped_dram_error_is_fit() -> None:
    """Counts over a GPU's life stay through reboots; 512 rows that were remapped do no harm."""
    mended = replace(V100, ecc_uncorrected=3, ecc_sram_uncorrected=0, rows_remapped=512)
    assert list(gpu_checks.gpus(node(gpus={"count": 1}), driver(mended))) == []


@pytest.mark.parametrize(
    "reason",
    [
        "gpu_idle",
        "applications_clocks_setting",
        "sw_power_cap",
        "sync_boost",
        "display_clocks_setting",
    ],
)
def test_reason_that_is_normal_is_no_finding(reason: str) -> None:
    """The software power cap is at work on any GPU under full load, and on some at idle."""
    usual = replace(V100, throttle_reasons=(reason,))
    assert list(gpu_checks.gpus(node(gpus={"count": 1}), driver(usual))) == []


def test_gpu_that_no_case_may_use_is_left_alone() -> None:
    """Taking a broken GPU out of gpus.use is what the finding asks for, so that must mend it."""
    broken = replace(V100, ecc_volatile_uncorrected=7, persistence=False)
    facts = driver(V100, broken, V100)
    assert list(gpu_checks.gpus(node(gpus={"count": 3, "use": [0, 2]}), facts)) == []
    found = gpu_checks.gpus(node(gpus={"count": 3, "use": [2, 1]}), facts)
    assert codes(found) == ["error GPU-ECC", "warning GPU-PERSISTENCE"]


def test_answer_of_the_driver_that_cannot_be_read_is_an_error() -> None:
    """What was not understood is not taken for good."""
    problem = Problem("ATTACHED-GPUS", "2 are announced, 1 is there")
    (found,) = gpu_checks.gpus(node(), driver(V100, problems=(problem,)))
    assert (found.severity, found.code, found.seen) == (
        "error",
        "ATTACHED-GPUS",
        "2 are announced, 1 is there",
    )


@pytest.mark.parametrize(
    ("skew_s", "expected"),
    [
        (0.0, []),
        (1.0, []),
        (-1.0, []),
        (1.25, ["warning CLOCK-SKEW"]),
        (-1.25, ["warning CLOCK-SKEW"]),
        (30.0, ["warning CLOCK-SKEW"]),
        (30.25, ["error CLOCK-SKEW"]),
        (-30.25, ["error CLOCK-SKEW"]),
    ],
)
def test_clock_is_compared_with_this_machines(skew_s: float, expected: list[str]) -> None:
    """A second is allowed, half a minute is not; a node that gave no answer is left out."""
    facts = {"n2": NodeFacts(replace(HOST, clock_s=1000.0 + skew_s))}
    found = list(nodes_checks.together(facts, {"n1": 990.0, "n2": 1000.0}))
    assert codes(found) == expected
    if expected:
        assert found[0].node == "n2"
        assert found[0].seen == f"its clock is {skew_s:+.1f} s from this machine's"


@pytest.mark.parametrize(
    ("boot_ids", "shared"),
    [(("b1", "b2"), False), (("b1", "b1"), True), (("b1", "b2", "b1"), True), (("b1",), False)],
)
def test_nodes_with_one_boot_are_one_machine(boot_ids: tuple[str, ...], *, shared: bool) -> None:
    """Whatever they are called: a speedup over them says nothing of scaling."""
    nodes = {
        f"n{at}": NodeFacts(replace(HOST, boot_id=boot_id), None)
        for at, boot_id in enumerate(boot_ids)
    }
    site = Site(1, "testers", "d", "testers.yaml", "2020-09-15T14:28:53Z", nodes, ())
    assert site.shared_machine == shared
