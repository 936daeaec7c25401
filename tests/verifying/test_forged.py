"""Whatever is changed in a sweep, `verify` names the file, however carefully it was changed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orchestrator.collecting import report_files
from orchestrator.collecting.sweep import measured
from orchestrator.errors import DlperfError
from orchestrator.report import Language
from orchestrator.state import contents
from orchestrator.state.files import dumps
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from orchestrator.verbs.verify import check_sweep
from orchestrator.verifying import formulas
from orchestrator.verifying.findings import Findings
from orchestrator.verifying.folder import Folder
from tests.verifying import sweeps
from tests.verifying.forging import (
    RESULTS,
    both_logs,
    change_leaf,
    edit,
    found,
    leaves,
    replace_in,
    reseal,
    reseal_event,
    sha256,
)

ONE, THREE = "1n8g/r50_b256_amp_2", "1n8g/r50_b256_amp_3"
GANG, CUT = "2n8g/r50_b256_amp_1", "4n8g/r50_b256_amp_5"
ATTEMPT = "attempts/1n8g-r50_b256_amp_2/a1"


@pytest.fixture
def marked(untouched: dict[str, Sweep], tmp_path: Path) -> Sweep:
    """A copy of the sweep in which everything happened that marks a trial."""
    return sweeps.copied(untouched["marked"], tmp_path)


def test_each_changed_value_of_results_json_is_named(marked: Sweep) -> None:
    path, changed = marked.folder / RESULTS, set()
    document = json.loads(path.read_text())
    for place, holder, key in leaves(document):
        if not place.startswith("written"):  # who wrote it decides how reports are made again
            change_leaf(holder, key)
            changed.add(place)
    path.write_text(dumps(document))
    contents.keep_sums(marked)
    named = {it.place for it in check_sweep(marked).differences if it.file == RESULTS}
    assert len(changed) > 1000
    assert changed - named == set()


DERIVED = (
    *("trials_valid", "median", "mean", "min", "max", "spread", "speedup", "efficiency"),
    *("interval.low", "interval.high", "interval.coverage", "published[0].difference"),
    *("speedup_interval.low", "speedup_interval.high", "trials[1].throughput", "trials[1].log"),
)


@pytest.mark.parametrize("place", DERIVED)
def test_formulas_that_share_no_code_with_the_engine_name_a_changed_number(
    pytorch: Sweep, place: str
) -> None:
    path = pytorch.folder / RESULTS
    document = json.loads(path.read_text())
    (leaf,) = (leaf for leaf in leaves(document["cases"][2]) if leaf[0] == place)
    change_leaf(*leaf[1:])
    path.write_text(dumps(document))
    findings = Findings()
    formulas.check(
        Folder(pytorch.folder, findings), json.loads((pytorch.folder / "sweep.json").read_text())
    )
    assert f"cases[2].{place}" in {it.place for it in findings.differences}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_changed_number_or_word_of_each_page_is_named(tmp_path: Path, language: Language) -> None:
    """Change one drawn number, or one word, in every page, figure and table at once."""
    sweep = sweeps.collected(Store(tmp_path), sweeps.marked(), language)
    again = report_files.contents(sweep.folder, measured(sweep), language, sweep.folder)
    pages = {name: content.decode() for name, content in again.items() if name != RESULTS}
    assert len(pages) > 6
    chance = Random("pages")
    for pattern in (r"\d+", r"\d+", r"[A-Za-z]{4,}"):
        for name, text in pages.items():
            it = chance.choice([*re.finditer(pattern, text)])
            other = str(int(it[0]) + 1) if it[0].isdecimal() else it[0].swapcase()
            (sweep.folder / name).write_text(text[: it.start()] + other + text[it.end() :])
        assert found(sweep) == {*pages}


def change_leaf_at(path: Path, place: str) -> None:
    def change(document: Any) -> None:
        ((holder, key),) = [leaf for at, *leaf in leaves(document) if at == place]
        change_leaf(holder, key)

    edit(path, change)


def places(path: Path) -> list[str]:
    return [place for place, *_ in leaves(json.loads(path.read_text()))]


def test_each_changed_value_of_an_outcome_is_found_though_its_event_agrees(
    untouched: dict[str, Sweep], tmp_path: Path
) -> None:
    """But for the words on how a task ended, and for the code that judged it."""
    sweep = sweeps.copied(untouched["gang"], tmp_path)
    outcome, events = sweep.folder / "logs/2n8g/r50_b256_amp_2.json", sweep.folder / "events.jsonl"
    before, unproven = (outcome.read_bytes(), events.read_bytes()), set()
    for place in places(outcome):
        change_leaf_at(outcome, place)
        reseal_event(sweep, outcome, "2n8g-r50_b256_amp_2")
        if not found(sweep):
            unproven.add(place)
        outcome.write_bytes(before[0])
        events.write_bytes(before[1])
    assert unproven == {"tasks[0].why", "tasks[1].why", "code"}
    for place in unproven:  # by the hash in its event all the same
        change_leaf_at(outcome, place)
        assert "logs/2n8g/r50_b256_amp_2.json" in found(sweep)
        outcome.write_bytes(before[0])


def test_each_changed_value_of_an_attempt_is_found_though_it_is_sealed(marked: Sweep) -> None:
    """In another trial each."""
    attempts = sorted(marked.folder.glob("attempts/*/a1/attempt.json"))
    kinds = [place for place in places(attempts[0]) if place != "sha256"]
    assert 15 < len(kinds) < len(attempts)
    for path, place in zip(attempts, kinds, strict=False):
        change_leaf_at(path, place)
    changed = {path.relative_to(marked.folder).as_posix() for path in attempts[: len(kinds)]}
    assert changed - found(marked) == set()


@pytest.mark.parametrize("key", ["event", "trial", "attempt", "port", "log"])
def test_a_changed_value_of_an_intent_is_found(pytorch: Sweep, key: str) -> None:
    first, *others = (pytorch.folder / "events.jsonl").read_text().splitlines(keepends=True)
    event = json.loads(first)
    change_leaf(event, key)
    (pytorch.folder / "events.jsonl").write_text(
        "".join([f"{dumps(event, indent=None)}\n", *others])
    )
    assert "events.jsonl" in found(pytorch)


Forgery = Callable[[Sweep], object]
FORGERIES: dict[str, tuple[Forgery, str]] = {}


def found_in(file: str) -> Callable[[Forgery], Forgery]:
    """Register a forgery, and the file in which it is found."""

    def register(forge: Forgery) -> Forgery:
        FORGERIES[forge.__name__] = (forge, file)
        return forge

    return register


def attempt(sweep: Sweep, file: str = "attempt.json") -> Path:
    return sweep.folder / ATTEMPT / file


def outcome(sweep: Sweep, name: str = ONE) -> Path:
    return sweep.folder / f"logs/{name}.json"


@found_in(f"logs/{ONE}.json")
def swapped_logs_with_raw_logs_and_hashes(sweep: Sweep) -> None:
    texts = [both_logs(sweep, name)[0].read_bytes() for name in (ONE, THREE)]
    for name, content in zip((ONE, THREE), reversed(texts), strict=True):
        for path in both_logs(sweep, name):
            path.write_bytes(content)
        reseal(sweep, name)


@found_in(f"logs/{CUT}.json")
def a_cut_log_that_counts(sweep: Sweep) -> None:
    reseal(sweep, CUT, state="valid", problems=[], throughput=22053.98, lines=[50, 150])


@found_in(f"logs/{ONE}.json")
def a_good_log_that_does_not_count(sweep: Sweep) -> None:
    problem = {"code": "TRUNCATED", "message": "have 120 of 150 steps"}
    reseal(sweep, ONE, state="invalid", problems=[problem])


@found_in(f"{ATTEMPT}/attempt.json")
def an_outcome_that_seals_no_attempt(sweep: Sweep) -> None:
    before = sha256(outcome(sweep))
    edit(outcome(sweep), lambda it: it.update(attempt_sha256=""))
    replace_in(sweep.folder / "events.jsonl", before, sha256(outcome(sweep)))


@found_in(f"logs/{ONE}.log")
def a_log_but_not_its_raw_log(sweep: Sweep) -> None:
    replace_in(both_logs(sweep, ONE)[0], "Iteration: 125 ", "Iteration: 126 ")
    reseal(sweep, ONE)


@found_in(f"logs/{ONE}.json")
def a_clock_in_both_logs(sweep: Sweep) -> None:
    """The step that ends the window comes two seconds earlier."""
    for path in both_logs(sweep, ONE):
        (clock,) = re.findall(r"DLL \S+ (\S+) - Epoch: 0 Iteration: 125 ", path.read_text())
        second = (int(clock[-9:-7]) + 58) % 60
        replace_in(path, clock, f"{clock[:-9]}{second:02}{clock[-7:]}")
    reseal(sweep, ONE)


@found_in(f"logs/{GANG}.json")
def a_log_without_proof_of_infiniband(sweep: Sweep) -> None:
    (sweep.attempt_folder("2n8g-r50_b256_amp_1", 1) / "r1.log").write_text("nothing\n")
    reseal(sweep, GANG)


@found_in(RESULTS)
def one_log_as_two_trials(sweep: Sweep) -> None:
    content, other = both_logs(sweep, ONE)[0].read_bytes(), "1n8g/r50_b256_amp_4"
    given = json.loads(outcome(sweep).read_text())
    for path in both_logs(sweep, other):
        path.write_bytes(content)
    reseal(sweep, other, throughput=given["throughput"], lines=given["lines"])


@found_in(f"logs/{ONE}.json")
def the_window_of_the_plan(sweep: Sweep) -> None:
    window = {"window": [30, 130]}
    edit(sweep.folder / "sweep.json", lambda it: it["plan"]["method"].update(window))


@found_in(f"logs/{ONE}.json")
def an_event_that_is_gone(sweep: Sweep) -> None:
    path, trial = sweep.folder / "events.jsonl", '"1n8g-r50_b256_amp_2", "attempt": 1, "state"'
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if trial not in line))


@found_in(f"{ATTEMPT}/attempt.json")
def half_the_gpus_of_a_task(sweep: Sweep) -> None:
    edit(attempt(sweep), lambda it: it["tasks"][0].update(gpus=[0, 1, 2, 3]))
    reseal(sweep, ONE)


@found_in("events.jsonl")
def a_port(sweep: Sweep) -> None:
    edit(attempt(sweep), lambda it: it.update(port=22334))
    reseal(sweep, ONE, port=22334)


@found_in(f"{ATTEMPT}/r0.exit")
def a_failed_trial_with_the_log_of_another(sweep: Sweep) -> None:
    """A good log, an hour later, in place of a failed one."""
    text = both_logs(sweep, THREE)[0].read_text()
    later = re.sub(r"(DLL \S+ )(\d\d)(:)", lambda it: f"{it[1]}{int(it[2]) + 1:02}{it[3]}", text)
    given = json.loads(outcome(sweep, THREE).read_text())
    for path in both_logs(sweep, ONE):
        path.write_text(later)
    attempt(sweep, "r0.exit").write_text("1 exited\n")
    reseal(sweep, ONE, throughput=given["throughput"], lines=given["lines"])
    report_files.reports(sweep.folder, measured(sweep), "en")


@found_in(f"{ATTEMPT}/r0.exit")
def an_exit_file_that_is_gone(sweep: Sweep) -> None:
    attempt(sweep, "r0.exit").unlink()
    attempt(sweep, "r0.go").write_text("1600266700.5\n")


@found_in("events.jsonl")
def an_event_before_the_end_that_was_noted(sweep: Sweep) -> None:
    ended = {"events.jsonl": sha256(sweep.folder / "events.jsonl")}
    (sweep.folder / "ended.json").write_text(dumps(ended))
    replace_in(sweep.folder / "events.jsonl", "09:00:00.000", "09:30:00.000")


@found_in(RESULTS)
def a_trial_left_out(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it["cases"][2]["trials"].pop(1))


@found_in(RESULTS)
def known_problems_left_out(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it["verdict"]["known"].clear())


@found_in(RESULTS)
def a_log_that_belongs_to_no_case(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it["logs"].append({"log": "logs/new.log"}))


@found_in(RESULTS)
def who_wrote_the_reports(sweep: Sweep) -> None:
    edit(sweep.folder / RESULTS, lambda it: it.pop("written"))


@found_in(RESULTS)
def a_median_by_another_version(sweep: Sweep) -> None:
    """Reports of other code are made again all the same."""
    edit(sweep.folder / RESULTS, lambda it: it["written"].update(code="0" * 64))
    edit(sweep.folder / RESULTS, lambda it: it["cases"][2].update(median=6254.66))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_careful_forgery_is_found(pytorch: Sweep, name: str) -> None:
    """In the file that was forged, or that no longer fits it."""
    forge, file = FORGERIES[name]
    forge(pytorch)
    assert file in found(pytorch)


@pytest.mark.parametrize(
    ("repeat", "name", "old", "new", "file"),
    [
        (2, "r0.gpus", "0x0000000000000020", "0x0000000000000004", "logs/1n1g/r50_b256_amp_2.json"),
        (4, "r0.state", ",cpu,4711,1.25", ",cpu,4711,0.25", "logs/1n1g/r50_b256_amp_4.json"),
        (1, "r0.gpus", ", 65", ", 45", RESULTS),
        (3, "r0.state", ",6.3", ",7.3", RESULTS),
    ],
    ids=["no heat", "no alien process", "less power", "a busier node"],
)
def test_a_forged_state_of_a_machine_is_found(
    marked: Sweep, repeat: int, name: str, old: str, new: str, file: str
) -> None:
    """Change what an observer wrote, and every hash of it."""
    replace_in(marked.attempt_folder(f"1n1g-r50_b256_amp_{repeat}", 1) / name, old, new)
    reseal(marked, f"1n1g/r50_b256_amp_{repeat}")
    assert file in found(marked)


def test_the_line_of_a_reported_number_is_derived(
    untouched: dict[str, Sweep], tmp_path: Path
) -> None:
    """TensorFlow's summary is line 335 of its log; without a clock there is no window."""
    name = "1n8g/r50_b256_amp_1"
    sweep = sweeps.copied(untouched["tensorflow"], tmp_path)
    assert json.loads(outcome(sweep, name).read_text())["lines"] == [335, 335]
    reseal(sweep, name, lines=[334, 335])
    assert found(sweep) == {f"logs/{name}.json"}


