"""Logs of a folder that are cut, copied, foreign or mixed do not count, or carry a mark."""

import re
from pathlib import Path

import pytest

from orchestrator import errors
from tests.collecting.pytorch_logs import codes, collect, keep, results

SAME = ["SAME-EVIDENCE"]


def log(five: Path, repeat: int) -> Path:
    return five / "1n8g" / f"r50_b256_amp_{repeat}.log"


@pytest.mark.parametrize(
    ("kept", "code"),
    [(0.0, "NO-STEPS"), (0.01, "TRUNCATED"), (0.97, "TRUNCATED")],
)
def test_a_cut_log_is_left_out_of_its_median(five: Path, kept: float, code: str) -> None:
    """Cut before its header, within the header, and after the window."""
    content = log(five, 4).read_bytes()
    log(five, 4).write_bytes(content[: int(len(content) * kept)])
    (case,) = results(five)["cases"]
    assert (case["trials_valid"], len(case["trials"])) == (4, 5)
    assert (case["trials"][3]["state"], code in codes(case["trials"][3])) == ("invalid", True)
    assert case["median"] == pytest.approx((6135.08 + 6154.66) / 2, abs=0.005)
    assert case["min"] == pytest.approx(6130.69, abs=0.005)


def test_the_command_shows_a_cut_log_and_never_zero(five: Path) -> None:
    log(five, 4).write_text("")
    done = collect(five)
    assert (done.returncode, "4/5" in done.stdout) == (3, True)
    assert "1n8g/r50_b256_amp_4.log: invalid: " in done.stderr
    assert not re.search(r"\b0\.0+\b(?!%)", done.stdout)


def test_a_copy_with_other_losses_is_a_copy(five: Path) -> None:
    text = re.sub(r"(train\.loss : )\d", r"\g<1>5", log(five, 1).read_text())
    log(five, 2).write_text(text)
    (case,) = results(five)["cases"]
    assert [codes(trial) for trial in case["trials"]] == [SAME, SAME, [], [], []]


def test_one_log_in_two_cases_counts_in_neither(published: Path) -> None:
    """The 2-node listing of seed 003 is its 4-node listing with another world size."""
    source = published / "amp_ngc/pytorch/4n8g/r50_b256_amp_3.log"
    copy = source.read_text().replace("world_size : 32 ", "world_size : 16 ")
    (published / "amp_ngc/pytorch/2n8g/r50_b256_amp_1.log").write_text(copy)
    two, four = results(published)["cases"][3:]
    assert codes(two["trials"][0]) == ["RATE-MISMATCH", *SAME]
    assert codes(four["trials"][2]) == SAME
    assert "2n8g/r50_b256_amp_1.log" in four["trials"][2]["problems"][0]["message"]
    assert (two["trials_valid"], four["trials_valid"]) == (4, 4)


@pytest.mark.parametrize(
    ("pattern", "new", "code", "words"),
    [
        (r"(amp|dynamic_loss_scale) : True", r"\1 : False", "CASE-MISMATCH", ""),
        ("arch : resnet50 ", "arch : resnet101 ", "PROVENANCE", "arch is resnet101"),
    ],
)
def test_a_log_unlike_its_repeats_stays_a_trial_of_their_case(
    five: Path, pattern: str, new: str, code: str, words: str
) -> None:
    log(five, 2).write_text(re.sub(pattern, new, log(five, 2).read_text()))
    (case,) = results(five)["cases"]
    assert (case["trials_valid"], case["trials_planned"]) == (4, 5)
    (problem,) = case["trials"][1]["problems"]
    assert problem["code"] == code
    assert words in problem["message"]


def test_what_a_name_says_beyond_the_case_is_kept_apart(tmp_path: Path) -> None:
    """Two models, or two values of a parameter, have a baseline each and no common median."""
    series = ("r50_b256_amp", "r50_b256_amp-xlaTrue", "rn101_b256_amp")
    for number, name in enumerate(series):
        keep(tmp_path / str(number), f"1n1g/{name}", {number + 1: 800.0 + 50 * number})
    keep(tmp_path / "1", "1n8g/r50_b256_amp-xlaTrue", {1: 6000.0})
    found = {
        (case["case"]["placement"], case["case"].get("params.named")): case["speedup"]
        for case in results(tmp_path)["cases"]
    }
    expected = {("1x1", None): 1, ("1x1", "xlaTrue"): 1, ("1x1", "rn101"): 1}
    assert found == {**expected, ("1x8", "xlaTrue"): pytest.approx(6000 / 850, abs=1e-5)}


def test_a_log_that_cannot_be_read_stops_no_other(five: Path) -> None:
    log(five, 5).unlink()
    log(five, 5).symlink_to(five / "gone.log")
    (case,) = results(five)["cases"]
    assert (case["trials_valid"], case["trials_planned"]) == (4, 5)
    assert codes(case["trials"][4])[0] == "READ"
    assert "No such file" in case["trials"][4]["problems"][0]["message"]


def test_logs_behind_a_link_to_a_folder_count(
    five: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On another disk; a link that leads up again, or repeats a folder, adds nothing."""
    disk = tmp_path_factory.mktemp("disk") / "logs"
    (five / "1n8g").rename(disk)
    (five / "1n8g").symlink_to(disk, target_is_directory=True)
    (five / "up").symlink_to(".", target_is_directory=True)
    (five / "latest").mkdir()
    (five / "kept").mkdir()
    (five / "kept" / "note.txt").write_text("no log\n")
    (five / "latest" / "kept").symlink_to("../kept")
    document = results(five)
    assert document["cases"][0]["trials_valid"] == 5
    assert [log["log"] for log in document["logs"]] == ["kept/note.txt"]


def test_two_campaigns_in_one_folder_do_not_share_medians(tmp_path: Path) -> None:
    """The same repeat in two folders is another run: each folder has its own cases and baseline."""
    for day, factor in (("monday", 1.0), ("tuesday", 2.0)):
        keep(tmp_path / day, "1n1g/r50_b256_amp", {1: 800 * factor, 2: 802 * factor})
        keep(tmp_path / day, "1n8g/r50_b256_amp", {1: 6000 * factor, 2: 6002 * factor})
    cases = results(tmp_path)["cases"]
    assert [case["case"]["params.folder"] for case in cases] == ["monday", "tuesday"] * 2
    assert [case["trials_valid"] for case in cases] == [2, 2, 2, 2]
    assert [case["median"] for case in cases] == pytest.approx([801, 1602, 6001, 12002], abs=0.5)


@pytest.mark.parametrize(
    ("workload", "code"), [("ngc_pytorch_rn50", "NO-LOGS"), ("ngc_pytorch_rn51", "NO-WORKLOAD")]
)
def test_nothing_to_read_is_a_usage_error(tmp_path: Path, workload: str, code: str) -> None:
    (tmp_path / "SOURCES.md").write_text("no log\n")
    with pytest.raises(errors.UsageError) as raised:
        results(tmp_path, workload)
    assert raised.value.code == code
