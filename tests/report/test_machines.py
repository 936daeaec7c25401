"""The state of the machines stands beside what was measured, in every file of a report."""

import json
from dataclasses import replace

from orchestrator import report
from orchestrator.model.report import Report
from orchestrator.model.telemetry import Energy, MachineState
from tests.reported import csv_rows, results, section, sweep, tables

STATE = MachineState(
    node="vs001",
    span="window",
    seconds=31.5,
    moments=31,
    sm_mhz=1530.0,
    memory_mhz=877.0,
    power_w=287.4,
    temperature_c=61.0,
    utilisation_pct=99.0,
    memory_mib=15200.0,
    limits=("sw_power_cap",),
    slowed_s=0.0,
    others_cpus=0.3,
    steal=0.001,
    load=4.2,
)
CPU_ONLY = MachineState(node="vs002", span="run", seconds=9.0, moments=9, others_cpus=0.1, load=1.0)


def observed(*states: MachineState, energy: Energy | None = None) -> Report:
    """A report of one case whose trials ran on machines in these states."""
    (result,) = results({"1x1": (802.9, 800.0)})
    trials = tuple(replace(trial, machines=states, energy=energy) for trial in result.trials)
    return sweep((replace(result, trials=trials),))


def shown(found: Report) -> dict[str, str]:
    """The one row of the tables of GPUs and of processors, by its heads."""
    both = tables(section(report.markdown(found), "State of the machines"))
    return {name: cell for rows in both for name, cell in zip(*rows, strict=True)}


def test_a_case_shows_medians_over_its_machines() -> None:
    """Clocks, power, temperature, load, limits and joules per sample."""
    found = observed(STATE, replace(STATE, sm_mhz=1520.0), energy=Energy(9000.0, 0.357, "power"))
    said = shown(found)
    assert (said["moments"], said["SM clock, MHz"], said["memory clock, MHz"]) == (
        "124",
        "1525",
        "877",
    )
    assert (said["power, W"], said["temperature, °C"], said["utilisation, %"]) == (
        "287",
        "61",
        "99",
    )
    assert (said["CPUs used by others"], said["steal"], said["load"]) == ("0.3", "0.1%", "4.2")
    assert (said["limits seen"], said["J per sample"]) == ("sw\\_power\\_cap", "0.357")


def test_no_limit_is_told_apart_from_no_answer() -> None:
    """GPUs that ran free: none seen. A node without GPUs, or a silent driver: no such column."""
    assert shown(observed(replace(STATE, limits=())))["limits seen"] == "none seen"
    silent = shown(observed(CPU_ONLY))
    absent = ("SM clock, MHz", "steal", "limits seen", "J per sample")
    assert [head for head in absent if head in silent] == []
    chinese = report.markdown(observed(replace(STATE, limits=())), "zh")
    assert "## 机器状态" in chinese
    assert "未出现" in chinese


def test_a_report_without_machines_has_no_such_table() -> None:
    """A folder of logs, a sweep of an earlier version, or no valid trial."""
    assert "State of the machines" not in report.markdown(observed())


def test_json_and_csv_have_it_unrounded() -> None:
    """Of each trial its machines, of a case the joules per sample and where they come from."""
    found = observed(STATE, CPU_ONLY, energy=Energy(9000.0, 0.3571, "counter"))
    (case,) = json.loads(json.dumps(report.document(found), allow_nan=False))["cases"]
    assert (case["energy_per_sample_j"], case["energy_source"]) == (0.3571, "counter")
    trial = case["trials"][0]
    assert (trial["energy_j"], trial["energy_source"]) == (9000.0, "counter")
    assert trial["machines"][0]["limits"] == ["sw_power_cap"]
    assert trial["machines"][1]["limits"] is None
    assert trial["machines"][1]["power_w"] is None
    (row,) = csv_rows(found)
    assert (row["energy_per_sample_j"], row["energy_source"]) == ("0.3571", "counter")
    (bare,) = csv_rows(observed())
    assert (bare["energy_per_sample_j"], bare["energy_source"]) == ("", "")
