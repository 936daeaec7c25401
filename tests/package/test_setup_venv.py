"""Tests of setup-venv.sh, by which each target of the Makefile gets its .venv.

A tiny checkout stands for this one: real interpreters, venvs, pip and uv, but wheels of a few
bytes, and no network.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
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
import zipfile

def build_editable(folder, *_):
    name = "dlperf_orch-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        info = "dlperf_orch-1.dist-info"
        about = "Metadata-Version: 2.1\\nName: dlperf-orch\\nVersion: 1\\nProvides-Extra: demo\\n"
        about += "Requires-Dist: torch==2.13.0; extra == 'demo'\\n"
        wheel.writestr(f"{info}/METADATA", about)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\ndlperf-orch = os:getcwd\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name

build_wheel = build_editable
"""


def write_wheel(folder: Path, name: str, version: str, programs: Mapping[str, str]) -> Path:
    """Write a wheel that contains programs and nothing else."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for program, text in programs.items():
            script = zipfile.ZipInfo(f"{name}-{version}.data/scripts/{program}")
            script.external_attr = 0o100755 << 16  # a regular file that may be run
            wheel.writestr(script, text)
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", about)
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
        locked = write_wheel(self.wheels, "uv", "1", {"uv": uv})
        (folder / "requirements.lock").write_text(f"./wheels/{locked.name}{hash_option(locked)}\n")
        write_wheel(self.wheels, "torch", "2.13.0", {})

    def make(self, *words: str, **own: str) -> "subprocess.CompletedProcess[str]":
        """Run make in it, with variables of its own."""
        return commands.run(("make", *words), cwd=self.folder, env={**self.environment(), **own})

    def environment(self) -> dict[str, str]:
        """Keep pip and uv from networks and from this machine's settings."""
        return {
            **{"PATH": f"{sys.base_prefix}/bin:{os.environ['PATH']}", "UV_OFFLINE": "1"},
            **{"HOME": str(self.folder)},
            **{"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"},
            **{"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_FIND_LINKS": self.wheels.as_uri()},
        }

    def list_packages(self) -> list[str]:
        """List what .venv contains."""
        words = ("list", "--format=freeze", "--exclude=pip", "--exclude=setuptools")
        python = self.folder / ".venv/bin/python"
        done = commands.run((python, "-m", "pip", *words), env=self.environment())
        return commands.checked(done).stdout.split()


