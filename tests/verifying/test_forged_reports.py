"""Numbers and words in reports, edited alone, are found."""

import json
import re
from typing import Any

import pytest

from orchestrator.state.sweep import Sweep
from tests.verifying.forging import RESULTS, Forgeries, edit, found, of_case, replaced

FORGERIES = Forgeries()


@FORGERIES.found_in(RESULTS)
def a_median(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 2).update(median=6254.66))


@FORGERIES.found_in(RESULTS)
def a_number_everywhere(sweep: Sweep) -> None:
    """The median of a case in results.json, results.csv, report.md and _result.json alike."""
    case = of_case(json.loads((sweep.folder / RESULTS).read_text()), 2)
    old, new = case["median"], case["median"] + 30
    for path in (sweep.folder / name for name in (RESULTS, "results.csv")):
        replaced(path, repr(old), repr(new))
    for path in (sweep.folder / name for name in ("report.md", "_result.json")):
        replaced(path, f"{old:.2f}", f"{new:.2f}")


@FORGERIES.found_in(RESULTS)
def a_trial_left_out(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 2)["trials"].pop(1))


@FORGERIES.found_in(RESULTS)
def a_state_in_results(sweep: Sweep) -> None:
    last = {"state": "valid", "problems": [], "throughput": 22053.98}
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 4)["trials"][4].update(last))


@FORGERIES.found_in(RESULTS)
def a_speedup(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 4).update(speedup=31.9))


@FORGERIES.found_in(RESULTS)
def an_interval(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 1)["interval"].update(low=3130.0))


@FORGERIES.found_in(RESULTS)
def a_transport(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 3).update(transport="RoCE mlx5_0"))


@FORGERIES.found_in(RESULTS)
def nodes_of_a_trial(sweep: Sweep) -> None:
    nodes = {"nodes": ["vs3", "vs4"]}
    edit(sweep.folder / RESULTS, lambda it: of_case(it, 3)["trials"][0].update(nodes))


@FORGERIES.found_in(RESULTS)
def a_window(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(window=[20, 120]))


@FORGERIES.found_in(RESULTS)
def a_digest_of_the_image(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(image_digest=f"sha256:{'1' * 64}"))


@FORGERIES.found_in("results.csv")
def a_cell_of_the_csv(sweep: Sweep) -> None:
    replaced(sweep.folder / "results.csv", ",6154.66", ",6254.66")


@FORGERIES.found_in("report.md")
def a_median_in_the_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "| 1x8 | 6154.66 |", "| 1x8 | 6164.66 |")


@FORGERIES.found_in("report.md")
def a_transport_in_the_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", r"/5 | IB mlx5\_0 |", "/5 | RoCE mlx5\\_0 |")


@FORGERIES.found_in("report.md")
def a_state_in_the_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "| invalid |", "| valid |")


@FORGERIES.found_in("report.md")
def a_row_of_the_report(sweep: Sweep) -> None:
    path = sweep.folder / "report.md"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if r"logs/1n8g/r50\_b256\_amp\_2" not in line))


@FORGERIES.found_in("_result.json")
def a_result_file_of_dlperf(sweep: Sweep) -> None:
    def change(document: Any) -> None:
        (group,) = document.values()
        group["1n8g"]["median_speed"] += 1

    edit(sweep.folder / "_result.json", change)


@FORGERIES.found_in("report.html")
def a_median_on_the_page(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.html", ">6154.66</a>", ">6164.66</a>")


@FORGERIES.found_in("report.html")
def a_line_of_a_log_on_the_page(sweep: Sweep) -> None:
    """The step with which the window ends comes a minute earlier, in the page alone."""
    path = sweep.folder / "report.html"
    (line,) = re.findall(r"139: DLL 2020-09-16 22:31:45\.309859", path.read_text())
    replaced(path, line, line.replace(":45.", ":25."))


@FORGERIES.found_in("report.html")
def a_rate_in_the_words_of_a_figure(sweep: Sweep) -> None:
    path = sweep.folder / "report.html"
    words = re.search(r"in which rates lie between ([\d.]+)%", path.read_text())
    assert words is not None
    replaced(path, words[0], words[0].replace(words[1], "99.9"))


@FORGERIES.found_in("figures/trials.svg")
def a_point_of_a_figure(sweep: Sweep) -> None:
    path = sweep.folder / "figures/trials.svg"
    replaced(path, "1n8g-r50_b256_amp_2: 6130.69", "1n8g-r50_b256_amp_2: 6150.69")


@FORGERIES.found_in("report.md")
def the_verdict_of_a_report(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "INCOMPLETE: 24 of 25", "INCOMPLETE: 25 of 25")


@FORGERIES.found_in(RESULTS)
def the_verdict(sweep: Sweep) -> None:
    verdict = {"level": "complete", "trials_valid": 25, "known": []}
    edit(sweep.folder / RESULTS, lambda it: it["verdict"].update(verdict))


@FORGERIES.found_in("report.md")
def why_a_trial_does_not_count(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "have 69 of 150 steps", "have 149 of 150 steps")


@FORGERIES.found_in("results.csv")
def a_difference_from_what_was_published(sweep: Sweep) -> None:
    path = sweep.folder / "results.csv"
    (last,) = re.findall(r"README.md,(0\.009\d+),", path.read_text())
    replaced(path, last, last.replace("0.009", "0.019"))


@FORGERIES.found_in(RESULTS)
def models_of_gpus(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(gpus=["NVIDIA H200"]))


@FORGERIES.found_in(RESULTS)
def nodes_that_are_one_machine(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.update(shared_machine=True))


@FORGERIES.found_in(RESULTS)
def a_log_that_belongs_to_no_case(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it["logs"].append({"log": "logs/new.log"}))


@FORGERIES.found_in("report.md")
def the_number_of_a_trial(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", "| 2 | 6130.69 |", "| 7 | 6130.69 |")


@FORGERIES.found_in("report.html")
def when_it_was_measured(sweep: Sweep) -> None:
    created = json.loads((sweep.folder / "sweep.json").read_text())["created"]
    day = created[:10]
    replaced(sweep.folder / "report.html", f"<dd>{day}", f"<dd>1{day[1:]}")


@FORGERIES.found_in("report.md")
def the_digest_of_the_image(sweep: Sweep) -> None:
    replaced(sweep.folder / "report.md", f"sha256:{'0' * 64}\n", f"sha256:{'1' * 64}\n")


@FORGERIES.found_in("report.html")
def numbers_of_lines_on_the_page(sweep: Sweep) -> None:
    replaced(
        sweep.folder / "report.html", "lines in the log: 39, 139,", "lines in the log: 40, 140,"
    )


@FORGERIES.found_in("report.html")
def a_banner_of_the_page(sweep: Sweep) -> None:
    """The sentence that a trial is missing, taken out."""
    path = sweep.folder / "report.html"
    found = re.search(r"<[^<>]+>[^<>]*INCOMPLETE[^<>]*<", path.read_text())
    assert found is not None
    replaced(path, found[0], "<p><")


@FORGERIES.found_in("report.md")
def a_sentence_that_was_added(sweep: Sweep) -> None:
    path = sweep.folder / "report.md"
    path.write_text(path.read_text() + "\nAll trials count.\n")


@FORGERIES.found_in("figures/fast.svg")
def a_figure_that_was_added(sweep: Sweep) -> None:
    (sweep.folder / "figures/fast.svg").write_text("<svg/>")


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_report_is_found(pytorch: Sweep, name: str) -> None:
    """In the file that was forged, or that no longer fits it."""
    forge, file = FORGERIES[name]
    assert file in found(pytorch, forge)
