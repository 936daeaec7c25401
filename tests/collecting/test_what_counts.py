"""Which logs of a folder count: cut, copied, foreign and mixed ones do not, or say so."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests import SAMPLES
from tests.collecting.pytorch_logs import codes, collect, keep, run_of


def test_an_invalid_1n1g_case_is_no_baseline(tmp_path: Path) -> None:
    """A baseline whose only log was cut gives a speedup to nobody."""
    keep(tmp_path, "1n1g/r50_b256_amp", {1: 802.9})
    keep(tmp_path, "1n8g/r50_b256_amp", {1: 6154.66})
    log = tmp_path / "1n1g" / "r50_b256_amp_1.log"
    log.write_text(log.read_text()[:5000])
    one, eight = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    assert (one["median"], one["trials_valid"], one["trials_planned"]) == (None, 0, 1)
    assert eight["median"] == pytest.approx(6154.66, abs=0.005)
    assert (one["speedup"], eight["speedup"]) == (None, None)


@pytest.mark.parametrize(
    ("kept", "code"),
    [(0.0, "NO-STEPS"), (0.01, "TRUNCATED"), (0.5, "TRUNCATED"), (0.97, "TRUNCATED")],
)
def test_a_cut_log_is_left_out_of_its_median(five: Path, kept: float, code: str) -> None:
    """Cut before its header, in it, in the window or after: `4/5`, exit 3, and never 0.0."""
    log = five / "1n8g" / "r50_b256_amp_4.log"
    content = log.read_bytes()
    log.write_bytes(content[: int(len(content) * kept)])
    done = collect(five, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    trial = case["trials"][3]
    assert (done.returncode, case["trials_valid"], len(case["trials"])) == (3, 4, 5)
    assert (trial["state"], code in codes(trial)) == ("invalid", True)
    assert case["median"] == pytest.approx((6135.08 + 6154.66) / 2, abs=0.005)
    assert case["min"] == pytest.approx(6130.69, abs=0.005)
    table = collect(five)
    assert (table.returncode, "4/5" in table.stdout) == (3, True)
    assert "1n8g/r50_b256_amp_4.log: invalid: " in table.stderr
    assert not re.search(r"\b0\.0+\b(?!%)", table.stdout)


def test_one_log_in_two_cases_counts_in_neither(published: Path) -> None:
    """The 2-node listing of seed 003 is its 4-node listing with another world size."""
    source = published / "amp_ngc/pytorch/4n8g/r50_b256_amp_3.log"
    copy = source.read_text().replace("world_size : 32 ", "world_size : 16 ")
    (published / "amp_ngc/pytorch/2n8g/r50_b256_amp_1.log").write_text(copy)
    done = collect(published, "--json")
    two, four = json.loads(done.stdout)["cases"][3:]
    assert done.returncode == 3
    assert codes(two["trials"][0]) == ["RATE-MISMATCH", "SAME-EVIDENCE"]
    assert codes(four["trials"][2]) == ["SAME-EVIDENCE"]
    assert "2n8g/r50_b256_amp_1.log" in four["trials"][2]["problems"][0]["message"]
    assert (two["trials_valid"], four["trials_valid"]) == (4, 4)


def test_one_log_as_two_trials_counts_as_neither(five: Path) -> None:
    """A trial that was copied instead of run makes no median steadier."""
    source, copy = (five / "1n8g" / f"r50_b256_amp_{repeat}.log" for repeat in (1, 2))
    copy.write_bytes(source.read_bytes())
    (case,) = json.loads(collect(five, "--json").stdout)["cases"]
    assert [codes(trial) for trial in case["trials"]] == [["SAME-EVIDENCE"]] * 2 + [[]] * 3
    assert case["trials_valid"] == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [(r"(:\d\d\.\d{5})\d( - Epoch)", r"\g<1>3\2"), (r"(train\.loss : )\d()", r"\g<1>5\2")],
)
def test_a_copy_whose_times_or_losses_were_changed_is_a_copy(
    five: Path, before: str, after: str
) -> None:
    """One microsecond of each line, or all losses: what is left is that of the other run."""
    source, copy = (five / "1n8g" / f"r50_b256_amp_{repeat}.log" for repeat in (1, 2))
    copy.write_text(re.sub(before, after, source.read_text()))
    (case,) = json.loads(collect(five, "--json").stdout)["cases"]
    assert [codes(trial) for trial in case["trials"]] == [["SAME-EVIDENCE"]] * 2 + [[]] * 3


def test_a_copy_with_some_changed_digits_is_a_copy(tmp_path: Path) -> None:
    """Other times and a digit of every third rate: most steps are still those of the other run."""
    source = SAMPLES / "logs-pytorch-rn50/paddleperf_2020-12-18_be362d9_pytorch_gpu8_amp_bs128.txt"
    text = source.read_text()
    (tmp_path / "1n8g").mkdir()
    (tmp_path / "1n8g/r50_b128_amp_1.log").write_text(text)
    text = re.sub(r"(:\d\d\.\d{5})\d( - Epoch)", r"\g<1>3\2", text)
    for number in range(21, 61, 3):
        text = re.sub(rf"(Iteration: {number} .*total_ips : \d+\.\d)\d", r"\g<1>", text)
    (tmp_path / "1n8g/r50_b128_amp_2.log").write_text(text)
    (case,) = json.loads(collect(tmp_path, "--json", "--window", "20:60").stdout)["cases"]
    assert [codes(trial) for trial in case["trials"]] == [["SAME-EVIDENCE"]] * 2


@pytest.mark.parametrize(
    ("name", "words", "trusted"),
    [
        ("1n8g/r50_b128_amp_1.log", "micro_batch_size is 256 in the log and 128", False),
        ("2n8g/r50_b256_amp_1.log", "world_size is 8 in the log and 16", False),
        ("1n8g/r50_b256_fp32_1.log", "precision is amp in the log and fp32", True),
    ],
)
def test_a_header_that_contradicts_the_name_is_a_mismatch(
    tmp_path: Path, name: str, words: str, trusted: bool
) -> None:
    """No median; and no number at all where it is the batch that is in doubt."""
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(run_of("1n8g", 1, 6154.66).log())
    done = collect(tmp_path, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    (trial,) = case["trials"]
    assert (done.returncode, case["median"], case["trials_valid"]) == (3, None, 0)
    assert codes(trial) == ["CASE-MISMATCH"]
    assert words in trial["problems"][0]["message"]
    assert (trial["throughput"] is not None) == trusted


def test_a_mismatch_stays_a_trial_of_the_case_it_is_named_for(five: Path) -> None:
    """A log without AMP among logs with it makes 4/5, not a case of its own."""
    log = five / "1n8g" / "r50_b256_amp_2.log"
    log.write_text(re.sub(r"(amp|dynamic_loss_scale) : True", r"\1 : False", log.read_text()))
    (case,) = json.loads(collect(five, "--json").stdout)["cases"]
    assert (case["trials_valid"], case["trials_planned"]) == (4, 5)
    assert codes(case["trials"][1]) == ["CASE-MISMATCH"]


def test_loss_scales_never_share_a_median(five: Path) -> None:
    """Dynamic and static scaling differ by up to 4.7 % in seed 003, and names do not tell them."""
    log = five / "1n8g" / "r50_b256_amp_2.log"
    static = log.read_text().replace("static_loss_scale : 1 ", "static_loss_scale : 128.0 ")
    log.write_text(static.replace("dynamic_loss_scale : True", "dynamic_loss_scale : False"))
    cases = json.loads(collect(five, "--json").stdout)["cases"]
    found = {case["case"]["params.loss_scale"]: case["trials_valid"] for case in cases}
    assert found == {"dynamic": 4, 128.0: 1}


def test_what_a_name_says_beyond_the_case_is_kept_apart(tmp_path: Path) -> None:
    """Two models, or two values of a parameter, have a baseline each and no common median."""
    series = ("r50_b256_amp", "r50_b256_amp-xlaTrue", "rn101_b256_amp")
    for number, name in enumerate(series):
        keep(tmp_path / str(number), f"1n1g/{name}", {number + 1: 800.0 + 50 * number})
    keep(tmp_path / "1", "1n8g/r50_b256_amp-xlaTrue", {1: 6000.0})
    cases = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    found = {
        (case["case"]["placement"], case["case"].get("params.named")): case["speedup"]
        for case in cases
    }
    expected = {("1x1", None): 1, ("1x1", "xlaTrue"): 1, ("1x1", "rn101"): 1}
    assert found == {**expected, ("1x8", "xlaTrue"): pytest.approx(6000 / 850, abs=1e-5)}


def test_headers_that_differ_do_not_share_a_median(five: Path) -> None:
    """A trial of another architecture says in what it differs."""
    log = five / "1n8g" / "r50_b256_amp_3.log"
    log.write_text(log.read_text().replace("arch : resnet50 ", "arch : resnet101 "))
    done = collect(five, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, case["trials_valid"]) == (3, 4)
    assert codes(case["trials"][2]) == ["PROVENANCE"]
    assert "arch is resnet101" in case["trials"][2]["problems"][0]["message"]


def test_a_stall_in_the_window_is_marked_and_counts(five: Path) -> None:
    """The number is what the clock says, and the reader is told why it is low."""
    log = five / "1n8g" / "r50_b256_amp_1.log"
    early, late = log.read_text().split("Iteration: 100 ")
    stalled = re.sub(
        r"DLL (\S+ \S+)",
        lambda found: f"DLL {datetime.fromisoformat(found[1]) + timedelta(seconds=3)}",
        late,
    )
    log.write_text(f"{early}Iteration: 100 {stalled}")
    done = collect(five, "--json")
    trial = json.loads(done.stdout)["cases"][0]["trials"][0]
    assert codes(trial, "marks") == ["CLOCK-JUMP", "GAP"]
    assert "r50_b256_amp_1.log: " in done.stderr
    assert "GAP: " in done.stderr
    assert trial["throughput"] == pytest.approx(2048 * 100 / (2048 * 100 / 6135.08 + 3), abs=0.01)


def test_a_log_that_cannot_be_read_stops_no_other(five: Path) -> None:
    """A link to a file that is gone is named with its cause, and is one of the five."""
    log = five / "1n8g" / "r50_b256_amp_5.log"
    log.unlink()
    log.symlink_to(five / "gone.log")
    done = collect(five, "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, case["trials_valid"], case["trials_planned"]) == (3, 4, 5)
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
    document = json.loads(collect(five, "--json").stdout)
    assert document["cases"][0]["trials_valid"] == 5
    assert [log["log"] for log in document["logs"]] == ["kept/note.txt"]


def test_two_campaigns_in_one_folder_do_not_share_medians(tmp_path: Path) -> None:
    """The same repeat in two folders is another run: each folder has its own cases and baseline."""
    for day, factor in (("monday", 1.0), ("tuesday", 2.0)):
        keep(tmp_path / day, "1n1g/r50_b256_amp", {1: 800 * factor, 2: 802 * factor})
        keep(tmp_path / day, "1n8g/r50_b256_amp", {1: 6000 * factor, 2: 6002 * factor})
    cases = json.loads(collect(tmp_path, "--json").stdout)["cases"]
    assert [case["case"]["params.folder"] for case in cases] == ["monday", "tuesday"] * 2
    assert [case["trials_valid"] for case in cases] == [2, 2, 2, 2]
    assert [case["median"] for case in cases] == pytest.approx([801, 1602, 6001, 12002], abs=0.5)