def hash_option(path: Path) -> str:
    """Write a file's hash as requirements files have it."""
    done = commands.checked(commands.run((sys.executable, "-m", "pip", "hash", path)))
    return f" {done.stdout.split()[-1]}"


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Prepare one .venv, in a folder whose name has a space; each test leaves it complete."""
    checkout = Checkout(tmp_path_factory.mktemp("setup") / "my checkout")
    done = commands.checked(checkout.make("venv"))
    assert "0.2 GB to download" in done.stdout
    assert ".venv is complete" in done.stdout
    return checkout


def write_program(path: Path, text: str) -> str:
    """Write a shell script that stands for an interpreter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def move_python(folder: Path) -> str:
    """Put this interpreter's program and library into another folder: another Python."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    moved = folder / "bin" / version
    shutil.copy(Path(sys.base_prefix) / "bin" / version, moved)
    (folder / "lib" / version).symlink_to(Path(sys.base_prefix) / "lib" / version)
    return str(moved)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("echo Python 3.10.13", "Python 3.10.13"),
        ("echo Python 2.7.18", "Python 2.7.18"),
        ("echo pyenv: version missing >&2; exit 127", "pyenv: version missing"),
    ],
)
def test_an_unsuitable_python_is_named_before_anything_is_made(
    text: str, seen: str, tmp_path: Path
) -> None:
    """Each target says what the interpreter printed, and what is needed."""
    stub = write_program(tmp_path / "stub python", text)
    checkout = Checkout(tmp_path / "checkout")
    for target in ("venv", "demo", "lint"):
        done = checkout.make(target, f"PYTHON={stub}")
        assert done.returncode == 2
        assert f"make: {stub}: {seen}; needed Python 3.11 or later.\n" in done.stderr
        assert "make demo PYTHON=/path/to/python3.12" in done.stderr
    assert not (checkout.folder / ".venv").exists()


@pytest.mark.parametrize("name", ["no-such-python", "/no/such/python", "python3 -u"])
def test_a_python_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    """PYTHON is one path: words after it are no options."""
    done = Checkout(tmp_path / "checkout").make("venv", PYTHON=name)
    assert f"make: {name}: not found; needed Python 3.11 or later.\n" in done.stderr


def test_a_python_without_ensurepip_names_debians_package(tmp_path: Path) -> None:
    """Debian's python3 has venv and ensurepip in a package of its own."""
    hidden = tmp_path / "hidden" / "ensurepip.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ImportError\n")
    text = f'PYTHONPATH="{hidden.parent}" exec "{sys.executable}" "$@"'
    stub = write_program(tmp_path / "python", text)
    done = Checkout(tmp_path / "checkout").make("venv", PYTHON=stub)
    assert done.returncode == 2
    assert "without its modules venv and ensurepip" in done.stderr
    major, minor = sys.version_info[:2]
    assert f"apt-get install python{major}.{minor}-venv\n" in done.stderr


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
    [("interrupted", "it is incomplete"), ("no python", "its Python does not run")],
)
def test_a_venv_that_does_not_work_is_made_anew(
    fault: str, reason: str, complete: Checkout
) -> None:
    """A run that was interrupted, or an interpreter that was removed, such as by an upgrade."""
    venv = complete.folder / ".venv"
    (venv / "stale").touch()
    if fault == "interrupted":
        (venv / ".ready").unlink()
        (venv / "bin/pip").unlink()
    else:
        (venv / "bin/python").unlink()
        (venv / "bin/python").symlink_to("/no/such/python")
    done = commands.checked(complete.make("venv"))
    assert f".venv is made anew: {reason}.\n" in done.stdout
    assert not (venv / "stale").exists()
    assert complete.make("venv").stdout == ""


@pytest.mark.long
@pytest.mark.cluster
def test_another_python_makes_the_venv_anew(complete: Checkout, tmp_path: Path) -> None:
    """PYTHON's name may have spaces; without PYTHON that venv is then kept."""
    moved = move_python(tmp_path / "other python")
    done = commands.checked(complete.make("venv", PYTHON=moved))
    assert f".venv is made anew: it was made with another Python than {moved}.\n" in done.stdout
    assert complete.make("venv").stdout == ""
    words = (complete.folder / ".venv/bin/python", "-c", "import sys; print(sys.base_prefix)")
    assert commands.run(words).stdout == f"{tmp_path / 'other python'}\n"


@pytest.mark.long
@pytest.mark.cluster
def test_a_moved_checkout_gets_programs_of_its_own(complete: Checkout, tmp_path: Path) -> None:
    """Programs in .venv/bin name the folder that they were installed in."""
    shutil.copytree(complete.folder, tmp_path / "moved", symlinks=True)
    moved = Checkout.__new__(Checkout)
    moved.folder, moved.wheels = tmp_path / "moved", tmp_path / "moved" / "wheels"
    done = commands.checked(moved.make("venv"))
    assert ".venv is made anew: it was made in another folder.\n" in done.stdout
    program = (moved.folder / ".venv/bin/dlperf-orch").read_text()
    assert str(complete.folder) not in program
    assert moved.make("venv").stdout == ""


@pytest.mark.cluster
def test_a_changed_lock_is_installed_over_the_venv(complete: Checkout) -> None:
    """What is there already is not downloaded again."""
    (complete.folder / ".venv" / "kept").touch()
    more = write_wheel(complete.wheels, "more", "1", {})
    with (complete.folder / "requirements.lock").open("a") as lock:
        lock.write(f"./wheels/{more.name}{hash_option(more)}\n")
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
    write_wheel(cpu, "torch", "2.13.0+cpu", {})
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
