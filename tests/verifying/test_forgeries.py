"""Forged sweeps: edited with care, their checksums made anew, and found all the same."""

import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.report import Language
from orchestrator.state import contents
from orchestrator.state.store import Store, Sweep, dumps
from orchestrator.verifying.check import verified
from tests.verifying import sweeps

ONE, CUT = "1n8g/r50_b256_amp_2", "4n8g/r50_b256_amp_5"
RESULTS = "results.json"
Forgery = Callable[[Sweep], None]
FORGERIES: dict[str, tuple[Forgery, str]] = {}
"""By what was forged: how, and the file in which it is found."""


def forgery(file: str) -> Callable[[Forgery], Forgery]:
    """Register one."""

    def register(forge: Forgery) -> Forgery:
        FORGERIES[forge.__name__] = (forge, file)
        return forge

    return register


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Change a document and write it as our program does, sealed where it was."""
    document = json.loads(path.read_text())
    change(document)
    if "sha256" in document and path.name in ("sweep.json", "attempt.json"):
        rest = {key: value for key, value in document.items() if key != "sha256"}
        content = json.dumps(rest, sort_keys=True).encode()
        document["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(dumps(document))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reseal(sweep: Sweep, name: str, **fields: Any) -> None:
    """Change an outcome, and its event with it; hashes of its logs are made anew."""
    path = sweep.folder / f"logs/{name}.json"

    def change(outcome: dict[str, Any]) -> None:
        folder = sweep.attempt_folder(outcome["trial"], outcome["attempt"])
        outcome.update(fields, sha256=sha256(path.with_suffix(".log")))
        for end in outcome["tasks"]:
            raw = folder / f"r{end['node_rank']}.log"
            end.update(sha256=sha256(raw), size_bytes=raw.stat().st_size)
        for name in outcome["observed"]:
            outcome["observed"][name] = sha256(folder / name)

    edit(path, change)
    outcome = json.loads(path.read_text())
    events = sweep.folder / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    for event in lines:
        if event["event"] == "outcome" and event["trial"] == outcome["trial"]:
            problem = (outcome["problems"] or [{"code": "", "message": ""}])[0]
            event.update(problem, state=outcome["state"], sha256=outcome["sha256"])
            event["outcome"] = sha256(path)
    events.write_text("".join(f"{dumps(event, indent=None)}\n" for event in lines))


def both_logs(sweep: Sweep, name: str) -> tuple[Path, Path]:
    """The log that counts, and the raw log that it is a copy of."""
    place, _, stem = name.partition("/")
    return sweep.folder / f"logs/{name}.log", sweep.attempt_folder(f"{place}-{stem}", 1) / "r0.log"


def of_case(document: Any, number: int) -> Any:
    return document["cases"][number]


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, old
    path.write_text(text.replace(old, new))


@forgery(RESULTS)
def a_median(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 2).update(median=6254.66))


@forgery(RESULTS)
def a_number_everywhere(sweep: Sweep) -> None:
    """The median of a case in results.json, results.csv, report.md and _result.json alike."""
    case = of_case(json.loads((sweep.folder / RESULTS).read_text()), 2)
    old, new = case["median"], case["median"] + 30
    for path in (sweep.folder / name for name in (RESULTS, "results.csv")):
        replaced(path, repr(old), repr(new))
    for path in (sweep.folder / name for name in ("report.md", "_result.json")):
        replaced(path, f"{old:.2f}", f"{new:.2f}")


@forgery("logs/1n8g/r50_b256_amp_2.log")
def swapped_logs(sweep: Sweep) -> None:
    one, other = (both_logs(sweep, name)[0] for name in (ONE, "1n8g/r50_b256_amp_3"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


@forgery("logs/1n8g/r50_b256_amp_2.json")
def swapped_logs_with_their_hashes(sweep: Sweep) -> None:
    """Raw logs too: now the recorded throughput is another log's."""
    names = (ONE, "1n8g/r50_b256_amp_3")
    texts = [both_logs(sweep, name)[0].read_bytes() for name in names]
    for name, content in zip(names, reversed(texts), strict=True):
        for path in both_logs(sweep, name):
            path.write_bytes(content)
        reseal(sweep, name)


