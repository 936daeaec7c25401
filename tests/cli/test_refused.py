"""Commands that are refused: exit code, error code and words, as text and as JSON."""

import shlex
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.bad_files import INVENTORY, PLAYBOOK
from tests.cli.here import Here
from tests.verbs.logs import EIGHT

# The code of an error, and a command line that has it.
_ROWS = (Path(__file__).parent / "refused.txt").read_text().splitlines()
REFUSED = {line: code for code, _, line in (row.partition(": ") for row in _ROWS)}
EXIT_CODES = {"IMAGE-NOT-PROVISIONED": 5}


@pytest.mark.parametrize("line", REFUSED)
def test_a_command_that_cannot_run_is_refused_and_writes_nothing(
    here: Here, line: str, snapshot: SnapshotAssertion
) -> None:
    """One document has what standard error has; without `--json` standard output is empty."""
    here.write("bad-lab.yaml", INVENTORY.replace("port: 22", "port: 0"))
    here.write("bad-pb.yaml", PLAYBOOK.replace("repeats: 5", "repeats: 0"))
    shutil.copy(EIGHT, here.folder / "EIGHT.log")
    before = sorted(here.folder.rglob("*"))
    exit_code = EXIT_CODES.get(REFUSED[line], 2)
    said = here.session(line)
    assert said == snapshot
    command, dashes, rest = line.partition(" -- ")
    ended = here(*shlex.split(f"{command} --json{dashes}{rest}"), code=exit_code)
    (error,) = ended.document["errors"]
    assert (ended.document["exit_code"], error["code"]) == (exit_code, REFUSED[line])
    if error["code"] != "CONFIG":
        fix, end = error["fix"], "" if error["fix"][-1] in ".?" else "."
        assert ended.err.splitlines()[-1] == (
            f"ERROR {error['code']}: {error['message'].removesuffix('.')}. Fix: {fix}{end}"
        )
    if not line.startswith("inspect"):  # which always print JSON
        assert said == f"$ dlperf-orch {line}\n{ended.err}[{exit_code}]\n"
    assert sorted(path for path in here.folder.rglob("*") if path.name != "debug.log") == before


@pytest.mark.parametrize("line", ["data", "logs --sweep"])
def test_an_unfinished_command_is_refused(
    here: Here, line: str, snapshot: SnapshotAssertion
) -> None:
    assert here.session(line) == snapshot
    assert here(*line.split(), code=2).out == ""


def test_json_after_two_dashes_is_an_argument(here: Here) -> None:
    assert here("status", "--nope", "--", "--json", code=2).out == ""


@pytest.mark.parametrize(
    ("images", "fix"),
    [("[reference-rn50]", "Fix: dlperf-orch provision queue."), ("[]", "Fix: write it under")],
)
def test_no_job_waits_for_an_image_that_nobody_prepared(here: Here, images: str, fix: str) -> None:
    here.write(
        "inventory/queue.yaml",
        'name: queue\nscheduler: slurm\nslurm: {time: "01:00:00", nodes: 2}\n'
        f"defaults: {{runtime: docker}}\nimages: {images}\n",
    )
    here.patch.setenv("PATH", "")
    ended = here("sweep", "smoke", "--inventory", "queue", code=5)
    assert "ERROR IMAGE-NOT-PROVISIONED: image reference-rn50 is not prepared" in ended.err
    assert fix in ended.err


def test_a_job_too_short_for_a_trial_is_refused(here: Here, snapshot: SnapshotAssertion) -> None:
    """By `check`, a dry run and a sweep; the job itself would find out only in its turn.

    A trial needs its time limit of 10 minutes, and 2.5 minutes around it: 00:12:30.
    """
    here.write(
        "inventory/queue.yaml",
        'name: queue\nscheduler: slurm\nslurm: {time: "00:12:29", nodes: 2}\n'
        "defaults: {runtime: process}\n",
    )
    here.patch.setenv("PATH", "")
    on = "sweep smoke --inventory queue"
    assert here.session("check queue smoke", f"{on} --dry-run", on) == snapshot
    here.edit("inventory/queue.yaml", "00:12:29", "00:12:30")
    here("check", "queue", "smoke", code=0)
