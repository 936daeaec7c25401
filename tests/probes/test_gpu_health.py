"""The GPU parser: errors of memory, limits, clocks and MIG, as drivers of all ages print them."""

import re

import pytest

from orchestrator.probes import gpu
from tests import SAMPLES
from tests.probes.smi import V100, only_gpu

ECC = V100[V100.index("\t\t\t\t<single_bit><device_memory>9") : V100.index("\t\t\t</aggregate>")]
PARTIAL = "only some of {} can be read"
NEW = ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")


@pytest.mark.parametrize(
    ("counts", "total", "sram", "says"),
    [
        ({"sram_uncorrectable": "1", "dram_uncorrectable": "2", "dram_correctable": "9"}, 3, 1, ""),
        (dict(zip(NEW, ("1", "2", "4"), strict=True)), 7, 3, ""),
        (dict.fromkeys(NEW, "N/A"), None, None, ""),
        ({**dict.fromkeys(NEW, "0"), "sram_threshold_exceeded": "No"}, 0, 0, ""),
        ({**dict.fromkeys(NEW, "0"), NEW[0]: "N/A"}, None, None, PARTIAL.format(", ".join(NEW))),
        ({"sram_uncorrectable": "0"}, None, None, "cannot add up sram_uncorrectable"),
        ({"sram_correctable": "5"}, None, None, ""),
    ],
)
def test_ecc_errors_are_those_of_all_memory(
    counts: dict[str, str], total: int | None, sram: int | None, says: str
) -> None:
    """DRAM and all parts of SRAM count, correctable errors never, and a part is no total."""
    parts = "".join(f"<{tag}>{count}</{tag}>" for tag, count in counts.items())
    one, problems = only_gpu(V100.replace(ECC, parts))
    assert (one.ecc_uncorrected, one.ecc_sram_uncorrected) == (total, sram)
    assert problems == (
        [f"UNREADABLE nvidia-smi -q -x, GPU 0: ecc_errors/aggregate: {says}"] if says else []
    )


def test_total_that_is_unreadable_has_no_part() -> None:
    """Nothing is said of SRAM where the total of all memories is not known."""
    one, problems = only_gpu(V100.replace("<total>3<", "<total>-3<"))
    assert (one.ecc_uncorrected, one.ecc_sram_uncorrected) == (None, None)
    (said,) = problems
    assert said.endswith("GPU 0: ecc_errors/aggregate/double_bit/total: cannot read '-3'")


def test_ecc_errors_without_their_memory_count_as_those_of_sram() -> None:
    """Where nothing says that an old total is of DRAM, it gates."""
    one, problems = only_gpu(V100.replace("<device_memory>2</device_memory>", ""))
    assert (one.ecc_uncorrected, one.ecc_sram_uncorrected, problems) == (3, 3, [])


# As driver 575.51.02 prints them for an Ada GPU, with other counts and words.
AMPERE = """\
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<sram_correctable>9</sram_correctable>
\t\t\t\t<sram_uncorrectable_parity>1</sram_uncorrectable_parity>
\t\t\t\t<sram_uncorrectable_secded>2</sram_uncorrectable_secded>
\t\t\t\t<dram_correctable>9</dram_correctable>
\t\t\t\t<dram_uncorrectable>3</dram_uncorrectable>
\t\t\t</volatile>
\t\t\t<aggregate>
\t\t\t\t<sram_uncorrectable_parity>4</sram_uncorrectable_parity>
\t\t\t\t<sram_uncorrectable_secded>5</sram_uncorrectable_secded>
\t\t\t\t<dram_uncorrectable>6</dram_uncorrectable>
\t\t\t\t<sram_threshold_exceeded>No</sram_threshold_exceeded>
\t\t\t</aggregate>
\t\t</ecc_errors>
\t\t<retired_pages>
\t\t\t<pending_retirement>N/A</pending_retirement>
\t\t</retired_pages>
\t\t<remapped_rows>
\t\t\t<remapped_row_corr>0</remapped_row_corr>
\t\t\t<remapped_row_unc>1</remapped_row_unc>
\t\t\t<remapped_row_pending>Yes</remapped_row_pending>
\t\t\t<remapped_row_failure>No</remapped_row_failure>
\t\t</remapped_rows>
"""


def test_gpu_that_remaps_rows_is_read() -> None:
    """Newer drivers count by memory and say what becomes of rows; pages are no longer retired."""
    old = V100[V100.index("\t\t<ecc_errors>") : V100.index("\t\t<power_readings>")]
    one, problems = only_gpu(V100.replace(old, AMPERE))
    assert (one.ecc_volatile_uncorrected, one.ecc_uncorrected) == (6, 15)
    assert one.ecc_sram_uncorrected == 9
    assert (one.row_remap_pending, one.row_remap_failed) == (True, False)
    assert one.rows_remapped == 1
    assert (one.page_retirement_pending, problems) == (None, [])