@forgery(f"logs/{CUT}.json")
def a_cut_log_that_counts(sweep: Sweep) -> None:
    reseal(sweep, CUT, state="valid", problems=[], throughput=22053.98, lines=[50, 150])


@forgery(f"logs/{ONE}.json")
def a_good_log_that_does_not_count(sweep: Sweep) -> None:
    problem = {"code": "TRUNCATED", "message": "have 120 of 150 steps"}
    reseal(sweep, ONE, state="invalid", problems=[problem])


@forgery(f"logs/{ONE}.json")
def a_throughput_of_an_outcome(sweep: Sweep) -> None:
    reseal(sweep, ONE, throughput=6500.0)


@forgery(f"logs/{ONE}.json")
def an_outcome_alone(sweep: Sweep) -> None:
    edit(sweep.folder / f"logs/{ONE}.json", lambda it: it.update(throughput=6500.0))


@forgery("logs/4n8g/r50_b256_amp_1.json")
def lines_of_an_outcome(sweep: Sweep) -> None:
    reseal(sweep, "4n8g/r50_b256_amp_1", lines=[51, 151])


@forgery(f"logs/{ONE}.log")
def a_log_but_not_its_raw_log(sweep: Sweep) -> None:
    log, _ = both_logs(sweep, ONE)
    replaced(log, "Iteration: 125 ", "Iteration: 126 ")
    reseal(sweep, ONE)


@forgery(f"logs/{ONE}.json")
def a_clock_in_both_logs(sweep: Sweep) -> None:
    """The step that ends the window comes half a second earlier."""
    for path in both_logs(sweep, ONE):
        text = path.read_text()
        (line,) = re.findall(r"DLL \S+ (\S+) - Epoch: 0 Iteration: 125 ", text)
        path.write_text(
            text.replace(line, f"{line[:-9]}{(int(line[-9:-7]) + 58) % 60:02}{line[-7:]}")
        )
    reseal(sweep, ONE)


@forgery(RESULTS)
def a_trial_left_out(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 2)["trials"].pop(1))


@forgery(RESULTS)
def a_state_in_results(sweep: Sweep) -> None:
    last = {"state": "valid", "problems": [], "throughput": 22053.98}
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 4)["trials"][4].update(last))


@forgery(RESULTS)
def a_speedup(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 4).update(speedup=31.9))


@forgery(RESULTS)
def an_interval(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 1)["interval"].update(low=3130.0))


@forgery(RESULTS)
def a_transport(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 3).update(transport="RoCE mlx5_0"))


@forgery(RESULTS)
def nodes_of_a_trial(sweep: Sweep) -> None:
    nodes = {"nodes": ["vs3", "vs4"]}
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 3)["trials"][0].update(nodes))


@forgery(RESULTS)
def a_window(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(window=[20, 120]))


@forgery(RESULTS)
def a_digest_of_the_image(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(image_digest=f"sha256:{'1' * 64}"))


@forgery("results.csv")
def a_cell_of_the_csv(sweep: Sweep) -> None:
    replaced(sweep.folder / "results.csv", ",6154.66", ",6254.66")


@forgery("report.md")
def a_median_in_the_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "| 8 | 256 | 6154.66 |", "| 8 | 256 | 6164.66 |")


@forgery("report.md")
def a_transport_in_the_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", r"(93.75%) | IB mlx5\_0 |", "(93.75%) | RoCE mlx5\\_0 |")


@forgery("report.md")
def a_state_in_the_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "| 5 | invalid |", "| 5 | valid |")


@forgery("report.md")
def a_row_of_the_report(sweep: Sweep) -> None:
    path = sweep.folder / "report.md"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if r"logs/1n8g/r50\_b256\_amp\_2" not in line))


@forgery("_result.json")
def a_result_file_of_dlperf(sweep: Sweep) -> None:
    def change(document: Any) -> None:
        (group,) = document.values()
        group["1n8g"]["median_speed"] += 1

    edit(sweep.folder / "_result.json", change)


@forgery("logs/2n8g/r50_b256_amp_1.json")
def nodes_of_an_attempt(sweep: Sweep) -> None:
    path = sweep.attempt_folder("2n8g-r50_b256_amp_1", 1) / "attempt.json"
    edit(path, lambda it: it["tasks"][1].update(node="vs4"))


