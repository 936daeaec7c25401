"""OneFlow-Benchmark's real programs over a module oneflow that computes nothing.

Options, header, metrics and printing are upstream's; what a GPU would take is a constant sleep.
"""

import re
from pathlib import Path
from statistics import mean

import pytest

from tests.real import environments, sources
from tests.real.room import Room, Trial

pytestmark = pytest.mark.real

SHIPPED = sources.ROOT / "playbooks"
RN50_STEP = re.compile(r"^train: epoch 0, iter (\d+), .* ([\d.]+)$", re.MULTILINE)
BERT_STEP = re.compile(r"^step: (\d+), .* ([\d.]+)$", re.MULTILINE)
GPT_ROW = re.compile(r"^\| (\d+) +\| \d+ +\| \d+ +\| [\d.]+ +\| ([\d.]+) +\|", re.MULTILINE)
PLACEMENT = re.compile(r"placement: \[.*\]")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A room with data sets that nothing reads."""
    for name in (
        "datasets/ImageNet/ofrecord/train",
        "datasets/bert/of_wiki_seq_len_128",
        "data/gpt",
    ):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "part-00000").touch()
    for end in ("bin", "idx"):
        (tmp_path / f"data/gpt/gpt_sample_dataset_text_document.{end}").touch()
    return Room(
        tmp_path,
        environments.today(),
        {"/data": tmp_path / "data", "/datasets": tmp_path / "datasets"},
        {
            "imagenet_ofrecord": "/datasets/ImageNet/ofrecord",
            "wiki_ofrecord": "/datasets/bert/of_wiki_seq_len_128",
            "gpt": "/data/gpt",
        },
    )


def shipped(name: str, placement: str | None = None) -> str:
    """A shipped playbook for nodes of this machine, over other nodes and GPUs where said so."""
    text = (SHIPPED / f"{name}.yaml").read_text()
    if placement:
        assert len(PLACEMENT.findall(text)) == 1
        text = PLACEMENT.sub(f"placement: {placement}", text)
    return f"device: cuda\n{text}"


@pytest.mark.parametrize(
    ("playbook", "image", "window"),
    [
        ("oneflow-rn50-fp32", "oneflow-0.1.9", (20, 120)),
        ("oneflow-rn50-amp", "oneflow-0.2.0", (20, 120)),
        ("oneflow-bert-fp32", "oneflow-0.1.9", (19, 119)),
        ("oneflow-bert-amp", "oneflow-0.2.0", (19, 119)),
    ],
)
def test_resnet_and_bert_are_measured_as_plain_arithmetic_has_it(
    room: Room, playbook: str, image: str, window: tuple[int, int]
) -> None:
    """The shipped playbooks, command line for command line, on one rank and on two."""
    room.image(image, sources.program(image))
    trials = room.swept("real", shipped(playbook, "[1x1, 1x2]"), "--repeats", "1")
    assert {trial.name.split("-")[0] for trial in trials} == {"1n1g", "1n2g"}
    for trial in trials:
        step = RN50_STEP if "rn50" in playbook else BERT_STEP
        clocks = {int(number): float(clock) for number, clock in step.findall(trial.log)}
        (batch,) = re.findall(r"^batch_size_per_device = (\d+)$", trial.log, re.MULTILINE)
        images = int(batch) * int(trial.name[2]) * (window[1] - window[0])
        by_hand = images / (clocks[window[1]] - clocks[window[0]])
        assert trial.outcome["throughput"] == pytest.approx(by_hand, rel=1e-5)


def test_gpt_is_measured_in_all_of_its_layouts(room: Room) -> None:
    """The shipped playbook as it is: 18 layouts on up to four nodes, by the last five rows."""
    code = sources.program("oneflow-gpt-0.3.5")
    room.image("oneflow-gpt-0.3.5", code)
    trials = room.swept("real", shipped("oneflow-gpt"))
    assert len(trials) == 18
    for trial in trials:
        check_gpt(trial)


def check_gpt(trial: Trial) -> None:
    """Hold a trial's throughput against the rows of its table."""
    rows = {int(step): float(latency) for step, latency in GPT_ROW.findall(trial.log)}
    (batch,) = re.findall(r"^ +global_batch_size \.+ (\d+)$", trial.log, re.MULTILINE)
    by_hand = int(batch) / mean(rows[step] for step in (60, 70, 80, 90, 100))
    assert trial.outcome["throughput"] == pytest.approx(by_hand, rel=1e-9)
