"""The built wheel, installed in an empty place, does the whole job."""

import json
import subprocess
import venv
from pathlib import Path

import pytest

from tests import ROOT, commands
from tests.package import wheel

pytestmark = pytest.mark.cluster


def run(*words: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """A command of the fresh environment, without anything of this one; apart from real sweeps."""
    lock = str(cwd / "machine.lock")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd), "DLPERF_LOCK": lock}
    return commands.run(words, cwd=cwd, env=env, timeout_s=900)


INSTALL = "install torch for that Python: pip, pipx inject or uv pip install, or from a checkout:"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, str(wheel.built(folder))], check=True, timeout=600)
    return programs


@pytest.mark.usefixtures("machine")  # nobody prepares a data set on it meanwhile
def test_without_pytorch_the_extra_is_named(installed: Path, tmp_path: Path) -> None:
    """`sweep smoke` in an empty folder says what to install and starts nothing, exit 5."""
    done = run(installed / "dlperf-orch", "sweep", "smoke", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "MODULE-MISSING" in done.stderr
    assert f"{INSTALL} pip install '.[demo]'" in done.stderr
    assert not (tmp_path / ".dlperf" / "sweeps").exists()


@pytest.mark.usefixtures("machine_alone")  # a gang of another test is a finding
def test_provision_names_the_module_before_a_sweep_fails(installed: Path, tmp_path: Path) -> None:
    """It is a warning, since not every playbook needs the module, and says how to install it."""
    done = run(installed / "dlperf-orch", "provision", "local", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "MODULE-MISSING node[1-2] no Python module torch" in said
    assert INSTALL in said


def test_shipped_files_are_found_by_name(installed: Path, tmp_path: Path) -> None:
    """Inventories, playbooks and images come out of the wheel, and plans can be shown."""
    names = json.loads(
        run(installed / "dlperf-orch", "list", "playbooks", "--json", cwd=tmp_path).stdout
    )
    assert {row["name"] for row in names} >= {"smoke", "rn50-fp32", "rn50-amp", "rn50-amp-static"}
    shown = run(
        *(installed / "dlperf-orch", "sweep", "rn50-amp", "--dry-run"),
        *("--inventory", "inventory/v100x4.yaml"),
        cwd=tmp_path,
    )
    assert shown.returncode == 0, shown.stderr
    assert "--master_addr 10.11.0.2" in shown.stdout


PLAYBOOKS = {
    *("rn50-fp32", "rn50-amp", "rn50-amp-static"),
    *("tf-rn50-fp32", "tf-rn50-amp", "tf-rn50-fp32-perf", "tf-rn50-amp-perf"),
    *("oneflow-rn50-fp32", "oneflow-rn50-amp", "oneflow-bert-fp32", "oneflow-bert-amp"),
    *("oneflow-gpt", "smoke", "rn50-h100", "all-reduce", "node-speed"),
}


def test_every_playbook_resolves_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    """Workload, image and cases of each are found in the wheel, and planned on v100x4 or local."""
    program = installed / "dlperf-orch"
    listed = json.loads(run(program, "list", "playbooks", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == PLAYBOOKS
    for name in sorted(PLAYBOOKS):
        inventory = {"smoke": "local", "rn50-h100": "h100x2"}.get(name, "v100x4")
        words = ("sweep", name, "--inventory", inventory, "--dry-run", "--json")
        done = run(program, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["plan"]["trials"]
    known = json.loads(run(program, "published", "--json", cwd=tmp_path).stdout)
    assert "seed" not in json.dumps(known)


@pytest.mark.long  # downloads PyTorch
@pytest.mark.usefixtures("machine")
def test_with_the_extra_the_training_runs(installed: Path, tmp_path: Path) -> None:
    """`sweep smoke` trains for real and gives a number."""
    pip = [str(installed / "python"), "-m", "pip", "install", "--quiet"]
    pip.append("--no-compile")  # Python does it for what is imported, half of PyTorch
    extras = (ROOT / "pyproject.toml").read_text().split("demo = [")[1].split("]")[0]
    subprocess.run([*pip, extras.strip('" \n')], check=True, timeout=900)
    done = run(
        *(installed / "dlperf-orch", "sweep", "smoke", "--json"),
        *("--case", "2x1", "--repeats", "1"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["cases"]
    (trial,) = (trial for case in cases for trial in case["trials"] if trial["throughput"])
    assert trial["state"] == "valid"
    assert trial["throughput"] > 0