@forgery("logs/2n8g/r50_b256_amp_1.json")
def a_log_without_proof_of_infiniband(sweep: Sweep) -> None:
    """What NCCL says on the second node, taken out of its log, all hashes made anew."""
    path = sweep.attempt_folder("2n8g-r50_b256_amp_1", 1) / "r1.log"
    path.write_text("nothing\n")
    reseal(sweep, "2n8g/r50_b256_amp_1")


@forgery(RESULTS)
def one_log_as_two_trials(sweep: Sweep) -> None:
    content = both_logs(sweep, ONE)[0].read_bytes()
    given = json.loads((sweep.folder / f"logs/{ONE}.json").read_text())
    for path in both_logs(sweep, "1n8g/r50_b256_amp_4"):
        path.write_bytes(content)
    fields = {key: given[key] for key in ("throughput", "lines")}
    reseal(sweep, "1n8g/r50_b256_amp_4", **fields)


@forgery(f"logs/{ONE}.json")
def the_window_of_the_plan(sweep: Sweep) -> None:
    window = {"window": [30, 130]}
    edit(sweep.folder / "sweep.json", lambda it: it["plan"]["method"].update(window))


@forgery(f"logs/{ONE}.json")
def an_event_that_is_gone(sweep: Sweep) -> None:
    path = sweep.folder / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    trial = '"1n8g-r50_b256_amp_2", "attempt": 1, "state"'
    path.write_text("".join(line for line in lines if trial not in line))


@forgery("report.html")
def a_median_on_the_page(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.html", ">6154.66</a>", ">6164.66</a>")


@forgery("report.html")
def a_line_of_a_log_on_the_page(sweep: Sweep) -> None:
    """The step with which the window ends comes a minute earlier, in the page alone."""
    path = sweep.folder / "report.html"
    (line,) = re.findall(r"139: DLL 2020-09-16 22:31:45\.309859", path.read_text())
    replaced(path, line, line.replace(":45.", ":25."))


@forgery("report.html")
def a_rate_in_the_data_of_a_figure(sweep: Sweep) -> None:
    path = sweep.folder / "report.html"
    row = re.search(r">1x8</th><td[^>]*>73-74</td><td[^>]*>([\d.]+)<", path.read_text())
    assert row is not None
    replaced(path, row[0], row[0].replace(row[1], str(float(row[1]) + 20)))


@forgery("figures/trials.svg")
def a_point_of_a_figure(sweep: Sweep) -> None:
    path = sweep.folder / "figures/trials.svg"
    replaced(path, "1n8g-r50_b256_amp_2: 6130.69", "1n8g-r50_b256_amp_2: 6150.69")


@forgery("report.md")
def the_verdict_of_a_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "INCOMPLETE: 24 of 25", "INCOMPLETE: 25 of 25")


@forgery(RESULTS)
def the_verdict(sweep: Sweep) -> None:
    verdict = {"level": "complete", "trials_valid": 25, "known": []}
    edit(sweep.folder / RESULTS, lambda it: it["verdict"].update(verdict))


@forgery("report.md")
def why_a_trial_does_not_count(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "have 69 of 150 steps", "have 149 of 150 steps")


@forgery("results.csv")
def a_difference_from_what_was_published(sweep: Sweep) -> None:
    path = sweep.folder / "results.csv"
    (last,) = re.findall(r"README.md,(0\.009\d+),", path.read_text())
    replaced(path, last, last.replace("0.009", "0.019"))


@forgery("attempts/1n8g-r50_b256_amp_2/a1/attempt.json")
def gpus_of_a_task(sweep: Sweep) -> None:
    path = sweep.attempt_folder("1n8g-r50_b256_amp_2", 1) / "attempt.json"
    edit(path, lambda it: it["tasks"][0].update(gpus=[0, 1, 2, 3]))


@forgery("events.jsonl")
def a_port(sweep: Sweep) -> None:
    path = sweep.attempt_folder("1n8g-r50_b256_amp_2", 1) / "attempt.json"
    edit(path, lambda it: it.update(port=22334))
    reseal(sweep, ONE, port=22334)


