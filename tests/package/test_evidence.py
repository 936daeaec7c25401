"""What a run of tests says of a test that failed."""

import os
import subprocess
import sys
from pathlib import Path

from tests import ROOT

HOOK = "from tests.evidence import pytest_runtest_makereport as pytest_runtest_makereport\n"
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
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "."),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "FAILED test_it.py::test_sweep_is_done" in done.stdout
    assert "/.dlperf/debug.log -" in done.stdout
    assert "ran: docker ps" in done.stdout
    assert "\nfirst\n" not in done.stdout
    assert "CUDA error: out of memory" in done.stdout
    assert "1 failed" in done.stdout.splitlines()[-1]
