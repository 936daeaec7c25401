"""What a release is made of: archives with the same bytes, a bill of materials, one version."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from orchestrator import __version__
from tests import ROOT
from tests.package import sbom

PARTS = ("orchestrator", "images", "inventory", "playbooks", "docs")
FILES = "README.md LICENSE CHANGELOG.md pyproject.toml dlperf-orch.cdx.json .gitignore"


def checkout(folder: Path, mode: int, mtime_s: int) -> Path:
    """A copy of what is packaged, with other rights and times, and what Python leaves about."""
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES.split():
        shutil.copy(ROOT / name, folder / name)
    for path in folder.rglob("*"):
        path.chmod(mode | 0o100 if path.is_dir() else mode)
        os.utime(path, (mtime_s, mtime_s))
    (folder / "images" / "reference-rn50" / "__pycache__").mkdir(mode=0o700)
    (folder / "images" / "reference-rn50" / "__pycache__" / "train.pyc").write_bytes(b"\0")
    return folder


def built(source: Path, out: Path) -> dict[str, str]:
    """sha256 of wheel and sdist by name, as `python -m build` makes them."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1763856000"}
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(words, check=True, capture_output=True, timeout=300, env=env)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


@pytest.mark.cluster
def test_two_builds_give_the_same_bytes_and_carry_the_bill(tmp_path: Path) -> None:
    """Whatever rights and times the files have; the wheel that an sdist gives is the same too."""
    one = built(checkout(tmp_path / "a", 0o644, 1_500_000_000), tmp_path / "one")
    two = built(checkout(tmp_path / "b", 0o600, 1_700_000_000), tmp_path / "two")
    assert one == two
    names = sorted(one)
    assert names == [
        f"dlperf_orch-{__version__}-py3-none-any.whl",
        f"dlperf_orch-{__version__}.tar.gz",
    ]
    with zipfile.ZipFile(tmp_path / "one" / names[0]) as wheel:
        inside = f"dlperf_orch-{__version__}.dist-info/sboms/dlperf-orch.cdx.json"
        assert wheel.read(inside).decode() == sbom.FILE.read_text()
        assert not [name for name in wheel.namelist() if "__pycache__" in name]
    with tarfile.open(tmp_path / "one" / names[1]) as sdist:
        assert f"dlperf_orch-{__version__}/dlperf-orch.cdx.json" in sdist.getnames()


def test_the_bill_is_what_the_lock_pins() -> None:
    """Every package that runs is in it with its version and hashes; `make lock` writes it."""
    assert sbom.FILE.read_text() == sbom.text(), "python -m tests.package.sbom"
    bill = json.loads(sbom.FILE.read_text())
    named = {part["name"]: part["version"] for part in bill["components"]}
    locked = sbom.pins()
    assert {name: locked[name][0] for name in named} == named
    assert {"paramiko", "pydantic", "pyyaml", "typer", "cryptography"} <= named.keys()
    assert not {"pytest", "ruff", "mypy"} & named.keys()
    assert all(part["properties"] for part in bill["components"])
    refs = {part["ref"] for part in bill["dependencies"]}
    assert {ref for part in bill["dependencies"] for ref in part["dependsOn"]} <= refs


def test_the_lock_pins_extras_where_they_are_needed() -> None:
    """Else pip takes the newest release for `coverage[toml]`, and refuses it: it has no hash."""
    text = (ROOT / "requirements.lock").read_text()
    needed = [
        f"\n{requirement.name}[{','.join(sorted(requirement.extras))}]=="
        for name in sbom.pins()
        for requirement in map(Requirement, distribution(name).requires or ())
        if requirement.extras
        and (requirement.marker is None or requirement.marker.evaluate({"extra": ""}))
    ]
    assert needed
    assert [pin for pin in needed if pin not in text] == []


def test_lower_bounds_are_the_versions_that_make_lowest_installs() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / "tests/lowest.txt").read_text().splitlines()
    assert declared == [line.replace("==", ">=") for line in lines if not line.startswith("#")]


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches those wrongly: python/cpython#106052."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")
    sources = (ROOT / "orchestrator").rglob("*.py")
    assert not [path for path in sources if possessive.search(path.read_text())]


def test_the_version_stands_in_one_place() -> None:
    """pyproject takes it from the package; the newest section of the changelog is its."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in pyproject
    assert 'path = "orchestrator/__init__.py"' in pyproject
    assert f"\n## [{__version__}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_the_controllers_image_is_made_of_what_is_there() -> None:
    """Each file that its Dockerfile copies; it runs as a user of its own, and pins by the lock."""
    text = (ROOT / "Dockerfile").read_text()
    for line in text.splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *sources, _ = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources), line
    assert "requirements.lock" in text
    assert "\nUSER " in text
    assert 'ENTRYPOINT ["dlperf-orch"]' in text
