"""Workloads of other distributions: a mistake in one is named, and concerns no other one."""

import shutil
import sys
from pathlib import Path

import pytest

from orchestrator import errors, workloads
from tests import ROOT, commands

PROGRAM = (sys.executable, "-c", "from orchestrator.cli import main; main()")
TOY = ROOT / "tests/toy/toy_workload.py"
LOG = ROOT / "tests/samples/logs-pytorch-rn50"


def install(folder: Path, source: str) -> dict[str, str]:
    """Install a distribution with one workload, ``odd``; return an environment with it."""
    (folder / "odd_workload.py").write_text(source)
    installed = folder / "odd-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    entry = f"[{workloads.GROUP}]\nodd = odd_workload:WORKLOAD\n"
    (installed / "entry_points.txt").write_text(entry)
    return commands.environment(PYTHONPATH=f"{folder}:{ROOT}")


ODD = TOY.read_text().partition("\ndef last_speaks")[0].replace('name="toy"', 'name="odd"')
FORM = """
from dataclasses import replace
from orchestrator import logs

FORM = replace(
    logs.DLLOGGER,
    step={step},
)
"""


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("import os\nimport torhc\n", 2, "ModuleNotFoundError: No module named 'torhc'"),
        ("WORKLOAD = (\n", 0, "SyntaxError: '(' was never closed (odd_workload.py, line 1)"),
        ("\n\nWORKLOAD = WORKLAOD\n", 3, "NameError: name 'WORKLAOD' is not defined"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError: Expecting property name"),
        ("raise SystemExit('no GPU')\n", 1, "SystemExit: no GPU"),
        ("WORKLOAD = 'not one'\n", 0, "odd_workload:WORKLOAD is a str; needed a Workload"),
        ("OTHER = 1\n", 0, "module 'odd_workload' has no attribute 'WORKLOAD'"),
        (TOY.read_text().partition("\ndef last_speaks")[0], 0, "is named toy; needed odd"),
        (FORM.format(step="rb'iteration (?P<iteration>[0-9]+)'"), 5, "no group (?P<rate>...)"),
        (FORM.format(step="rb'(?P<iteration>1)(?P<rate>2)(?P<clok>3)'"), 5, "a group 'clok'"),
        (FORM.format(step="rb'(?P<iteration>1)(?P<rate>2'"), 5, "is no pattern: missing )"),
    ],
)
def test_a_mistake_in_a_plug_in_is_named_with_its_line(
    tmp_path: Path, source: str, line: int, said: str
) -> None:
    """By the command that needs it; all others list, check, and read logs as before."""
    env = install(tmp_path, source)
    words = ("inspect", "log", str(LOG / "gone.log"), "--workload")
    failed = commands.run([*PROGRAM, *words, "odd"], cwd=tmp_path, env=env)
    assert failed.returncode == 6, failed.stderr
    assert "ERROR PLUG-IN: workload odd (odd, odd_workload:WORKLOAD) cannot be" in failed.stderr
    where = f"{tmp_path / 'odd_workload.py'}:{line}: " if line else ""
    assert f"{where}" in failed.stderr
    assert said in failed.stderr
    listed = commands.run([*PROGRAM, "list", "workloads"], cwd=tmp_path, env=env)
    assert listed.returncode == 0
    assert said in listed.stderr
    assert "oneflow_gpt" in listed.stdout
    assert "BUG" not in failed.stderr + listed.stderr


def test_files_that_name_no_broken_plug_in_are_checked(tmp_path: Path) -> None:
    """A playbook of the broken workload has a mistake at its line; other files are judged."""
    env = install(tmp_path, "import torhc\n")
    playbook = (ROOT / "playbooks/smoke.yaml").read_text()
    (tmp_path / "odd.yaml").write_text(playbook.replace("reference_rn50", "odd", 1))
    words = ("check", "odd.yaml", "smoke", "local")
    checked = commands.run([*PROGRAM, *words], cwd=tmp_path, env=env)
    assert checked.returncode == 2, checked.stderr
    assert "odd.yaml:5:11: workload: workload odd (odd, odd_workload:WORKLOAD)" in checked.stderr
    assert f"{tmp_path / 'odd_workload.py'}:1: ModuleNotFoundError" in checked.stderr
    assert "smoke.yaml: a valid playbook" in checked.stdout
    collect = ("collect", "--logs", str(LOG), "--workload", "ngc_pytorch_rn50")
    collected = commands.run([*PROGRAM, *collect], cwd=tmp_path, env=env)
    assert collected.returncode in (0, 3), collected.stderr


def test_a_plug_in_that_fails_at_work_is_named_too(tmp_path: Path) -> None:
    """With the line that failed and the place of the traceback; it is no bug of this program."""
    failing = 'read=lambda _chunks, _window: {}["step"],  # '
    env = install(tmp_path, ODD.replace("read=", failing))
    number = next(n for n, it in enumerate(ODD.splitlines(), 1) if "read=" in it)
    logs = tmp_path / "logs"
    shutil.copytree(LOG, logs)
    words = ("collect", "--logs", "logs", "--workload", "odd")
    failed = commands.run([*PROGRAM, *words], cwd=tmp_path, env=env)
    assert failed.returncode == 6
    where = f"{tmp_path / 'odd_workload.py'}:{number}: KeyError: 'step'"
    assert f"ERROR PLUG-IN: workload odd failed: {where}." in failed.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os\nimport torhc\n", "odd_workload.py:2: ModuleNotFoundError"),
        ("WORKLOAD = (\n", "(odd_workload.py, line 1)"),
        ("OTHER = 1\n", "AttributeError: module 'odd_workload' has no attribute"),
        ("WORKLOAD = 'not one'\n", "is a str; needed a Workload"),
        (ODD.replace('name="odd"', 'name="even"'), "is named even; needed odd"),
        (ODD.replace("params=Params", "params=dict"), "its params are no orchestrator.model.text"),
        (ODD.replace("params=Params", "params={}"), "its params are no orchestrator.model.text"),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    """Whoever asks for the workload gets PLUG-IN; a working one is found."""
    install(tmp_path, source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_workload", raising=False)
    with pytest.raises(errors.LocalError, match="cannot be loaded") as refused:
        workloads.find("odd")
    monkeypatch.delitem(sys.modules, "odd_workload", raising=False)
    assert said in refused.value.cause


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