@pytest.mark.parametrize("name", ["bert", "tensorflow", "pytorch", "marked"])
def test_a_changed_byte_of_each_file_is_found(
    untouched: dict[str, Sweep], tmp_path: Path, name: str
) -> None:
    """In all files at once, but for the record, which says what a sweep is of."""
    sweep, chance = sweeps.copied(untouched[name], tmp_path), Random(name)
    changed = set()
    for path in sorted(sweep.folder.rglob("*")):
        own = path.relative_to(sweep.folder).as_posix()
        if path.is_file() and path.stat().st_size and own not in ("SHA256SUMS", "sweep.json"):
            change_byte(path, chance)
            changed.add(own)
    assert changed - {it.file for it in check_sweep(sweep).differences} == set()


def change_byte(path: Path, chance: Random) -> bytes:
    """Change one byte, and return the bytes as they were."""
    content = path.read_bytes()
    at = chance.randrange(len(content))
    path.write_bytes(
        content[:at] + bytes([content[at] ^ chance.randrange(1, 256)]) + content[at + 1 :]
    )
    return content


def test_a_single_changed_byte_is_found_and_breaks_nothing(
    untouched: dict[str, Sweep], tmp_path: Path
) -> None:
    """The file is named: also the list of checksums, and a record that cannot be read."""
    sweep, chance = sweeps.copied(untouched["gang"], tmp_path), Random(12)
    files = sorted(path for path in sweep.folder.rglob("*") if path.is_file())
    records = [path for path in files if path.name in ("SHA256SUMS", "sweep.json", RESULTS)]
    for path in [*records * 15, *chance.choices(files, k=60)]:
        if not path.stat().st_size:
            continue
        content = change_byte(path, chance)
        try:
            named = {it.file for it in check_sweep(sweep).differences}
        except DlperfError as error:
            named = {path.relative_to(sweep.folder).as_posix()} if path.name in str(error) else {""}
        own = path.relative_to(sweep.folder).as_posix()
        assert named if own == "SHA256SUMS" else own in named, path
        path.write_bytes(content)
    (sweep.folder / "SHA256SUMS").unlink()
    (difference,) = check_sweep(sweep).differences
    assert (difference.file, difference.written) == ("SHA256SUMS", "no such file")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"cases": 3}', b"[" * 9000, b"\xff"])