@forgery(RESULTS)
def models_of_gpus(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(gpus=["NVIDIA H200"]))


@forgery(RESULTS)
def nodes_that_are_one_machine(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(shared_machine=True))


@forgery(RESULTS)
def a_log_that_belongs_to_no_case(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it["logs"].append({"log": "logs/new.log"}))


@forgery("report.md")
def the_number_of_a_trial(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "| 6130.69 | 2 |", "| 6130.69 | 7 |")


@forgery("report.html")
def when_it_was_measured(sweep: Sweep) -> None:
    created = json.loads((sweep.folder / "sweep.json").read_text())["created"]
    replaced(sweep.folder / "report.html", f"<dd>{created}", f"<dd>1{created[1:]}")


@forgery("report.md")
def the_image_in_the_method(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", f"sha256:{'0' * 64};", f"sha256:{'1' * 64};")


@forgery("report.html")
def numbers_of_lines_on_the_page(sweep: Sweep) -> None:
    replaced(
        sweep.folder / "report.html", "lines in the log: 39, 139<", "lines in the log: 40, 140<"
    )


@forgery("logs/2n8g/r50_b256_amp_1.json")
def when_a_gate_opened(sweep: Sweep) -> None:
    path = sweep.folder / "logs/2n8g/r50_b256_amp_1.json"
    edit(path, lambda it: it["tasks"][1].update(went_at=9.0))
    reseal(sweep, "2n8g/r50_b256_amp_1")


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found(pytorch: Sweep, name: str) -> None:
    """In the file that was forged, or that no longer fits it."""
    forge, file = FORGERIES[name]
    forge(pytorch)
    contents.keep_sums(pytorch)
    found = verified(pytorch.folder).differences
    assert file in {difference.file for difference in found}, found


MARKED = "1n1g/r50_b256_amp_"


def observed(sweep: Sweep, repeat: int, name: str, old: str, new: str) -> None:
    """Change what an observer wrote, and every hash of it."""
    path = sweep.attempt_folder(f"1n1g-r50_b256_amp_{repeat}", 1) / name
    replaced(path, old, new)
    reseal(sweep, f"{MARKED}{repeat}")


def no_more(sweep: Sweep, code: str) -> None:
    """Take a mark out of results.json, wherever it stands."""

    def change(document: Any) -> None:
        for holder in (document, document["canary"], *document["cases"]):
            holder["marks"] = [it for it in holder["marks"] if it["code"] != code]

    edit(sweep.folder / RESULTS, change)


OF_MACHINES: dict[str, tuple[Forgery, str]] = {
    "no more heat": (
        lambda it: observed(it, 2, "r0.gpus", "0x0000000000000020", "0x0000000000000004"),
        f"logs/{MARKED}2.json",
    ),
    "no more alien": (
        lambda it: observed(it, 4, "r0.state", ",cpu,4711,1.25", ",cpu,4711,0.25"),
        f"logs/{MARKED}4.json",
    ),
    "less power": (lambda it: observed(it, 1, "r0.gpus", ", 65", ", 45"), RESULTS),
    "a busier node": (lambda it: observed(it, 3, "r0.state", ",6.3", ",7.3"), RESULTS),
    "joules": (
        lambda it: edit(
            it.folder / RESULTS, lambda doc: of_case(doc, 0).update(energy_per_sample_j=1.5)
        ),
        RESULTS,
    ),
    "a state in results": (
        lambda it: edit(
            it.folder / RESULTS,
            lambda doc: of_case(doc, 0)["trials"][1]["machines"][0].update(sm_mhz=1980.0),
        ),
        RESULTS,
    ),
    "a row of machines": (
        lambda it: replaced(it.folder / "report.md", "| 1979 | 2619 |", "| 1980 | 2619 |"),
        "report.md",
    ),
    "a drift": (
        lambda it: edit(it.folder / RESULTS, lambda doc: doc["canary"].update(drift=0.01)),
        RESULTS,
    ),
    "a row of the canary": (
        lambda it: replaced(it.folder / "report.md", "| 710.00 | -7.8% |", "| 769.00 | -0.1% |"),
        "report.md",
    ),
    "a slow node": (
        lambda it: replaced(it.folder / "report.md", "vs3 is 6.0% slower", "vs4 is 6.0% slower"),
        "report.md",
    ),
    "the speed of a node": (
        lambda it: edit(it.folder / RESULTS, lambda doc: doc["node_speeds"][2].update(speed=1.0)),
        RESULTS,
    ),
    "how far an outlier is": (
        lambda it: replaced(it.folder / RESULTS, "6.0% below the median", "4.0% below the median"),
        RESULTS,
    ),
    "how sure a trend is": (
        lambda it: replaced(it.folder / RESULTS, "p = 0.0", "p = 0.1"),
        RESULTS,
    ),
    **{
        f"no more {code}": (partial(no_more, code=code), RESULTS)
        for code in (
            *("SLOW-NODE", "DRIFT", "TREND", "BESIDE", "NODE-SETS", "OUTLIER"),
            *("WIDE-SPREAD", "THROTTLED", "CPU-LOADED"),
        )
    },
}
"""As FORGERIES, in a sweep in which everything was marked."""


@pytest.mark.parametrize("name", OF_MACHINES)
def test_a_forged_mark_or_state_is_found(
    untouched: dict[str, Sweep], tmp_path: Path, name: str
) -> None:
    """Marks, states of machines, joules, canaries, and speeds of nodes."""
    sweep = sweeps.copied(untouched["marked"], tmp_path)
    forge, file = OF_MACHINES[name]
    forge(sweep)
    contents.keep_sums(sweep)
    found = verified(sweep.folder).differences
    assert file in {difference.file for difference in found}, found


def a_clock_drawn(content: str) -> str:
    """The mean clock of one node's GPUs in the first piece of a figure."""
    return re.sub(r"(>0-4</td><td[^>]*>)1979<", r"\g<1>1981<", content, count=1)


def a_piece_left_out(content: str) -> str:
    """The first one of a figure's first node."""
    return re.sub(
        r"<tr><th[^>]*>[^<]*</th><td[^>]*>vs1</td><td[^>]*>0-4</td>.*?</tr>", "", content, count=1
    )


def no_more_heat_drawn(content: str) -> str:
    """What held a clock down, in every piece of a figure."""
    return re.sub(r"(<td[^>]*>)sw_thermal_slowdown(</td>)", r"\1\2", content)


def another_trial_drawn(content: str) -> str:
    """One of which a figure would say the same, but for its number."""
    return re.sub(r"(?:trial|试验) 2(?=</th><td[^>]*>vs2</td>)", "trial 99", content)


@pytest.mark.parametrize(
    "change", [a_clock_drawn, a_piece_left_out, no_more_heat_drawn, another_trial_drawn]
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_forged_figure_of_machines_is_found(
    tmp_path: Path, language: Language, change: Callable[[str], str]
) -> None:
    """In the table of its data, in both languages; all sums are made anew."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.marked(), language)
    path = sweep.folder / "report.html"
    content = path.read_text()
    path.write_text(change(content))
    assert path.read_text() != content
    contents.keep_sums(sweep)
    found = verified(sweep.folder).differences
    assert {difference.file for difference in found} == {"report.html"}, found


def test_a_file_that_came_or_went_is_found(pytorch: Sweep) -> None:
    """A log more or less than there were when the reports were written."""
    (pytorch.folder / "logs/1n8g/r50_b256_amp_9.log").write_text("new\n")
    (pytorch.attempt_folder("1n8g-r50_b256_amp_2", 1) / "r0.log").unlink()
    found = {difference.file: difference for difference in verified(pytorch.folder).differences}
    assert found["logs/1n8g/r50_b256_amp_9.log"].written == "a file"
    assert "attempts/1n8g-r50_b256_amp_2/a1/r0.log" in found


def test_a_folder_forged_throughout_agrees_with_itself(pytorch: Sweep) -> None:
    """Who writes logs, records and reports anew is found by nobody who has nothing else."""
    for path in both_logs(pytorch, ONE):
        text = path.read_text()
        path.write_text(text.replace("train.loss : 6.9", "train.loss : 5.9"))
    reseal(pytorch, ONE)
    report_files.reports(pytorch.folder, measured(pytorch), "en")
    contents.keep_sums(pytorch)
    assert verified(pytorch.folder).differences == []
