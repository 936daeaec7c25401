"""docs/files.md names what a sweep leaves; other pages list what ships."""

import re

import pytest

from orchestrator.datasets import DATASETS
from orchestrator.files import shipped
from tests.conftest import Place
from tests.docs import state_files
from tests.docs.pages import ROOT

# Not after a sweep that went well on local nodes, without a terminal of its own; or only of a task
# that lasted long enough to be observed.
ELSEWHERE = (
    "downloads/",
    "identity",
    "traceback-",
    "turns/",
    "detached-",
    "_result.json",
    ".gpus",
    ".state",
    "slurm/",
    "images/",
    "canary/",
    "step.sh",
    "srun.err",
)


@pytest.mark.cluster
def test_files_of_a_sweep_are_those_of_the_page(place: Place) -> None:
    """Each file is on the page, and each file of the page is there; locks hold nothing."""
    place.must("provision", "two")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    place.must("collect", "--lang", "zh")
    names, unknown = state_files.left(place.state), state_files.untold(place.state)
    assert unknown == set()
    told = {name: state_files.pattern(name) for name in state_files.table("files.md")}
    absent = {name for name, written in told.items() if not any(map(written.fullmatch, names))}
    assert {name for name in absent if not any(word in name for word in ELSEWHERE)} == set()


def test_the_page_of_benchmarks_has_every_playbook() -> None:
    """And every image that they name."""
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert set(state_files.table("benchmarks.md")) == set(shipped.names("playbooks"))
    assert set(shipped.names("images")) <= set(re.findall("`([^`]+)`", text))


def test_the_page_of_data_sets_has_every_data_set() -> None:
    """By the names of inventories."""
    assert set(state_files.table("data-sets.md")) == set(DATASETS)
