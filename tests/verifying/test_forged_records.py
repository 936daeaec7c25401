"""Logs and records, edited with care and their hashes made anew, are found all the same."""

import json
import re

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.state.sweep import Sweep
from tests.verifying.forging import (
    ONE,
    RESULTS,
    Forgeries,
    both_logs,
    edit,
    found,
    of_case,
    replaced,
    reseal,
    sha256,
)

CUT = "4n8g/r50_b256_amp_5"
FORGERIES = Forgeries()


@FORGERIES.found_in("logs/1n8g/r50_b256_amp_2.log")
def swapped_logs(sweep: Sweep) -> None:
    one, other = (both_logs(sweep, name)[0] for name in (ONE, "1n8g/r50_b256_amp_3"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


@FORGERIES.found_in("logs/1n8g/r50_b256_amp_2.json")
def swapped_logs_with_their_hashes(sweep: Sweep) -> None:
    """Raw logs too: now the recorded throughput is another log's."""
    names = (ONE, "1n8g/r50_b256_amp_3")
    texts = [both_logs(sweep, name)[0].read_bytes() for name in names]
    for name, content in zip(names, reversed(texts), strict=True):
        for path in both_logs(sweep, name):
            path.write_bytes(content)
        reseal(sweep, name)


@FORGERIES.found_in(f"logs/{CUT}.json")
def a_cut_log_that_counts(sweep: Sweep) -> None:
    reseal(sweep, CUT, state="valid", problems=[], throughput=22053.98, lines=[50, 150])


@FORGERIES.found_in(f"logs/{ONE}.json")
def a_good_log_that_does_not_count(sweep: Sweep) -> None:
    problem = {"code": "TRUNCATED", "message": "have 120 of 150 steps"}
    reseal(sweep, ONE, state="invalid", problems=[problem])


@FORGERIES.found_in("attempts/1n8g-r50_b256_amp_2/a1/attempt.json")
def an_outcome_that_seals_no_attempt(sweep: Sweep) -> None:
    path = sweep.folder / f"logs/{ONE}.json"
    before = sha256(path)
    edit(path, lambda it: it.update(attempt_sha256=""))
    replaced(sweep.folder / "events.jsonl", before, sha256(path))


@FORGERIES.found_in(f"logs/{ONE}.json")
def a_throughput_of_an_outcome(sweep: Sweep) -> None:
    reseal(sweep, ONE, throughput=6500.0)


@FORGERIES.found_in(f"logs/{ONE}.json")
def an_outcome_alone(sweep: Sweep) -> None:
    edit(sweep.folder / f"logs/{ONE}.json", lambda it: it.update(throughput=6500.0))


@FORGERIES.found_in("logs/4n8g/r50_b256_amp_1.json")
def lines_of_an_outcome(sweep: Sweep) -> None:
    reseal(sweep, "4n8g/r50_b256_amp_1", lines=[51, 151])


@FORGERIES.found_in(f"logs/{ONE}.log")
def a_log_but_not_its_raw_log(sweep: Sweep) -> None:
    log, _ = both_logs(sweep, ONE)
    replaced(log, "Iteration: 125 ", "Iteration: 126 ")
    reseal(sweep, ONE)


@FORGERIES.found_in(f"logs/{ONE}.json")
def a_clock_in_both_logs(sweep: Sweep) -> None:
    """The step that ends the window comes half a second earlier."""
    for path in both_logs(sweep, ONE):
        text = path.read_text()
        (line,) = re.findall(r"DLL \S+ (\S+) - Epoch: 0 Iteration: 125 ", text)
        path.write_text(
            text.replace(line, f"{line[:-9]}{(int(line[-9:-7]) + 58) % 60:02}{line[-7:]}")
        )
    reseal(sweep, ONE)


@FORGERIES.found_in("logs/2n8g/r50_b256_amp_1.json")
def nodes_of_an_attempt(sweep: Sweep) -> None:
    path = sweep.attempt_folder("2n8g-r50_b256_amp_1", 1) / "attempt.json"
    edit(path, lambda it: it["tasks"][1].update(node="vs4"))


@FORGERIES.found_in("logs/2n8g/r50_b256_amp_1.json")
def a_log_without_proof_of_infiniband(sweep: Sweep) -> None:
    """What NCCL says on the second node, taken out of its log, all hashes made anew."""
    path = sweep.attempt_folder("2n8g-r50_b256_amp_1", 1) / "r1.log"
    path.write_text("nothing\n")
    reseal(sweep, "2n8g/r50_b256_amp_1")


@FORGERIES.found_in(RESULTS)
def one_log_as_two_trials(sweep: Sweep) -> None:
    content = both_logs(sweep, ONE)[0].read_bytes()
    given = json.loads((sweep.folder / f"logs/{ONE}.json").read_text())
    for path in both_logs(sweep, "1n8g/r50_b256_amp_4"):
        path.write_bytes(content)
    fields = {key: given[key] for key in ("throughput", "lines")}
    reseal(sweep, "1n8g/r50_b256_amp_4", **fields)


@FORGERIES.found_in(f"logs/{ONE}.json")
def the_window_of_the_plan(sweep: Sweep) -> None:
    window = {"window": [30, 130]}
    edit(sweep.folder / "sweep.json", lambda it: it["plan"]["method"].update(window))


@FORGERIES.found_in(f"logs/{ONE}.json")
def an_event_that_is_gone(sweep: Sweep) -> None:
    path = sweep.folder / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    trial = '"1n8g-r50_b256_amp_2", "attempt": 1, "state"'
    path.write_text("".join(line for line in lines if trial not in line))


@FORGERIES.found_in("attempts/1n8g-r50_b256_amp_2/a1/attempt.json")
def gpus_of_a_task(sweep: Sweep) -> None:
    path = sweep.attempt_folder("1n8g-r50_b256_amp_2", 1) / "attempt.json"
    edit(path, lambda it: it["tasks"][0].update(gpus=[0, 1, 2, 3]))


@FORGERIES.found_in("events.jsonl")
def a_port(sweep: Sweep) -> None:
    path = sweep.attempt_folder("1n8g-r50_b256_amp_2", 1) / "attempt.json"
    edit(path, lambda it: it.update(port=22334))
    reseal(sweep, ONE, port=22334)


@FORGERIES.found_in("logs/2n8g/r50_b256_amp_1.json")
def when_a_gate_opened(sweep: Sweep) -> None:
    path = sweep.folder / "logs/2n8g/r50_b256_amp_1.json"
    edit(path, lambda it: it["tasks"][1].update(went_at=9.0))
    reseal(sweep, "2n8g/r50_b256_amp_1")


@FORGERIES.found_in("attempts/1n8g-r50_b256_amp_2/a1/r0.exit")
def a_failed_trial_with_the_log_of_another(sweep: Sweep) -> None:
    """A good log, an hour later, in place of a failed one; every checksum is made anew."""
    text = both_logs(sweep, "1n8g/r50_b256_amp_3")[0].read_text()
    later = re.sub(r"(DLL \S+ )(\d\d)(:)", lambda it: f"{it[1]}{int(it[2]) + 1:02}{it[3]}", text)
    given = json.loads((sweep.folder / "logs/1n8g/r50_b256_amp_3.json").read_text())
    for path in both_logs(sweep, ONE):
        path.write_text(later)
    (both_logs(sweep, ONE)[1].parent / "r0.exit").write_text("1 exited\n")
    reseal(sweep, ONE, throughput=given["throughput"], lines=given["lines"])
    report_files.reports(sweep.folder, measured(sweep), "en")


@FORGERIES.found_in("attempts/1n8g-r50_b256_amp_2/a1/r0.exit")
def an_exit_file_that_is_gone(sweep: Sweep) -> None:
    folder = sweep.attempt_folder("1n8g-r50_b256_amp_2", 1)
    (folder / "r0.exit").unlink()
    (folder / "r0.go").write_text("1600266700.5\n")


@FORGERIES.found_in("attempts/1n8g-r50_b256_amp_2/a1/attempt.json")
def the_command_of_an_attempt(sweep: Sweep) -> None:
    path = sweep.attempt_folder("1n8g-r50_b256_amp_2", 1) / "attempt.json"
    edit(path, lambda it: it["tasks"][0]["argv"].append("--fast"))


@FORGERIES.found_in(RESULTS)
def the_rule_of_a_trial(sweep: Sweep) -> None:
    rule = {"rule": "rates"}
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 2)["trials"][1].update(rule))


@FORGERIES.found_in(RESULTS)
def who_wrote_the_reports(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.pop("written"))


@FORGERIES.found_in(RESULTS)
def a_median_by_another_version(sweep: Sweep) -> None:
    """Reports of other code are made again all the same."""
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 2).update(median=6254.66))
    edit(sweep.folder / RESULTS, lambda it: it["written"].update(code="0" * 64))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_record_is_found(pytorch: Sweep, name: str) -> None:
    """In the file that was forged, or that no longer fits it."""
    forge, file = FORGERIES[name]
    assert file in found(pytorch, forge)
