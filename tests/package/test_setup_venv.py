"""Tests of setup-venv.sh, by which each target of the Makefile gets its .venv.

A tiny checkout stands for this one: real interpreters, venvs, pip and uv, but wheels of a few
bytes, and no network.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import ROOT, commands

PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "dlperf-orch"
version = "1"
[project.optional-dependencies]
demo = ["torch==2.13.0"]
"""
BACKEND = """\
import shutil

def build_editable(folder, *_):
    name = "dlperf_orch-1-py3-none-any.whl"
    shutil.copy(name, folder)
    return name

build_wheel = build_editable
"""
DEMO = "Provides-Extra: demo\nRequires-Dist: torch==2.13.0; extra == 'demo'\n"


def write_wheel(folder: Path, name: str, version: str, program: str = "", about: str = "") -> Path:
    """Write a wheel that contains a shell script of its name, if any, and nothing else."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        if program:
            script = zipfile.ZipInfo(f"{name}-{version}.data/scripts/{name.replace('_', '-')}")
            script.external_attr = 0o100755 << 16  # a regular file that may be run
            wheel.writestr(script, program)
        head = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", head + about)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


class Checkout:
    """A folder with the Makefile, setup-venv.sh, and wheels that pip and uv find."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True)
        for name in ("Makefile", "setup-venv.sh"):
            shutil.copy(ROOT / name, folder)
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "backend.py").write_text(BACKEND)
        uv = f'#!/bin/sh\nexec "{Path(sys.prefix) / "bin" / "uv"}" "$@"\n'
        write_wheel(folder, "dlperf_orch", "1", "#!python\n", DEMO)
        write_wheel(self.wheels, "torch", "2.13.0")
        (folder / "requirements.lock").touch()
        self.lock(write_wheel(self.wheels, "uv", "1", uv))

    def lock(self, wheel: Path) -> None:
        """Add a wheel to requirements.lock, with its hash."""
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        with (self.folder / "requirements.lock").open("a") as lock:
            lock.write(f"./wheels/{wheel.name} --hash=sha256:{digest}\n")

    def make(self, *words: str, **own: str) -> "subprocess.CompletedProcess[str]":
        """Run make in it, with variables of its own."""
        return commands.run(("make", *words), cwd=self.folder, env={**self.environment(), **own})

    def environment(self) -> dict[str, str]:
        """Keep pip and uv from networks and from this machine's settings."""
        return {
            **{"PATH": f"{sys.base_prefix}/bin:{os.environ['PATH']}", "UV_OFFLINE": "1"},
            **{"HOME": str(self.folder), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"},
            **{"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_FIND_LINKS": self.wheels.as_uri()},
        }

    def list_packages(self) -> list[str]:
        """List what .venv contains."""
        words = ("list", "--format=freeze", "--exclude=pip", "--exclude=setuptools")
        python = self.folder / ".venv/bin/python"
        done = commands.run((python, "-m", "pip", *words), env=self.environment())
        return commands.checked(done).stdout.split()


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Prepare one .venv, in a folder whose name has a space; each test leaves it complete."""
    checkout = Checkout(tmp_path_factory.mktemp("setup") / "my checkout")
    done = commands.checked(checkout.make("venv"))
    assert "0.2 GB to download" in done.stdout
    assert ".venv is complete" in done.stdout
    return checkout


NO_ENSUREPIP = f'PYTHONPATH="$(dirname "$0")/hidden" exec "{sys.executable}" "$@"'
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.mark.parametrize(
    ("python", "text", "seen"),
    [
        ("stub python", "echo Python 3.10.13", "Python 3.10.13; needed Python 3.11 or later."),
        ("python", "echo Python 2.7.18", "Python 2.7.18; needed Python 3.11 or later."),
        (
            "python",
            "echo pyenv: version missing >&2; exit 127",
            "pyenv: version missing; needed Python 3.11 or later.",
        ),
        ("no-such-python", "", "not found; needed Python 3.11 or later."),
        ("python3 -u", "", "not found; needed Python 3.11 or later."),
        ("python", NO_ENSUREPIP, f"apt-get install python{VERSION}-venv"),
    ],
)
def test_an_unsuitable_python_is_named_before_anything_is_made(
    python: str, text: str, seen: str, tmp_path: Path
) -> None:
    """Each target shows what the interpreter printed, and what is needed."""
    path = tmp_path / python
    if text:
        (tmp_path / "hidden").mkdir()
        (tmp_path / "hidden/ensurepip.py").write_text("raise ImportError\n")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    checkout = Checkout(tmp_path / "checkout")
    for target in ("venv", "demo"):
        done = checkout.make(target, f"PYTHON={path}")
        assert done.returncode == 2
        assert f"{seen}\n" in done.stderr
        assert f"make: {path}: " in done.stderr or text == NO_ENSUREPIP
        assert "make demo PYTHON=/path/to/python3.12" in done.stderr or text == NO_ENSUREPIP
    assert not (checkout.folder / ".venv").exists()


@pytest.mark.cluster
def test_a_complete_venv_is_left_alone(complete: Checkout) -> None:
    """Also by the Python that it was made with; that of another target may be absent."""
    assert complete.list_packages() == ["dlperf-orch==1", "torch==2.13.0", "uv==1"]
    for own in ({}, {"PYTHON": str(Path(sys.base_prefix) / "bin/python3")}):
        done = commands.checked(complete.make("venv", **own))
        assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("interrupted", "it is incomplete"),
        ("no python", "its Python does not run"),
        ("another python", "it was made with another Python than "),
        ("moved", "it was made in another folder"),
    ],
)
def test_a_venv_that_does_not_work_is_made_anew(
    fault: str, reason: str, complete: Checkout, tmp_path: Path
) -> None:
    """Without PYTHON the new venv is then kept."""
    venv, own = complete.folder / ".venv", {}
    (venv / "stale").touch()
    if fault == "interrupted":
        (venv / ".ready").unlink()
        (venv / "bin/pip").unlink()
    elif fault == "no python":  # it was removed, such as by an upgrade
        (venv / "bin/python").unlink()
        (venv / "bin/python").symlink_to("/no/such/python")
    elif fault == "another python":
        own = {"PYTHON": move_python(tmp_path / "other python")}
    else:
        shutil.copytree(complete.folder, tmp_path / "moved", symlinks=True)
        complete = Checkout.__new__(Checkout)
        complete.folder, complete.wheels = tmp_path / "moved", tmp_path / "moved" / "wheels"
    done = commands.checked(complete.make("venv", **own))
    assert f".venv is made anew: {reason}{own.get('PYTHON', '')}.\n" in done.stdout
    assert complete.make("venv").stdout == ""
    venv = complete.folder / ".venv"
    assert not (venv / "stale").exists()
    program = (venv / "bin/dlperf-orch").read_text()
    assert "my checkout" not in program or fault != "moved"
    base = commands.run((venv / "bin/python", "-c", "import sys; print(sys.base_prefix)")).stdout
    assert (base.strip() == str(tmp_path / "other python")) == bool(own)


def move_python(folder: Path) -> str:
    """Put this interpreter's program and library into another folder: another Python."""
    name, here = f"python{VERSION}", Path(sys.base_prefix)
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    shutil.copy(here / "bin" / name, folder / "bin")
    (folder / "lib" / name).symlink_to(here / "lib" / name)
    return str(folder / "bin" / name)


@pytest.mark.cluster
def test_a_changed_lock_is_installed_over_the_venv(complete: Checkout) -> None:
    """What is there already is not downloaded again."""
    (complete.folder / ".venv" / "kept").touch()
    complete.lock(write_wheel(complete.wheels, "more", "1"))
    done = commands.checked(complete.make("venv"))
    assert "made anew" not in done.stdout
    assert (complete.folder / ".venv" / "kept").exists()
    assert "more==1" in complete.list_packages()
    assert complete.make("venv").stdout == ""


@pytest.mark.long
@pytest.mark.cluster
def test_uv_chooses_the_build_of_pytorch_and_pip_does_where_it_cannot(
    tmp_path: Path,
) -> None:
    """uv prefers the CPU build of two; without an index it says so, and pip is told the sizes."""
    with_uv, without = Checkout(tmp_path / "with"), Checkout(tmp_path / "without")
    cpu = tmp_path / "cpu"
    cpu.mkdir()
    write_wheel(cpu, "torch", "2.13.0+cpu")
    commands.checked(with_uv.make("venv", UV_FIND_LINKS=str(cpu), UV_TORCH_BACKEND="cpu"))
    assert "torch==2.13.0+cpu" in with_uv.list_packages()
    done = commands.checked(without.make("venv", UV_TORCH_BACKEND="cpu"))
    assert "error: " in done.stderr
    assert "2.7 GB to download, 4.9 GB in .venv" in done.stdout
    assert "torch==2.13.0" in without.list_packages()


def test_figures_and_versions_are_those_of_the_project() -> None:
    """A change of the pin means that the sizes must be measured again."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    script = (ROOT / "setup-venv.sh").read_text()
    (pin,) = project["optional-dependencies"]["demo"]
    assert f"# Sizes of {pin.replace('==', ' ')}:" in script
    assert f"needed Python {project['requires-python'].removeprefix('>=')} or later" in script


def test_help_names_every_target() -> None:
    """A target without a line of help is missed here."""
    text = (ROOT / "Makefile").read_text()
    (declared,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    help_words = ("make", "--no-print-directory", "help")  # make prints it below another make
    listed = commands.checked(commands.run(help_words, cwd=ROOT)).stdout.splitlines()
    assert {line.split()[1] for line in listed} == set(declared.split())
    assert set(re.findall(r"^([a-z]+):(?!=)", text, re.MULTILINE)) == set(declared.split())
