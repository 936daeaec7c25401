"""The parser of `nvidia-smi -q -x`: which value follows from which words of the document."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.model.facts import GpuFacts, GpuProcess
from orchestrator.probes import gpu
from tests import SAMPLES

# A V100 as the driver 440 of the seeds prints it, cut down to what is read.
V100 = Path(__file__).with_name("v100.xml").read_text()
NEW = ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
TOTALS = ["ecc_uncorrected", "ecc_sram_uncorrected"]
VOLATILE = {"ecc_volatile_uncorrected": 6}
REMAPPED = {"row_remap_pending": True, "row_remap_failed": False, "rows_remapped": 1}
WATTS = {"power_limit_w": 250.5}
# Patterns of what an edit replaces
LIFETIME = r"<single_bit>.*?(?=\s*</aggregate>)"
PROCESSES, POWER = "<processes>.*</processes>", "<power_readings>.*</power_readings>"
# Elements that an edit adds to the GPU
MIG = "<mig_mode><current_mig>{}</current_mig><pending_mig>Enabled</pending_mig></mig_mode><uuid>"
FABRIC = "<fabric><state>{}</state><status>{}</status>{}</fabric><uuid>"
HEALTH = """<health><summary>Unhealthy</summary><bandwidth>Degraded</bandwidth>
<route_recovery_in_progress>False</route_recovery_in_progress>
<route_unhealthy>N/A</route_unhealthy>
<incorrect_configuration>None</incorrect_configuration></health>"""
ROWS = """<remapped_rows><remapped_row_corr>0</remapped_row_corr>
<remapped_row_unc>1</remapped_row_unc><remapped_row_pending>Yes</remapped_row_pending>
<remapped_row_failure>No</remapped_row_failure></remapped_rows>"""
DEPRECATED = "Requested functionality has been deprecated"
DRAIN = "<drain_and_reset_recommended>Yes</drain_and_reset_recommended>"


def only_gpu(text: str) -> tuple[GpuFacts, list[str]]:
    """Return the only GPU of the document, and all problems as `CODE message`."""
    fact = gpu.parse(text)
    (one,) = fact.gpus
    return one, [f"{problem.code} {problem.message}" for problem in fact.problems]


def edited(old: str, new: str) -> tuple[dict[str, object], list[str]]:
    """Return the values that an edit of the document changes, and the problems."""
    text, edits = re.subn(old, new, V100, count=1, flags=re.DOTALL)
    assert edits == 1
    (one, problems), (whole, _) = only_gpu(text), only_gpu(V100)
    names = [name for name in GpuFacts.__slots__ if getattr(one, name) != getattr(whole, name)]
    return {name: getattr(one, name) for name in names}, problems


def parity(*counts: str) -> str:
    """Return uncorrected errors as drivers since 550 count them, 0 where not given."""
    every = (*counts, "0", "0", "0")[: len(NEW)]
    return "".join(f"<{tag}>{count}</{tag}>" for tag, count in zip(NEW, every, strict=True))


def recovery(required: str, action: str = "", more: str = "") -> str:
    said = f"<reset_required>{required}</reset_required>{more}" if required else ""
    word = f"<gpu_recovery_action>{action}</gpu_recovery_action>" if action else ""
    return f"<gpu_reset_status>{said}</gpu_reset_status>{word}<uuid>"


def fabric(**more: str) -> dict[str, object]:
    return {"fabric": {"state": "Completed", "status": "Success", **more}}


@pytest.mark.parametrize(
    ("old", "new", "names", "says"),
    [
        ("memory>2<", "memory>9<", TOTALS[1:], "aggregate: 9 errors of DRAM among 3"),
        ("16160 MiB", "16160", ["memory_mib"], "fb_memory_usage/total: cannot read '16160'"),
        ("16160 MiB", "16 GiB", ["memory_mib"], "fb_memory_usage/total: cannot read '16 GiB'"),
        ("135 MHz", "ERR!", ["sm_clock_mhz"], "clocks/sm_clock: cannot read 'ERR!'"),
        ("300.00 W", "nan W", ["power_limit_w"], "power_limit: cannot read 'nan W'"),
        ("<uuid>GPU-1", "<uuid>1", ["uuid"], "uuid: cannot read '1'"),
        ("Tesla V.*GB", "[GPU requires reset]", ["model"], "read '[GPU requires reset]'"),
        ("ent>Yes<", "ent>1<", ["page_retirement_pending"], "_retirement: cannot read '1'"),
        ("<total>4<", "<total>?<", ["ecc_volatile_uncorrected"], "total: cannot read '?'"),
        ("<total>3<", "<total>-3<", TOTALS, "double_bit/total: cannot read '-3'"),
        (">Enabled<", ">On<", ["persistence"], "persistence_mode: cannot read 'On'"),
        (">Not Active<", ">Maybe<", ["throttle_reasons"], "sw_power_cap: cannot read 'Maybe'"),
        (PROCESSES, "<processes>GPU is lost</processes>", ["processes"], "read 'GPU is lost'"),
        (LIFETIME, parity("N/A", "0"), TOTALS, f"only some of {', '.join(NEW)} can be read"),
        (
            LIFETIME,
            "<sram_uncorrectable>0</sram_uncorrectable>",
            TOTALS,
            "add up sram_uncorrectable",
        ),
    ],
)
def test_a_value_that_cannot_be_read_is_null(
    old: str, new: str, names: list[str], says: str
) -> None:
    """No other value changes, and one problem shows what stood there."""
    changed, (problem,) = edited(old, new)
    assert changed == dict.fromkeys(names)
    assert problem.startswith("UNREADABLE nvidia-smi -q -x, GPU 0: ")
    assert problem.endswith(says)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        # An empty list of processes is a fact; no list is the driver's silence
        (PROCESSES, "<processes/>", {"processes": ()}),
        (PROCESSES, "<processes>N/A</processes>", {"processes": None}),
        (PROCESSES, "", {"processes": None}),
        # Errors of DRAM and of all parts of SRAM count, correctable ones never
        (
            LIFETIME,
            "<sram_uncorrectable>3</sram_uncorrectable><dram_uncorrectable>2</dram_uncorrectable>"
            "<dram_correctable>9</dram_correctable>",
            {TOTALS[0]: 5, TOTALS[1]: 3},
        ),
        (LIFETIME, parity("1", "2", "4"), {TOTALS[0]: 7, TOTALS[1]: 3}),
        (LIFETIME, parity("N/A", "N/A", "N/A"), dict.fromkeys(TOTALS)),
        (
            LIFETIME,
            parity() + "<sram_threshold_exceeded>No</sram_threshold_exceeded>",
            dict.fromkeys(TOTALS, 0),
        ),
        (LIFETIME, "<sram_correctable>5</sram_correctable>", dict.fromkeys(TOTALS)),
        ("<volatile>.*</volatile>", f"<volatile>{parity('1', '2', '3')}</volatile>", VOLATILE),
        # An old total of unknown memory may be of SRAM, which is an error
        ("<device_memory>2</device_memory>", "", {"ecc_sram_uncorrected": 3}),
        ("<uuid>", f"{ROWS}<uuid>", REMAPPED),
        # The power limit in force, by all names; neither a requested one nor that of a module
        (
            POWER,
            "<gpu_power_readings><power_limit>250.5 W</power_limit></gpu_power_readings>",
            WATTS,
        ),
        (
            POWER,
            "<gpu_power_readings><current_power_limit>250.5 W</current_power_limit>"
            "<requested_power_limit>300.00 W</requested_power_limit></gpu_power_readings>"
            "<module_power_readings><current_power_limit>900.00 W</current_power_limit>"
            "</module_power_readings>",
            WATTS,
        ),
        (
            POWER,
            "<gpu_power_readings><current_power_limit>N/A</current_power_limit>"
            "</gpu_power_readings><power_readings><power_limit>250.5 W</power_limit>"
            "</power_readings>",
            WATTS,
        ),
        # MIG as it is now, not as it will be after a reset
        ("<uuid>", MIG.format("Enabled"), {"mig": True}),
        ("<uuid>", MIG.format("Disabled"), {"mig": False}),
        ("<uuid>", MIG.format("N/A"), {}),
        # Drivers since 570 name the recovery that they ask for; older ones answer two questions
        ("<uuid>", recovery("", "N/A"), {}),
        ("<uuid>", recovery("", "None"), {"recovery_action": "None"}),
        ("<uuid>", recovery("", "Drain and Reset"), {"recovery_action": "Drain and Reset"}),
        ("<uuid>", recovery("No"), {}),
        ("<uuid>", recovery("Yes"), {"recovery_action": "Reset"}),
        ("<uuid>", recovery("No", "", DRAIN), {"recovery_action": "Drain and Reset"}),
        ("<uuid>", recovery(DEPRECATED, "Reboot"), {"recovery_action": "Reboot"}),
        # The fabric, in the driver's words; what it does not report is left out
        ("<uuid>", FABRIC.format("N/A", "N/A", ""), {}),
        ("<uuid>", FABRIC.format("Completed", "Success", "<cliqueId>1</cliqueId>"), fabric()),
        ("<uuid>", FABRIC.format("In Progress", "N/A", ""), {"fabric": {"state": "In Progress"}}),
        (
            "<uuid>",
            FABRIC.format("[N/A]", "Unknown Error", ""),
            {"fabric": {"status": "Unknown Error"}},
        ),
        (
            "<uuid>",
            FABRIC.format("Completed", "Success", HEALTH),
            fabric(
                summary="Unhealthy",
                bandwidth="Degraded",
                route_recovery_in_progress="False",
                incorrect_configuration="None",
            ),
        ),
    ],
)
def test_drivers_of_all_ages_are_read(old: str, new: str, changed: Mapping[str, object]) -> None:
    assert edited(old, new) == (changed, [])


def test_an_unreadable_process_names_itself() -> None:
    changed, problems = edited("<pid>1<", "<pid>one<")
    assert changed == {"processes": (GpuProcess(None, "python3 <train>", 2),)}
    assert problems == ["UNREADABLE nvidia-smi -q -x, GPU 0 process 0: pid: cannot read 'one'"]


def test_the_document_has_the_promised_keys(snapshot: SnapshotAssertion) -> None:
    """`inspect gpu` prints these keys in this order, as JSON."""
    text = V100.replace("<attached_gpus>1", "<attached_gpus>2")
    assert json.dumps(asdict(gpu.parse(text)), indent=1) == snapshot


def test_words_around_the_document_and_newer_names_change_nothing() -> None:
    whole = gpu.parse(V100)
    assert gpu.parse(f"\ufeffroot@a:~# nvidia-smi -q -x\n{V100}\nroot@a:~# ") == whole
    assert gpu.parse(V100[V100.index("<nvidia_smi_log>") :]) == whole
    assert gpu.parse(V100.replace("clocks_throttle_reason", "clocks_event_reason")) == whole


@pytest.mark.parametrize(
    "word", ["N/A", "[N/A]", "", "Requested functionality has been deprecated"]
)
def test_a_value_that_is_not_reported_is_null_without_a_problem(word: str) -> None:
    one, problems = only_gpu(re.sub(r">[^<>\s][^<>]*<", f">{word}<", V100))
    assert problems == []
    assert one.processes == (GpuProcess(pid=None, name=None, memory_mib=None),)
    said = {name for name in GpuFacts.__slots__ if getattr(one, name) is not None}
    assert said == {"index", "bus_id", "processes"}
    assert one.bus_id == "00000000:1A:00.0", "the element itself has it"


def test_a_gpu_that_reports_nothing_is_all_null() -> None:
    for name, bus_id in (("00000000:1A:00.0", "00000000:1A:00.0"), ("first", None)):
        one, problems = only_gpu(f'<nvidia_smi_log><gpu id="{name}"></gpu></nvidia_smi_log>')
        assert (one.bus_id, problems) == (bus_id, [])
        assert {getattr(one, slot) for slot in GpuFacts.__slots__} == {0, bus_id, None}


def test_gpus_are_numbered_in_the_order_of_the_document() -> None:
    element = V100[V100.index("\t<gpu ") : V100.index("</nvidia_smi_log>")]
    second = element.replace("1A:00.0", "05:00.0").replace("GPU-1", "GPU-2")
    text = V100.replace(element, element + second).replace("<attached_gpus>1", "<attached_gpus>2")
    fact = gpu.parse(text)
    assert [(one.index, one.uuid) for one in fact.gpus] == [(0, "GPU-1"), (1, "GPU-2")]
    assert fact.problems == ()


def test_a_driver_without_gpus_is_a_problem() -> None:
    fact = gpu.parse("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>")
    assert (fact.driver, fact.cuda, fact.gpus) == (None, None, ())
    assert [problem.code for problem in fact.problems] == ["NO-GPU"]
    lost = gpu.parse("<nvidia_smi_log><driver_version>?</driver_version></nvidia_smi_log>")
    assert [problem.message for problem in lost.problems] == [
        "nvidia-smi -q -x, the driver: driver_version: cannot read '?'",
        "the text describes no GPU",
    ]


INFOROM = "WARNING: infoROM is corrupted at gpu 0000:67:00.0"


@pytest.mark.parametrize("text", [f"{V100}{INFOROM}  \n", f"{INFOROM}\n{V100}"])
def test_a_warning_beside_the_document_is_a_problem(text: str) -> None:
    assert only_gpu(text) == (only_gpu(V100)[0], [f"GPU-WARNING {INFOROM}"])


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("", ""),
        ("NVIDIA-SMI has failed because it couldn't communicate.\n", "NVIDIA-SMI has failed"),
        ("<html></html>", "<html>"),
        (V100.replace("</gpu>", ""), "<?xml"),
        (V100 + V100, "<?xml"),
        (V100.replace("GPU-1", "GPU-\x00"), "<?xml"),
        (V100.replace("GPU-1", "GPU-\udcff"), "<?xml"),
        ("<?xml version='1.0'?><nvidia_smi_log_2></nvidia_smi_log_2>", "<?xml"),
        ((SAMPLES / "nvidia-smi/netdata_tesla-p100.csv").read_text(), "name, uuid, fan.speed"),
        ((SAMPLES / "nvidia-smi/sysuest_v100_4gpu_plain.txt").read_text(), "Tue May 11 12:08:26"),
    ],
)
def test_a_text_that_is_not_one_whole_document_is_refused(text: str, begins: str) -> None:
    """The message shows how the text begins, and the fix says what to record instead."""
    with pytest.raises(errors.LogError, match="not one whole XML document") as caught:
        gpu.parse(text)
    assert re.search(f"begins with ['\"]{re.escape(begins)}", caught.value.cause)
    assert (caught.value.code, "nvidia-smi -q -x" in caught.value.fix) == ("UNREADABLE", True)