@pytest.mark.parametrize("name", [RESULTS, "sweep.json", "logs/1n1g/r50_b96_fp32_1.json"])
def test_a_document_of_any_form_is_a_difference(
    untouched: dict[str, Sweep], tmp_path: Path, name: str, content: bytes
) -> None:
    sweep = sweeps.copied(untouched["bert"], tmp_path)
    (sweep.folder / name).write_bytes(content)
    assert name in {difference.file for difference in check_sweep(sweep).differences}


def rename_key(old: str, new: str) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        mark = document["cases"][0]["marks"][0]
        mark[new] = mark.pop(old)

    return change


def throughputs_of(value: float) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        for trial in (trial for case in document["cases"] for trial in case["trials"]):
            trial["throughput"] = value

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (RESULTS, rename_key("message", "messagf")),
        (RESULTS, rename_key("code", "code ")),
        (RESULTS, lambda it: it["cases"][0]["trials"][0].update(rule="sum")),
        *((RESULTS, throughputs_of(it)) for it in (0, -1.0, 10**400, 1e308, 5e-324)),
        ("logs/1n1g/r50_b256_amp_1.json", lambda it: it["tasks"][0].update(node_rank=[0])),
    ],
)
def test_a_value_of_any_kind_is_a_difference(
    marked: Sweep, name: str, change: Callable[[Any], object]
) -> None:
    edit(marked.folder / name, change)
    assert name in {difference.file for difference in check_sweep(marked).differences}


