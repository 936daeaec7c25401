"""The built wheel does the whole job: in an empty place, and as pipx and uv install it."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from orchestrator import __version__
from tests import ROOT, commands

pytestmark = pytest.mark.cluster

INSTALL = "install torch for that Python: pip, pipx inject or uv pip install, or from a checkout:"
PLAYBOOKS = {
    *("rn50-fp32", "rn50-amp", "rn50-amp-static"),
    *("tf-rn50-fp32", "tf-rn50-amp", "tf-rn50-fp32-perf", "tf-rn50-amp-perf"),
    *("oneflow-rn50-fp32", "oneflow-rn50-amp", "oneflow-bert-fp32", "oneflow-bert-amp"),
    *("oneflow-gpt", "smoke", "rn50-h100", "all-reduce", "node-speed"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment that has the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=600)
    return folder / "bin"


def run(
    installed: Path, *words: str, cwd: Path, code: int = 0
) -> "subprocess.CompletedProcess[str]":
    """Run a command without anything of this environment, apart from real sweeps."""
    lock = str(cwd / "machine.lock")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd), "DLPERF_LOCK": lock}
    argv = (str(installed / "dlperf-orch"), *words)
    return commands.checked(commands.run(argv, cwd=cwd, env=env, timeout_s=900), code)


@pytest.mark.usefixtures("machine")  # nobody prepares a data set on it meanwhile
def test_a_sweep_without_pytorch_names_the_extra(installed: Path, tmp_path: Path) -> None:
    """Nothing is started, exit 5."""
    done = run(installed, "sweep", "smoke", cwd=tmp_path, code=5)
    assert "MODULE-MISSING" in done.stderr
    assert f"{INSTALL} pip install '.[demo]'" in done.stderr
    assert not (tmp_path / ".dlperf" / "sweeps").exists()


@pytest.mark.usefixtures("machine_alone")  # a gang of another test is a finding
def test_provision_names_the_module_before_a_sweep_fails(installed: Path, tmp_path: Path) -> None:
    """It is a warning, since not every playbook needs the module, and says how to install it."""
    said = " ".join(run(installed, "provision", "local", cwd=tmp_path).stdout.split())
    assert "MODULE-MISSING node[1-2] no Python module torch" in said
    assert INSTALL in said


def test_every_playbook_is_planned_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    """Workload, image and cases of each are found in the wheel, and so are published results."""
    listed = json.loads(run(installed, "list", "playbooks", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == PLAYBOOKS
    for name in sorted(PLAYBOOKS):
        inventory = {"smoke": "local", "rn50-h100": "h100x2"}.get(name, "v100x4")
        words = ("sweep", name, "--inventory", inventory, "--dry-run", "--json")
        document = json.loads(run(installed, *words, cwd=tmp_path).stdout)
        assert document["plan"]["trials"]
        assert name != "rn50-amp" or "--master_addr 10.11.0.2" in str(document["lines"])
    known = json.loads(run(installed, "published", "--json", cwd=tmp_path).stdout)
    assert "seed" not in json.dumps(known)


@pytest.mark.long  # downloads PyTorch
@pytest.mark.usefixtures("machine")
def test_with_the_extra_the_training_runs(installed: Path, tmp_path: Path) -> None:
    """`sweep smoke` trains for real and gives a number."""
    pip = [str(installed / "python"), "-m", "pip", "install", "--quiet"]
    pip.append("--no-compile")  # Python does it for what is imported, half of PyTorch
    extras = (ROOT / "pyproject.toml").read_text().split("demo = [")[1].split("]")[0]
    subprocess.run([*pip, extras.strip('" \n')], check=True, timeout=900)
    words = ("sweep", "smoke", "--json", "--case", "2x1", "--repeats", "1")
    cases = json.loads(run(installed, *words, cwd=tmp_path).stdout)["cases"]
    (trial,) = (trial for case in cases for trial in case["trials"] if trial["throughput"])
    assert (trial["state"], trial["throughput"] > 0) == ("valid", True)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with pipx and uv."""
    folder = tmp_path_factory.mktemp("tools")
    venv.create(folder, with_pip=True)
    pip = (folder / "bin/python", "-m", "pip", "install", "--quiet", "pipx", "uv")
    done = commands.run(pip, timeout_s=900)
    if done.returncode:
        pytest.skip(f"no registry of packages can be reached: {done.stderr.strip()[-200:]}")
    return folder / "bin"


@pytest.mark.long
@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_one_command_installs_the_program(
    wheel: Path, tools: Path, tmp_path: Path, tool: str
) -> None:
    """It says its version and finds what ships with it, in an empty home and folder."""
    programs = tmp_path / "bin"
    env = {**os.environ, "HOME": str(tmp_path), "DLPERF_STATE": str(tmp_path)}
    env |= {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(programs)}
    env |= {"UV_TOOL_DIR": str(tmp_path / "uv"), "UV_TOOL_BIN_DIR": str(programs)}
    # uv has certificates of its own, and reads no configuration of pip's.
    env |= {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    index = commands.run((sys.executable, "-m", "pip", "config", "get", "global.index-url"))
    if index.returncode == 0:
        env["UV_DEFAULT_INDEX"] = index.stdout.strip()
    words = ("install",) if tool == "pipx" else ("tool", "install", "--python", sys.executable)
    if tool == "pipx":
        env["PIPX_DEFAULT_PYTHON"] = sys.executable
    commands.checked(commands.run((tools / tool, *words, wheel), env=env, timeout_s=900))
    program = programs / "dlperf-orch"
    version = commands.run((program, "--version"), env=env).stdout
    assert version == f"dlperf-orch {__version__}\n"
    listed = commands.run((program, "list", "playbooks", "--json"), env=env).stdout
    assert "rn50-h100" in {row["name"] for row in json.loads(listed)}
