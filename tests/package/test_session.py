"""What the session of tests does with a failure: it shows logs, tries again, and names the test."""

import os
import sys
from pathlib import Path

import pytest

from tests import ROOT, commands

HOOKS = "from tests.session import pytest_runtest_makereport, pytest_terminal_summary\n"
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
FAILS = """\
def test_sweep_is_done(tmp_path):
    (tmp_path / "debug.log").write_text("first\\n" + "ran: docker ps\\n" * 99)
    assert not "done"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of tests with the hooks of this session."""
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(folder: Path, *words: str) -> tuple[int, str]:
    done = commands.run([sys.executable, "-B", "-m", *words], cwd=folder, env=ENV, timeout_s=120)
    return done.returncode, done.stdout


def test_a_failure_on_a_worker_shows_the_ends_of_its_logs(folder: Path) -> None:
    (folder / "test_it.py").write_text(FAILS)
    code, said = run(folder, "pytest", "-n", "1", "-p", "no:cacheprovider")
    assert code == 1, said
    assert "/debug.log -\nran: docker ps" in said
    assert "\nfirst\n" not in said
    assert "1 failed" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("count", "second", "code", "end"),
    [
        (1, "pass", 0, "NEEDED A SECOND TRY, and passed alone:\n  {}\n      assert 0\n"),
        (
            1,
            "1 / 0",
            1,
            "NEEDED A SECOND TRY, and FAILED AGAIN:\n  {}\n      assert 0\n",
        ),
        (6, "pass", 1, "6 tests failed; at most 5 are run once more, alone\n"),
    ],
    ids=("passes alone", "fails again", "too many"),
)
def test_the_end_of_the_output_names_who_needed_a_second_try(
    folder: Path, count: int, second: str, code: int, end: str
) -> None:
    names = [f"test_{number}" for number in range(count)]
    for body in ("assert 0", second):
        tests = "".join(f"def {name}():\n    {body}\n" for name in names)
        (folder / "test_it.py").write_text(tests)
        words = ("pytest", "-q") if body != second else ("tests.session", "once-more")
        found, said = run(folder, *words)
        assert found == (1 if body != second else code), said
    assert said.endswith(end.format("test_it.py::test_0"))
