"""The built wheel, installed as users install programs: by pipx and by uv."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from orchestrator import __version__
from tests import commands
from tests.package import wheel

pytestmark = [pytest.mark.cluster, pytest.mark.long]


def run(*words: str | Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """A program, to its end."""
    return commands.run(words, env=env, timeout_s=900)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with pipx and uv, and the wheel beside it."""
    folder = tmp_path_factory.mktemp("tools")
    wheel.built(folder)
    venv.create(folder / "venv", with_pip=True)
    pip = (folder / "venv/bin/python", "-m", "pip", "install", "--quiet", "pipx", "uv")
    done = run(*pip, env=dict(os.environ))
    if done.returncode:
        pytest.skip(f"no registry of packages can be reached: {done.stderr.strip()[-200:]}")
    return folder


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_one_command_installs_the_program(tools: Path, tmp_path: Path, tool: str) -> None:
    """It says its version and finds what ships with it, in an empty home and folder."""
    (built,) = tools.glob("*.whl")
    home = {"HOME": str(tmp_path), "PIPX_HOME": str(tmp_path / "pipx"), "UV_SYSTEM_CERTS": "1"}
    # uv has certificates of its own, and reads no configuration of pip's.
    index = run(
        sys.executable, "-m", "pip", "config", "get", "global.index-url", env=dict(os.environ)
    )
    if index.returncode == 0:
        home["UV_DEFAULT_INDEX"] = index.stdout.strip()
    home |= {"PIPX_BIN_DIR": str(tmp_path / "bin"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    env = {**os.environ, **home, "UV_TOOL_DIR": str(tmp_path / "uv"), "UV_NATIVE_TLS": "1"}
    words = ("install",) if tool == "pipx" else ("tool", "install", "--python", sys.executable)
    if tool == "pipx":
        env["PIPX_DEFAULT_PYTHON"] = sys.executable
    done = run(tools / "venv" / "bin" / tool, *words, built, env=env)
    assert done.returncode == 0, done.stderr
    program = tmp_path / "bin" / "dlperf-orch"
    assert run(program, "--version", env=env).stdout == f"dlperf-orch {__version__}\n"
    listed = run(program, "list", "playbooks", "--json", env={**env, "DLPERF_STATE": str(tmp_path)})
    assert "rn50-h100" in {row["name"] for row in json.loads(listed.stdout)}
