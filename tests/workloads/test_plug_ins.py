"""Workloads of other distributions: a mistake in one is named, and concerns no other one."""

import shutil
import sys
from pathlib import Path

import pytest

from orchestrator import errors, workloads
from orchestrator.model.plan import Mount
from tests import ROOT, TESTS, commands
from tests.workloads.test_commands import case, place

PROGRAM = (sys.executable, "-c", "from orchestrator.cli import main; main()")
TOY = ROOT / "tests/toy/toy_workload.py"
LOG = ROOT / "tests/samples/logs-pytorch-rn50"
ODD = TOY.read_text().partition("\ndef last_speaks")[0].replace('name="toy"', 'name="odd"')
FORM = (
    "from dataclasses import replace\nfrom orchestrator import logs\nF = replace(\nlogs.DLLOGGER,"
)
FORM = f"{FORM}\nstep=rb'iteration (?P<iteration>[0-9]+)',\n)\n"


def install(folder: Path, source: str) -> dict[str, str]:
    """Install a distribution with one workload, ``odd``; return an environment with it."""
    (folder / "odd_workload.py").write_text(source)
    installed = folder / "odd-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    entry = f"[{workloads.GROUP}]\nodd = odd_workload:WORKLOAD\n"
    (installed / "entry_points.txt").write_text(entry)
    return commands.environment(PYTHONPATH=f"{folder}:{ROOT}")


def test_an_installed_distribution_adds_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry point is all that it takes."""
    monkeypatch.syspath_prepend(TESTS / "toy")
    assert "toy" in workloads.names()
    found = workloads.require("toy")
    assert found.title == "A toy of the tests"
    own = found.mount(case(), place(case()).seats[0])
    assert own[0] == Mount("/ssd/imagenet", "/data/imagenet", read_only=True)
    assert workloads.require("reference_rn50").name == "reference_rn50"
    assert (workloads.module("toy"), workloads.module("all_reduce")) == (
        "toy_workload",
        "orchestrator.workloads.all_reduce",
    )


@pytest.mark.parametrize(
    ("source", "line", "seen"),
    [
        ("import os\nimport torhc\n", 2, "ModuleNotFoundError: No module named 'torhc'"),
        ("WORKLOAD = (\n", 0, "SyntaxError: '(' was never closed (odd_workload.py, line 1)"),
        ("\n\nWORKLOAD = WORKLAOD\n", 3, "NameError: name 'WORKLAOD' is not defined"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError: Expecting property name"),
        ("raise SystemExit('no GPU')\n", 1, "SystemExit: no GPU"),
        ("WORKLOAD = 'not one'\n", 0, "odd_workload:WORKLOAD is a str; needed a Workload"),
        ("OTHER = 1\n", 0, "module 'odd_workload' has no attribute 'WORKLOAD'"),
        (ODD.replace('name="odd"', 'name="even"'), 0, "is named even; needed odd"),
        (ODD.replace("params=Params", "params=dict"), 0, "params are no orchestrator.model.text"),
        (ODD.replace("params=Params", "params={}"), 0, "params are no orchestrator.model.text"),
        (FORM, 3, "no group (?P<rate>...)"),
    ],
)
def test_a_mistake_in_a_plug_in_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, line: int, seen: str
) -> None:
    install(tmp_path, source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_workload", raising=False)
    with pytest.raises(errors.LocalError, match="cannot be loaded") as refused:
        workloads.find("odd")
    monkeypatch.delitem(sys.modules, "odd_workload", raising=False)
    cause = refused.value.cause
    assert "workload odd (odd, odd_workload:WORKLOAD) cannot be loaded" in cause
    assert seen in cause
    assert (f"{tmp_path / 'odd_workload.py'}:{line}: " in cause) == (line > 0)


def test_only_the_command_that_needs_a_broken_plug_in_fails(tmp_path: Path) -> None:
    """All others list, check, and read logs as before; a playbook of it has a mistake at a line."""
    env = install(tmp_path, "import torhc\n")
    (tmp_path / "odd.yaml").write_text(
        (ROOT / "playbooks/smoke.yaml").read_text().replace("reference_rn50", "odd", 1)
    )
    where = f"{tmp_path / 'odd_workload.py'}:1: ModuleNotFoundError"

    def run(*words: str, code: int) -> str:
        done = commands.run([*PROGRAM, *words], cwd=tmp_path, env=env)
        assert done.returncode == code, done.stderr
        assert "BUG" not in done.stderr
        return done.stdout + done.stderr

    failed = run("inspect", "log", str(LOG / "gone.log"), "--workload", "odd", code=6)
    assert "ERROR PLUG-IN: workload odd (odd, odd_workload:WORKLOAD) cannot be" in failed
    assert where in failed
    listed = run("list", "workloads", code=0)
    assert where in listed
    assert "oneflow_gpt" in listed
    checked = run("check", "odd.yaml", "smoke", "local", code=2)
    assert "odd.yaml:5:11: workload: workload odd (odd, odd_workload:WORKLOAD)" in checked
    assert where in checked
    assert "smoke.yaml: a valid playbook" in checked
    run("collect", "--logs", str(LOG), "--workload", "ngc_pytorch_rn50", code=3)


def test_a_plug_in_that_fails_at_work_is_named_with_its_line(tmp_path: Path) -> None:
    """It is no bug of this program."""
    failing = 'read=lambda _chunks, _window: {}["step"],  # '
    env = install(tmp_path, ODD.replace("read=", failing))
    number = next(n for n, it in enumerate(ODD.splitlines(), 1) if "read=" in it)
    shutil.copytree(LOG, tmp_path / "logs")
    words = ("collect", "--logs", "logs", "--workload", "odd")
    failed = commands.run([*PROGRAM, *words], cwd=tmp_path, env=env)
    assert failed.returncode == 6
    where = f"{tmp_path / 'odd_workload.py'}:{number}: KeyError: 'step'"
    assert f"ERROR PLUG-IN: workload odd failed: {where}." in failed.stderr


def test_an_error_is_blamed_on_the_plug_in_whose_code_raised_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its module, whatever library raised it there; an error of this program is nobody's."""
    install(tmp_path, f"{ODD}\n\ndef fail():\n    import json\n    json.loads('step')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_workload", raising=False)
    assert workloads.find("odd") is not None
    fail = sys.modules["odd_workload"].fail
    with pytest.raises(ValueError, match="Expecting value") as raised:
        fail()
    monkeypatch.delitem(sys.modules, "odd_workload")
    blamed = workloads.blame(raised.value)
    assert blamed is not None
    assert "workload odd failed: " in blamed.cause
    assert workloads.blame(ValueError("ours")) is None
