"""What a run of tests says of a test that failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT, commands

HOOK = "from tests.session import pytest_runtest_makereport, pytest_terminal_summary\n"
FAILS = """\
def test_sweep_is_done(tmp_path):
    state = tmp_path / ".dlperf"
    (state / "attempts/1n1g_1/a1").mkdir(parents=True)
    (state / "debug.log").write_text("first\\n" + "ran: docker ps\\n" * 99)
    (state / "attempts/1n1g_1/a1/r0.log").write_text("CUDA error: out of memory\\n")
    assert not "done"
"""


def test_a_failure_names_its_test_and_shows_its_logs(tmp_path: Path) -> None:
    """Of a test that a worker ran too; only the end of a long log, and the summary comes last."""
    (tmp_path / "conftest.py").write_text(HOOK)
    (tmp_path / "test_it.py").write_text(FAILS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = commands.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout_s=60,
    )
    assert done.returncode == 1, done.stderr
    assert "FAILED test_it.py::test_sweep_is_done" in done.stdout
    assert "/.dlperf/debug.log -" in done.stdout
    assert "ran: docker ps" in done.stdout
    assert "\nfirst\n" not in done.stdout
    assert "CUDA error: out of memory" in done.stdout
    assert "1 failed" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("count", "second", "code", "words"),
    [
        (1, "assert Path('first').exists()", 0, "NEEDED A SECOND TRY, and passed alone"),
        (1, "assert not Path('first').exists()", 1, "NEEDED A SECOND TRY, and FAILED AGAIN"),
        (6, "", 1, "6 tests failed; at most 5 are run once more"),
    ],
    ids=("passes alone", "fails again", "too many"),
)
def test_failed_tests_are_run_once_more_by_name(
    tmp_path: Path, count: int, second: str, code: int, words: str
) -> None:
    """Only a few, and what fails again is a failure; the end shows why each failed first."""
    (tmp_path / "conftest.py").write_text(HOOK)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    test = tmp_path / "test_it.py"
    names = [f"test_{number}" for number in range(count)]
    test.write_text("".join(f"def {name}(): assert 0\n" for name in names))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.run(
        (sys.executable, "-m", "pytest", "-q"),
        cwd=tmp_path,
        env=env,
        capture_output=True,
        timeout=60,
    )
    assert first.returncode == 1
    (tmp_path / "first").touch()
    rewritten = "".join(f"def {name}():\n    {second or 'pass'}\n" for name in names)
    test.write_text(f"from pathlib import Path\n{rewritten}")
    again = commands.run(
        [sys.executable, "-B", "-m", "tests.session", "once-more"],
        cwd=tmp_path,
        env=env,
        timeout_s=60,
    )
    assert again.returncode == code, again.stdout
    assert words in again.stdout
    if count == 1:
        assert again.stdout.endswith("  test_it.py::test_0\n      E   assert 0\n")