@pytest.mark.parametrize(
    "readings",
    [
        "<power_readings><power_limit>250.5 W</power_limit></power_readings>",
        "<gpu_power_readings><power_limit>250.5 W</power_limit></gpu_power_readings>",
        "<gpu_power_readings><current_power_limit>250.5 W</current_power_limit>"
        "<requested_power_limit>300.00 W</requested_power_limit></gpu_power_readings>"
        "<module_power_readings><current_power_limit>900.00 W</current_power_limit>"
        "</module_power_readings>",
        "<gpu_power_readings><current_power_limit>N/A</current_power_limit></gpu_power_readings>"
        "<power_readings><power_limit>250.5 W</power_limit></power_readings>",
    ],
)
def test_the_power_limit_is_that_in_force(readings: str) -> None:
    """Every spelling of the limit in force is read; requested and module limits are not."""
    text = re.sub(r"(?s)<power_readings>.*</power_readings>", readings, V100)
    one, problems = only_gpu(text)
    assert (one.power_limit_w, problems) == (250.5, [])


def test_event_reasons_are_throttle_reasons() -> None:
    """The newer name of the reasons gives the same words."""
    text = V100.replace("clocks_throttle_reason", "clocks_event_reason")
    assert gpu.parse(text) == gpu.parse(V100)


@pytest.mark.parametrize(("word", "mig"), [("Enabled", True), ("Disabled", False), ("N/A", None)])
def test_mig_is_that_of_now(word: str, mig: bool | None) -> None:
    """The current mode counts, not the one after the next reset."""
    mode = (
        f"<mig_mode><current_mig>{word}</current_mig><pending_mig>Enabled</pending_mig></mig_mode>"
    )
    one, problems = only_gpu(V100.replace("<uuid>", f"{mode}<uuid>"))
    assert (one.mig, problems) == (mig, [])


def with_elements(elements: str) -> str:
    """The document of a GPU that has these elements too."""
    return V100.replace("<uuid>", f"{elements}<uuid>")


DEPRECATED = "Requested functionality has been deprecated"


@pytest.mark.parametrize(
    ("elements", "action"),
    [
        ("", None),
        ("<gpu_recovery_action>N/A</gpu_recovery_action>", None),
        ("<gpu_recovery_action>None</gpu_recovery_action>", "None"),
        ("<gpu_recovery_action>Drain and Reset</gpu_recovery_action>", "Drain and Reset"),
        ("<reset_required>No</reset_required>", None),
        ("<reset_required>Yes</reset_required>", "Reset"),
        (
            "<reset_required>No</reset_required>"
            "<drain_and_reset_recommended>Yes</drain_and_reset_recommended>",
            "Drain and Reset",
        ),
        (
            f"<reset_required>{DEPRECATED}</reset_required>"
            "<gpu_recovery_action>Reboot</gpu_recovery_action>",
            "Reboot",
        ),
    ],
)
def test_the_driver_says_which_recovery_a_gpu_needs(elements: str, action: str | None) -> None:
    """In one word since driver 570, in two before, and not at all in old ones."""
    status = elements.partition("<gpu_recovery_action>")[0]
    text = f"<gpu_reset_status>{status}</gpu_reset_status>{elements[len(status) :]}"
    one, problems = only_gpu(with_elements(text))
    assert (one.recovery_action, problems) == (action, [])


HEALTH = """<health>
<summary>{summary}</summary>
<bandwidth>{bandwidth}</bandwidth>
<route_recovery_in_progress>False</route_recovery_in_progress>
<route_unhealthy>N/A</route_unhealthy>
<incorrect_configuration>None</incorrect_configuration>
</health>"""


@pytest.mark.parametrize(
    ("words", "fabric"),
    [
        ("<state>N/A</state><status>N/A</status>", None),
        (
            "<state>Completed</state><status>Success</status><cliqueId>1</cliqueId>",
            {"state": "Completed", "status": "Success"},
        ),
        ("<state>In Progress</state><status>N/A</status>", {"state": "In Progress"}),
        ("<state>Not Supported</state><status>Unknown Error</status>", {"status": "Unknown Error"}),
        (
            "<state>Completed</state><status>Success</status>"
            + HEALTH.format(summary="Unhealthy", bandwidth="Degraded"),
            {
                "state": "Completed",
                "status": "Success",
                "summary": "Unhealthy",
                "bandwidth": "Degraded",
                "route_recovery_in_progress": "False",
                "incorrect_configuration": "None",
            },
        ),
    ],
)
def test_the_fabric_is_read_in_the_driver_s_words(
    words: str, fabric: dict[str, str] | None
) -> None:
    """The names are those of driver 590; what is not reported is left out."""
    one, problems = only_gpu(with_elements(f"<fabric>{words}</fabric>"))
    assert (one.fabric, problems) == (fabric, [])


@pytest.mark.parametrize("name", ["telegraf_tesla-t4", "telegraf_a10g", "telegraf_a100-sxm4-v12"])
def test_drivers_that_know_neither_have_no_problem(name: str) -> None:
    """Drivers 418 to 525; on the A100 no fabric manager is needed, so its fabric is N/A."""
    facts = gpu.parse((SAMPLES / f"nvidia-smi/{name}.xml").read_text())
    assert {(one.recovery_action, one.fabric) for one in facts.gpus} == {(None, None)}
    assert {problem.code for problem in facts.problems} <= {"ATTACHED-GPUS"}


INFOROM = "WARNING: infoROM is corrupted at gpu 0000:67:00.0"


@pytest.mark.parametrize("text", [f"{V100}{INFOROM}  \n", f"{INFOROM}\n{V100}"])
def test_a_warning_beside_the_document_is_told(text: str) -> None:
    """The driver prints it behind its answer; the values are those of the answer."""
    one, problems = only_gpu(text)
    assert one == only_gpu(V100)[0]
    assert problems == [f"GPU-WARNING {INFOROM}"]
