"""Planned command lines, held against the options that upstream's own parsers know.

The tables were dumped from the running programs at the commits that the images pin.
"""

import argparse
from collections.abc import Iterator

import pytest

from orchestrator import workloads
from orchestrator.files import yaml_reader
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image, Program
from orchestrator.planning import bind, plan
from orchestrator.planning.plan import Recipe
from tests import ROOT
from tests.cluster.standin import options

TABLES = ROOT / "tests" / "samples" / "options"
PROGRAMS = {  # by workload, the word of a command line behind which the program's own options begin
    "ngc_pytorch_rn50": "main.py",
    "ngc_tensorflow_rn50": "main.py",
    "oneflow_rn50": "of_cnn_train_val.py",
    "oneflow_bert": "run_pretraining.py",
    "oneflow_gpt": "oneflow_gpt.training",
}
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yaml"))


def workload_of(playbook: str) -> str:
    """The workload that a shipped playbook names."""
    read = yaml_reader.read(ROOT / f"playbooks/{playbook}.yaml")
    return yaml_reader.validated(read, Experiment).workload


# Of the workloads whose options were dumped; others run programs of ours.
UPSTREAM = [name for name in PLAYBOOKS if workload_of(name) in PROGRAMS]


def image(name: str) -> Image:
    """A shipped image."""
    return yaml_reader.validated(yaml_reader.read(ROOT / "images" / name / "image.yaml"), Image)


def parser(workload: str, of: Image) -> argparse.ArgumentParser:
    """The options of a workload's program at the commit that an image pins."""
    assert of.source is not None
    pinned = of.source.commit
    tables = TABLES.glob(f"{workload}@*.csv")
    (table,) = (path for path in tables if pinned.startswith(path.stem.split("@")[1]))
    return options.parser(str(table), abbreviated=workload != "oneflow_gpt")


def planned(playbook: str) -> Iterator[tuple[Experiment, list[str]]]:
    """Every different command line of a shipped playbook, from the program's own options on."""
    experiment = yaml_reader.validated(
        yaml_reader.read(ROOT / f"playbooks/{playbook}.yaml"), Experiment
    )
    cluster = yaml_reader.validated(yaml_reader.read(ROOT / "inventory/v100x4.yaml"), Cluster)
    workload = workloads.find(experiment.workload)
    assert workload is not None
    program = Program("/workspace/code", "python3", "")
    recipe = Recipe(playbook, experiment, workload, cluster, program)
    seats = [node.seat("") for node in cluster.members]
    bound = [bind.first(recipe, trial, seats) for trial in plan.build(recipe).trials]
    seen = {task.argv: None for attempt in bound for task in attempt.tasks if not task.service}
    word = PROGRAMS[experiment.workload]
    for argv in seen:
        (at,) = (index for index, option in enumerate(argv) if option.endswith(word))
        yield experiment, list(argv[at + 1 :])


@pytest.mark.parametrize("playbook", UPSTREAM)
def test_every_planned_command_line_is_one_that_the_program_takes(playbook: str) -> None:
    """No option that it lacks, no value missing, none of a wrong type or outside its choices."""
    lines = list(planned(playbook))
    assert lines
    for experiment, argv in lines:
        parser(experiment.workload, image(experiment.image.split("@")[0])).parse_args(argv)


PYTORCH = ["--arch", "resnet50", "--mom", "0.125", "-b", "128", "--prof", "121", "/data/image"]


@pytest.mark.parametrize(
    ("argv", "seen"),
    [
        (["--momentums=0.1", *PYTORCH], "unrecognized arguments: --momentums=0.1"),
        ([*PYTORCH, "--prof"], "expected one argument"),
        (["--arch", "resnet", *PYTORCH[2:]], "invalid choice: 'resnet'"),
        (["-b", "many", *PYTORCH], "invalid int value: 'many'"),
        (["--m", "0.1", *PYTORCH], "ambiguous option"),
        (PYTORCH[:-1], "arguments are required: data"),
    ],
)
def test_what_a_program_does_not_take_is_refused(
    argv: list[str], seen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In argparse's words, which the programs themselves print."""
    made = options.parser(str(TABLES / "ngc_pytorch_rn50@5cc03ca.csv"))
    made.parse_args(PYTORCH)
    with pytest.raises(SystemExit):
        made.parse_args(argv)
    assert seen in capsys.readouterr().err


def test_options_that_are_abbreviated_mean_what_they_mean_upstream() -> None:
    """DLPerf writes ``--mom`` and ``--num_epoch``; GPT's parser takes none cut short."""
    made = options.parser(str(TABLES / "ngc_pytorch_rn50@5cc03ca.csv"))
    assert made.parse_args(PYTORCH).momentum == 0.125
    gpt = options.parser(str(TABLES / "oneflow_gpt@8da0250.csv"), abbreviated=False)
    assert gpt.parse_known_args(["--num-layer", "16"])[1] == ["--num-layer", "16"]