def test_a_file_that_came_or_went_is_found(pytorch: Sweep) -> None:
    (pytorch.folder / "logs/1n8g/r50_b256_amp_9.log").write_text("new\n")
    (pytorch.folder / "figures/scaling.fr.svg").write_text("<svg/>")
    attempt(pytorch, "r0.gpus").write_text("new\n")
    attempt(pytorch, "r0.log").unlink()
    named = {difference.file: difference for difference in check_sweep(pytorch).differences}
    assert named["logs/1n8g/r50_b256_amp_9.log"].written == "a file"
    assert named[f"{ATTEMPT}/r0.gpus"].written == "a file"
    assert {f"{ATTEMPT}/r0.log", "figures/scaling.fr.svg"} <= named.keys()
    assert "figures/scaling.fr.svg" in found(pytorch)  # though SHA256SUMS has it


@pytest.mark.parametrize("content", ['{"tasks": [{"files": ["key"]}]}', "{", "[]"])
def test_keys_that_a_task_was_given_are_in_no_list(pytorch: Sweep, content: str) -> None:
    attempt(pytorch, "key").write_text("secret\n")
    attempt(pytorch).write_text(content)
    named = {difference.file for difference in check_sweep(pytorch).differences}
    assert f"{ATTEMPT}/attempt.json" in named
    assert f"{ATTEMPT}/key" not in named


