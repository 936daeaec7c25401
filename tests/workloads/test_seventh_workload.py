"""A workload is added by a module, a playbook and a sample: with those of its page."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests import ROOT, commands

SAMPLE = (
    ROOT / "tests/samples/logs-pytorch-rn50"
    "/paddleperf_2020-12-18_be362d9_pytorch_gpu1_fp32_bs128.txt"
)
PROGRAM = (sys.executable, "-c", "from orchestrator.cli import main; main()")


def block(language: str) -> str:
    """The page's example in this language."""
    text = (ROOT / "docs/adding-a-workload.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^   ```{language}\n(.*?)^   ```$", text, re.DOTALL | re.MULTILINE)
    return "".join(line.removeprefix("   ") for line in found.splitlines(keepends=True))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what ships, with the two new files and nothing else changed."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("orchestrator", "images", "inventory", "playbooks"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "orchestrator/workloads/wide_rn50.py").write_text(block("python"))
    (copy / "playbooks/wide-rn50.yaml").write_text(block("yaml"))
    return copy


def said(checkout: Path, *words: str) -> str:
    """What a command of the copy prints."""
    env = commands.environment(PYTHONPATH=str(checkout))
    done = commands.run([*PROGRAM, *words], cwd=checkout, env=env, timeout_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_new_module_is_a_workload_by_its_name(checkout: Path) -> None:
    """Nothing is registered anywhere."""
    listed = json.loads(said(checkout, "list", "workloads", "--json"))
    assert "wide_rn50" in json.dumps(listed)


def test_its_playbook_is_judged_and_planned(checkout: Path) -> None:
    """check knows its parameters, and a dry run shows its command line on every node."""
    said(checkout, "check", "playbooks/wide-rn50.yaml")
    words = ("sweep", "wide-rn50", "--inventory", "v100x4", "--dry-run", "--json")
    trials = json.loads(said(checkout, *words))["plan"]["trials"]
    assert len(trials) == 2 * 2 * 5
    four = next(trial for trial in trials if trial["name"] == "4n8g-wrn50_b128_amp_1")
    assert [task["node"] for task in four["tasks"]] == ["vs001", "vs002", "vs003", "vs004"]
    argv = four["tasks"][3]["argv"]
    assert argv[argv.index("--node_rank") + 1] == "3"
    assert argv[-7:] == ["--width", "2", "-b", "128", "--prof", "100", "--amp", "/data/image"][-7:]


def test_its_log_is_measured(checkout: Path) -> None:
    """The sample's own figure, worked out by hand: 367.9 images/s between iterations 20 and 60."""
    document = json.loads(said(checkout, "inspect", "log", str(SAMPLE), "--workload", "wide_rn50"))
    assert document["throughput"] == pytest.approx(367.9, abs=0.01)
    assert (document["window"], document["problems"]) == ([20, 60], [])
