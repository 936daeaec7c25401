"""When a gate opened is told by the supervisor's clock, whatever the `date` of its node can do."""

import os
import subprocess
import time
from importlib import resources
from pathlib import Path

import pytest

from tests.waiting import wait_for

SUPERVISE = str(resources.files("orchestrator.runtimes").joinpath("supervise.sh"))
# By what it does for -f: as GNU's; as uutils' from 0.7 on, for which all lines are of its start.
DATES = {
    "of each line": 'exec /bin/date "$@"',
    "of its start": 'at=$(/bin/date +%s.%N); while read -r _; do echo "$at"; done',
    "unknown": "exit 1",
}


@pytest.mark.parametrize("date", DATES)
def test_the_time_is_that_of_the_opening(date: str, tmp_path: Path) -> None:
    """Not that of the supervisor's arrival at its gate."""
    stub, folder = tmp_path / "bin" / "date", tmp_path / "task"
    stub.parent.mkdir()
    folder.mkdir()
    stub.write_text(f'#!/bin/sh\ncase $1 in -f) {DATES[date]};; esac\nexec /bin/date "$@"\n')
    stub.chmod(0o755)
    env = {"PATH": f"{stub.parent}:{os.environ['PATH']}"}
    words = ("sh", SUPERVISE, str(folder), "0", tmp_path.name, "60", "1", "1000000", "", "true")
    with subprocess.Popen(words, env=env, start_new_session=True) as supervisor:
        wait_for((folder / "r0.pid").exists, "the supervisor at its gate", 20)
        time.sleep(0.5)
        before = time.time()
        with (folder / "r0.gate").open("w") as gate:
            gate.write("go\n")
        assert supervisor.wait(20) == 0
    assert before - 0.1 < float((folder / "r0.go").read_text()) < time.time()
    assert {path.name for path in folder.iterdir()} == {
        *("r0.end", "r0.exit", "r0.go", "r0.log", "r0.pid")
    }