def test_reports_in_both_languages_are_checked(tmp_path: Path) -> None:
    sweep = sweeps.collected(Store(tmp_path), sweeps.gpt())
    sweep = sweeps.collected_again(sweep, "zh")
    assert check_sweep(sweep).differences == []
    names = {"report.md", "report.zh.md", "report.html", "report.zh.html"}
    for name in names:
        replace_in(sweep.folder / name, "39.03", "93.03")
    assert found(sweep) == names


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize("change", [cut, lengthen, Path.unlink])
@pytest.mark.parametrize(
    ("sweep", "name"),
    [
        ("pytorch", f"logs/{ONE}.log"),
        ("pytorch", f"logs/{ONE}.json"),
        ("pytorch", "attempts/2n8g-r50_b256_amp_1/a1/r0.log"),
        ("pytorch", "attempts/2n8g-r50_b256_amp_1/a1/r1.log"),
        ("pytorch", f"{ATTEMPT}/attempt.json"),
        ("marked", "attempts/1n1g-r50_b256_amp_2/a1/r0.state"),
        ("marked", "attempts/1n1g-r50_b256_amp_2/a1/r0.gpus"),
    ],
)
def test_reports_that_leave_changed_evidence_out_are_believed(
    untouched: dict[str, Sweep],
    tmp_path: Path,
    sweep: str,
    name: str,
    change: Callable[[Path], object],
) -> None:
    """The evidence is named; `collect` does not count it, and so no number differs."""
    copy = sweeps.copied(untouched[sweep], tmp_path)
    change(copy.folder / name)
    report_files.reports(copy.folder, measured(copy), "en")
    named = found(copy)
    assert name in named
    assert all(file.startswith(("logs/", "attempts/")) for file in named), named


def test_a_folder_that_is_forged_throughout_agrees_with_itself(pytorch: Sweep) -> None:
    """As docs/verify.md says: nobody finds that who has nothing else."""
    for path in both_logs(pytorch, ONE):
        replace_in(path, "train.loss : ", "train.loss : 1")
    reseal(pytorch, ONE)
    report_files.reports(pytorch.folder, measured(pytorch), "en")
    assert found(pytorch) == set()


@pytest.mark.parametrize("name", ["events.jsonl", f"logs/{ONE}.json"])
def test_a_number_that_json_lacks_is_a_difference(pytorch: Sweep, name: str) -> None:
    replace_in(pytorch.folder / name, '"port": 22333', '"port": NaN')
    written = [it.written for it in check_sweep(pytorch).differences if it.file == name]
    assert any(it.startswith("no JSON: ") for it in written), written
