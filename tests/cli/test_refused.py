"""Commands that are refused: exit code, error code and words, as text and as JSON."""

import shlex

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.bad_files import INVENTORY, PLAYBOOK
from tests.cli.here import Here
from tests.verbs.logs import EIGHT, LOGS

# A command line, and the code of its error.
REFUSED = {
    "nonsense": "USAGE",
    "swep toy": "USAGE",
    "--versoin": "USAGE",
    "data chek": "USAGE",
    "data check nothing --inventory two": "NO-DATASET",
    "data check gpt --inventory two": "NO-DATASET",
    "data prepare imagenet --inventory v100x4 --from downloads": "NO-SOURCE",
    "list nothing": "USAGE",
    "schema nothing": "USAGE",
    "published --framework nothing": "NO-PUBLISHED",
    "sweep": "USAGE",
    "sweep --repeat": "USAGE",
    "sweep toy --repeats x": "USAGE",
    "sweep toy --repeats 0": "USAGE",
    "sweep toy --max-fail -1": "USAGE",
    "sweep toy --requeue": "USAGE",
    "sweep smok": "NO-FILE",
    "sweep smok --dry-run": "NO-FILE",
    f"sweep {'n' * 300}": "NO-FILE",
    "sweep bad-pb.yaml --inventory local": "CONFIG",
    "sweep bad-pb.yaml --inventory local --dry-run": "CONFIG",
    "sweep smoke --inventory bad-lab.yaml": "CONFIG",
    "sweep smoke --inventory absent.yaml": "NO-FILE",
    "sweep toy --dry-run --case 1x1,9x9 --case '3x*'": "NO-CASE",
    "sweep toy --dry-run --case ''": "NO-CASE",
    "sweep rn50-amp --dry-run": "NO-INVENTORY",
    "sweep rn50-amp --inventory v100x4": "IMAGE-NOT-PROVISIONED",
    "provision bad-lab.yaml": "CONFIG",
    "provision bad-lab.yaml --dry-run": "CONFIG",
    "provision nowhere.yaml": "NO-FILE",
    "provision two --image toy": "NO-DOCKER",
    "provision two --nodes middle": "NO-NODE",
    "provision two --by speed": "USAGE",
    "bundle two out": "IMAGE-NOT-PROVISIONED",
    "trust nowhere": "NO-FILE",
    "init": "HOST",
    "init localhost gpu01": "HOST",
    "init localhost --name 'a b'": "HOST",
    "init localhost --force": "USAGE",
    "init h --port 65536": "USAGE",
    "init -- -oProxyCommand=x": "HOST",
    "init gpu01 ba/d@10.0.0.1": "HOST",
    "init --slurm main --user me": "HOST",
    "init --slurm main --nodes 'gpu*'": "HOST",
    "init localhost -o inventory/two.yaml": "EXISTS",
    "status": "NO-SWEEP",
    "status --nope": "USAGE",
    "status --every 0.4": "USAGE",
    "logs": "NO-SWEEP",
    "logs --rank -1": "USAGE",
    "stop": "NO-SWEEP",
    "stop --on two": "USAGE",
    "stop --state ''": "USAGE",
    "collect": "NO-SWEEP",
    "collect gone": "NO-SWEEP",
    "collect --rule best": "USAGE",
    "collect --logs .": "USAGE",
    "collect gone --logs . --workload toy": "USAGE",
    "collect --logs . --workload none": "NO-WORKLOAD",
    "collect --logs . --workload toy --lang zh": "USAGE",
    "collect --logs . --workload toy --strict": "USAGE",
    "collect --logs . --workload toy --window 9": "USAGE",
    "collect --logs . --workload toy --window 9:3": "USAGE",
    "compare a b --bound x": "USAGE",
    "compare a b --bound=-3%": "USAGE",
    "compare a b --bound 100%": "USAGE",
    "compare a b --repeats 2": "USAGE",
    "inspect log": "USAGE",
    "inspect log gone --workload toy": "READ",
    "inspect log . --workload toy": "READ",
    "inspect log /proc/self/mem --workload toy": "READ",
    f"inspect log {EIGHT} --workload ngc_pytorch_rn51": "NO-WORKLOAD",
    f"inspect log {EIGHT} --workload toy --window 60:20": "USAGE",
    f"inspect log {EIGHT} --workload toy --global-batch-size 0": "USAGE",
    "inspect topology gone": "READ",
    f"inspect ibstat {LOGS}": "READ",
    "inspect gpu gone": "READ",
}
EXIT_CODES = {"IMAGE-NOT-PROVISIONED": 5}


@pytest.mark.parametrize("line", REFUSED)
def test_a_command_that_cannot_run_is_refused_and_writes_nothing(
    here: Here, line: str, snapshot: SnapshotAssertion
) -> None:
    """One document has what standard error has; without `--json` standard output is empty."""
    here.write("bad-lab.yaml", INVENTORY.replace("port: 22", "port: 0"))
    here.write("bad-pb.yaml", PLAYBOOK.replace("repeats: 5", "repeats: 0"))
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
