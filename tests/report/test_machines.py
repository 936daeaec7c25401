"""The state of the machines stands beside what was measured, in every file of a report."""

import json
from dataclasses import replace

from orchestrator import report
from orchestrator.model.report import Report
from orchestrator.model.telemetry import Energy, MachineState
from tests.reported import csv_rows, logged, results, section, sweep, tables

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
    assert silent["CPUs used by others"] == "0.1"
    assert [head for head in absent if head in silent] == []
    chinese = report.markdown(observed(replace(STATE, limits=())), "zh")
    assert "## 机器状态" in chinese
    assert "未出现" in chinese


def test_a_report_without_machines_has_no_such_table() -> None:
    """A folder of logs, a sweep of an earlier version, or no valid trial."""
    assert "State of the machines" not in report.markdown(observed())


def test_what_was_not_observed_is_said_and_never_blank() -> None:
    """In both languages and pages, in results.csv, and in results.json beside its null."""
    found = observed(replace(STATE, others_cpus=None, limits=None))
    said = shown(found)
    assert said["CPUs used by others"] == "not observed"
    assert "limits seen" not in said
    heads = ("CPUs used by others", "其他进程占用的 CPU 数")
    pages = (report.html_page(found, "en", {}), report.html_page(found, "zh", {}))
    for page, head, words in zip(pages, heads, ("not observed", "未观测"), strict=True):
        assert f">{head}</th>" in page
        assert f">{words}</td>" in page
    (row,) = csv_rows(found)
    assert row["others_cpus"] == "not observed"
    (case,) = json.loads(json.dumps(report.document(found)))["cases"]
    machine = case["trials"][0]["machines"][0]
    assert (machine["others_cpus"], machine["not_observed"]) == (None, ["limits", "others_cpus"])
    assert csv_rows(observed(STATE, CPU_ONLY))[0]["others_cpus"] == "0.2"


def test_the_peak_of_memory_is_that_of_logs_else_that_of_drivers() -> None:
    """In the row of a case, and in results.json beside what logs show."""
    found = observed(replace(STATE, memory_peak_mib=15900.0), replace(STATE, memory_peak_mib=None))
    (glance,) = tables(section(report.markdown(found), "Cases at a glance"))
    assert dict(zip(*glance, strict=True))["peak memory"] == "15900 (MiB)"
    (case,) = json.loads(json.dumps(report.document(found)))["cases"]
    assert (case["memory_mib"], case["peak_memory_mib"]) == (None, 15900.0)
    (result,) = found.results
    trials = tuple(logged(trial, memory_mib=11958) for trial in result.trials)
    (case,) = json.loads(
        json.dumps(report.document(replace(found, results=(replace(result, trials=trials),))))
    )["cases"]
    assert (case["memory_mib"], case["peak_memory_mib"]) == (11958, 11958)


def test_a_case_of_which_nothing_was_seen_is_in_the_table_too() -> None:
    """Beside one that was observed."""
    one, two = results({"1x1": (802.9,), "1x4": (3000.0,)})
    seen = replace(one, trials=tuple(replace(it, machines=(STATE,)) for it in one.trials))
    text = section(report.markdown(sweep((seen, two))), "State of the machines")
    assert "| 1x4 | 0 | not observed |" in text


def test_telemetry_that_is_not_placed_is_said() -> None:
    """With of how many trials; where all are placed nothing is said."""
    unplaced = section(report.markdown(observed(CPU_ONLY)), "State of the machines")
    assert "Telemetry not placed in the window, so of the whole run: trials 2." in unplaced
    placed = section(report.markdown(observed(STATE)), "State of the machines")
    assert "not placed" not in placed
    assert "有 2 次试验的机器状态无法对应到测量窗口" in report.markdown(observed(CPU_ONLY), "zh")


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
