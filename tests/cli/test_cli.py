"""The command line as a person and a script meet it: help, JSON, pipes, exit codes, messages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import app
from tests import ROOT, SAMPLES, commands
from tests.conftest import PROGRAM, Place


def test_help_names_every_command(place: Place) -> None:
    """`--help` and no arguments at all both say what there is."""
    for words in (("--help",), ()):
        done = place.run(*words)
        said = done.stdout + done.stderr
        for command in (
            "provision",
            "sweep",
            "collect",
            "check",
            "schema",
            "list",
            "inspect",
            "published",
        ):
            assert f"\n  {command}" in said


@pytest.mark.parametrize("words", [("status",), ("logs",), ("collect",)])
def test_an_argument_that_may_be_left_out_has_one_pair_of_brackets(
    place: Place, words: tuple[str, ...]
) -> None:
    """In the usage of its command."""
    usage = place.run(*words, "--help").stdout.splitlines()[0]
    assert usage.endswith((" [SWEEP]", " [TRIAL]")), usage


def test_nothing_to_trust_is_said(place: Place) -> None:
    """Of nodes that no SSH reaches, instead of no word at all."""
    done = place.run("trust", "local")
    assert (done.returncode, done.stdout) == (0, "no node of local is reached by SSH\n")


def test_version_is_the_packages(place: Place) -> None:
    """`--version` prints what the package says of itself."""
    from orchestrator import __version__

    assert place.run("--version").stdout == f"dlperf-orch {__version__}\n"


@pytest.mark.parametrize(
    ("words", "code", "needed"),
    [
        (("sweep", "smok", "--dry-run"), 2, "did you mean 'smoke'?"),
        (("sweep", "toy", "--case", "9x*", "--dry-run"), 2, "no case matches '9x*'; there are 1x1"),
        (("collect",), 2, "no sweep in"),
        (("collect", "gone"), 2, "no sweep 'gone'"),
        (("collect", "--logs", "."), 2, "--workload NAME belong together"),
        (("collect", "--logs", ".", "--workload", "none"), 2, "there is no workload 'none'"),
        (("collect", "--logs", ".", "--workload", "toy", "--window", "9"), 2, "first:last"),
        (("collect", "--logs", ".", "--workload", "toy", "--window", "9:3"), 2, "before the last"),
        (("schema", "nothing"), 2, "'nothing' is not one of 'inventory'"),
        (("list", "nothing"), 2, "'nothing' is not one of 'playbooks'"),
        (("provision", "nowhere.yaml"), 2, "there is no inventory 'nowhere.yaml'"),
        (("provision", "two", "--image", "toy"), 2, "no node of two runs containers"),
        (("provision", "two", "--nodes", "middle"), 2, "there are left, right"),
        (("sweep", "rn50-amp", "--inventory", "v100x4"), 5, "ERROR IMAGE-NOT-PROVISIONED"),
        (("sweep", "toy", "--requeue"), 2, "is reached without Slurm"),
        (("status",), 2, "no sweep in"),
        (("logs",), 2, "no sweep in"),
        (("stop",), 2, "no sweep in"),
        (("sweep", "rn50-amp", "--dry-run"), 2, "no inventory is named"),
        (("nonsense",), 2, "No such command"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_go(
    place: Place, words: tuple[str, ...], code: int, needed: str
) -> None:
    """The exit code, the reason, no traceback, and no state folder for bad input."""
    done = place.must(*words, code=code)
    assert needed in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(place.state.glob("sweeps/*"))


@pytest.mark.parametrize(
    ("images", "fix"),
    [("[reference-rn50]", "Fix: dlperf-orch provision queue."), ("[]", "Fix: write it under")],
)
def test_no_job_waits_for_an_image_that_nobody_prepared(
    place: Place, images: str, fix: str
) -> None:
    """`sweep` refuses before it submits, and `check` says what `images:` lacks."""
    (place.folder / "inventory" / "queue.yaml").write_text(
        'name: queue\nscheduler: slurm\nslurm: {time: "01:00:00", nodes: 2}\n'
        f"defaults: {{runtime: docker}}\nimages: {images}\n"
    )
    done = place.must("sweep", "smoke", "--inventory", "queue", PATH="", code=5)
    assert "ERROR IMAGE-NOT-PROVISIONED: image reference-rn50 is not prepared" in done.stderr
    assert fix in done.stderr
    smoke = str(ROOT / "playbooks" / "smoke.yaml")
    said = place.run("check", "inventory/queue.yaml", smoke).stderr
    assert ("its image is not prepared there" in said) == (images == "[]")


def test_a_job_too_short_for_a_trial_is_refused_where_it_is_asked_for(place: Place) -> None:
    """By `check`, `sweep --dry-run` and `sweep` on a login node, with what to write.

    A job would find it out only after it had waited for its nodes.
    """
    path = place.folder / "inventory" / "queue.yaml"
    path.write_text(
        'name: queue\nscheduler: slurm\nslurm: {time: "00:12:29", nodes: 2}\n'
        "defaults: {runtime: process}\n"
    )
    smoke = str(ROOT / "playbooks" / "smoke.yaml")
    seen = "a job has 00:12:29; needed 00:12:30 for one trial: 00:10:00 by method.time_limit_s"
    fix = 'write slurm.time: "00:13:00" or more, or method.time_limit_s: 599 or less'
    checked = place.must("check", "inventory/queue.yaml", smoke, code=2).stderr
    assert "playbooks/smoke.yaml:9:" in checked
    assert f"method.time_limit_s: WALLTIME with inventory/queue.yaml: {seen}" in checked
    assert fix in checked
    for words in (("--dry-run",), ()):
        done = place.must("sweep", "smoke", "--inventory", "queue", *words, PATH="", code=5)
        assert f"ERROR WALLTIME: {seen}" in done.stderr
        assert f"Fix: {fix}." in done.stderr
    path.write_text(path.read_text().replace("00:12:29", "00:12:30"))
    place.must("check", "inventory/queue.yaml", smoke)


def test_json_is_the_only_thing_on_standard_output(place: Place) -> None:
    """Errors too are one JSON document, with code and exit code; words go to standard error."""
    done = place.run("sweep", "smok", "--json")
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == 2
    assert document["errors"][0]["code"] == "NO-FILE"
    assert "ERROR NO-FILE" in done.stderr


def test_provision_of_this_machine_says_what_it_saw(place: Place) -> None:
    """Facts of both nodes are in the site file; what is not declared was not asked for."""
    site = place.json("provision", "two")["site"]
    assert site["nodes"]["left"]["host"]["kernel"].endswith(os.uname().release)
    assert site["nodes"]["right"]["gpu"] is None
    kept = json.loads((place.state / "sites" / "two.json").read_text())
    assert kept == site


def test_provision_finds_what_the_inventory_promises_and_the_node_lacks(place: Place) -> None:
    """A missing interface is an error finding; exit 5, and a sweep there starts nothing."""
    path = place.folder / "inventory" / "two.yaml"
    path.write_text(path.read_text().replace("process}", "process, interface: ib77}"))
    done = place.must("provision", "two", code=5)
    assert "INTERFACE-MISSING" in done.stdout
    swept = place.must("sweep", "toy", code=5)
    assert "ERROR INTERFACE-MISSING node=left phase=preflight" in swept.stderr
    assert not list(place.state.glob("sweeps/*"))


def test_declared_gpus_are_asked_for(place: Place) -> None:
    """Without a driver that answers, the node is unfit and the reason is the command's own."""
    path = place.folder / "inventory" / "two.yaml"
    path.write_text(path.read_text().replace("process}", "process, gpus: {count: 1}}"))
    stub = place.folder / "bin"
    stub.mkdir()
    # A stub that replays what nvidia-smi prints where there is no driver.
    (stub / "nvidia-smi").write_text(
        "#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not communicate with the"
        " NVIDIA driver.'\nexit 9\n"
    )
    (stub / "nvidia-smi").chmod(0o755)
    env = {**place.env(), "PATH": f"{stub}:{os.environ['PATH']}"}
    done = commands.run([*PROGRAM, "provision", "two"], cwd=place.folder, env=env)
    assert done.returncode == 5
    assert "GPU-NO-DRIVER" in done.stdout
    site = (place.state / "sites" / "two.json").read_text()
    assert "could not communicate with the NVIDIA driver" in site


def test_gpus_that_answer_are_checked_against_the_inventory(place: Place) -> None:
    """Recorded output of a T4: one GPU where two are declared, of another model, and busy."""
    sample = SAMPLES / "nvidia-smi" / "telegraf_tesla-t4.xml"
    path = place.folder / "inventory" / "two.yaml"
    gpus = "process, gpus: {count: 2, model: Tesla V100-SXM2-16GB}}"
    path.write_text(path.read_text().replace("process}", gpus))
    stub = place.folder / "bin"
    stub.mkdir()
    (stub / "nvidia-smi").write_text(f"#!/bin/sh\ncat {sample}\n")  # replays a recording
    (stub / "nvidia-smi").chmod(0o755)
    done = commands.run(
        [*PROGRAM, "provision", "two", "--json"],
        cwd=place.folder,
        env={**place.env(), "PATH": f"{stub}:{os.environ['PATH']}"},
    )
    assert done.returncode == 5
    codes = {finding["code"] for finding in json.loads(done.stdout)["site"]["findings"]}
    assert {"GPU-COUNT", "GPU-MODEL", "GPU-BUSY", "GPU-PERSISTENCE"} <= codes


def test_output_to_a_closed_pipe_ends_without_a_traceback(place: Place) -> None:
    """As in `dlperf-orch schema inventory | head -1`."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [*PROGRAM, "schema", "inventory"],
        cwd=place.folder,
        env=place.env(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(reader)
    os.close(writer)
    _, said = process.communicate(timeout=30)
    assert "Traceback" not in said
    assert process.returncode in (0, 141)


def test_a_terminal_without_utf8_gets_plain_tables(place: Place) -> None:
    """No traceback and no box characters where the locale cannot show them."""
    env = {**place.env(), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*PROGRAM, "list", "playbooks"],
        cwd=place.folder,
        env=env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"rn50-amp" in done.stdout
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("description: Mine\nworkload: 7\n", "Mine"),
        ("workload: toy\n", ""),
        ("description:\n", "?"),
        ("description: [a, b]\n", "?"),
        ("- a\n- list\n", "?"),
        ("description: 'torn\n", "?"),
    ],
)
def test_a_list_tells_what_a_file_says_of_itself_also_of_a_bad_one(
    place: Place, text: str, description: str
) -> None:
    """One bad playbook of this place takes no other one out of the list; `check` judges it."""
    (place.folder / "playbooks").mkdir(exist_ok=True)
    (place.folder / "playbooks" / "mine.yaml").write_text(text)
    rows = {row["name"]: row for row in json.loads(place.run("list", "playbooks", "--json").stdout)}
    assert rows["mine"]["description"] == description
    assert rows["smoke"]["description"].startswith("Real distributed training")


def test_list_shows_what_lies_here_before_what_is_shipped(place: Place) -> None:
    """The toy playbook of this place beside the shipped ones; sweeps once there are some."""
    rows = json.loads(place.run("list", "playbooks", "--json").stdout)
    assert {"toy", "smoke", "rn50-fp32"} <= {row["name"] for row in rows}
    assert all(row["description"] for row in rows if row["file"].startswith("/"))
    assert json.loads(place.run("list", "sweeps", "--json").stdout) == []
    found = json.loads(place.run("list", "workloads", "--json").stdout)
    assert {row["workload"] for row in found} == {
        *("all_reduce", "ngc_pytorch_rn50", "ngc_tensorflow_rn50"),
        *("oneflow_rn50", "oneflow_bert", "oneflow_gpt"),
        *("reference_rn50", "toy", "toy_fabric", "toy_last", "toy_plain"),
    }


def test_a_file_that_happens_to_have_the_name_hides_no_playbook(place: Place) -> None:
    """As one into which somebody wrote what a command printed; a path still means that file."""
    (place.folder / "toy").write_text("sweep toy-1 goes on\n")
    place.must("sweep", "toy", "--dry-run")
    place.must("sweep", "./toy", "--dry-run", code=2)


def test_check_takes_names_as_other_commands_do(place: Place) -> None:
    """Of what lies here and of what ships; one that nobody knows is a file that is not there."""
    done = place.must("check", "toy", "two", "h100x2", "ngc-pytorch-20.03")
    kinds = [line.rpartition(" ")[2] for line in done.stdout.splitlines() if "a valid" in line]
    assert kinds == ["playbook", "image", "inventory", "inventory", "image"]  # toy is two things
    assert "nosuch:1:1: cannot be read" in place.run("check", "nosuch").stderr


def test_a_fault_of_ours_goes_to_a_file(place: Place) -> None:
    """One line on the terminal, exit 1, and the document; the traceback is in the state folder."""
    broken = (
        "import sys; from orchestrator import cli; from orchestrator.state import store;"
        " store.Store.sweeps = property(lambda self: 1 / 0); cli.main()"
    )
    done = commands.run(
        [sys.executable, "-c", broken, "list", "sweeps", "--json"],
        cwd=place.folder,
        env=place.env(),
    )
    assert done.returncode == 1
    assert "ERROR BUG: ZeroDivisionError" in done.stderr
    (said,) = json.loads(done.stdout)["errors"]
    assert (said["code"], said["message"]) == ("BUG", "ZeroDivisionError: division by zero")
    assert "Traceback" not in done.stderr
    (kept,) = place.state.glob("traceback-*.txt")
    assert "ZeroDivisionError" in kept.read_text()


def test_a_traceback_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In /tmp anybody may have put one with the name of the next process."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    monkeypatch.setenv("DLPERF_STATE", str(tmp_path))
    (tmp_path / f"traceback-{os.getpid()}.txt").symlink_to(precious)
    path = Path(app._write_traceback(ValueError("wrong")))
    assert precious.read_text() == "precious"
    assert "ValueError: wrong" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


TAGGED = """\
workload: ngc_pytorch_rn50
image: {image}
method: {{repeats: 1, iterations: 151, window: [25, 125]}}
grid: {{placement: [1x1], precision: [amp], micro_batch_size: [256]}}
"""


def test_a_newer_tag_is_one_line_of_a_playbook(place: Place) -> None:
    """NAME@TAG is that image on another base; of a base that comes as a file there is no tag."""
    words = ("sweep", "newer", "--inventory", "v100x4", "--dry-run", "--json")
    path = place.folder / "playbooks/newer.yaml"
    path.write_text(TAGGED.format(image="ngc-pytorch-20.03@20.12-py3"))
    plan = json.loads(place.run(*words).stdout)["plan"]
    assert plan["image"] == "ngc-pytorch-20.03@20.12-py3"
    path.write_text(TAGGED.format(image="oneflow-gpt-0.3.5@0.2"))
    refused = place.must(*words, code=2)
    assert "NO-TAG" in refused.stderr
    path.write_text(TAGGED.format(image="ngc-pytorch-20.3@20.12-py3"))
    refused = place.must("check", str(path), code=2)
    assert "there is no image 'ngc-pytorch-20.3'" in refused.stderr
    assert "did you mean" in refused.stderr


MISMATCHED = """\
workload: {workload}
image: {image}
method: {{repeats: 1, iterations: 20, window: [5, 15]}}
grid: {{placement: [1x1], precision: [fp32], micro_batch_size: [4]}}
"""


@pytest.mark.parametrize(
    ("workload", "image", "serves", "needed"),
    [
        ("reference_rn50", "ngc-pytorch-20.03", "ngc_pytorch_rn50", "reference-rn50"),
        ("ngc_pytorch_rn50", "reference-rn50", "reference_rn50, all_reduce", "ngc-pytorch-20.03"),
    ],
)
def test_image_of_another_workload_is_refused(
    place: Place, workload: str, image: str, serves: str, needed: str
) -> None:
    """Its program does not lie in there: check, a dry run and a sweep say so, and what does."""
    path = place.folder / "playbooks/mixed.yaml"
    path.write_text(MISMATCHED.format(workload=workload, image=image))
    on = ("--inventory", "local")
    for words in (("check", str(path)), ("sweep", "mixed", "--dry-run", *on), ("sweep", "mixed")):
        refused = place.must(*words, code=2)
        (line,) = [line for line in refused.stderr.splitlines() if "mixed.yaml:" in line]
        assert line.endswith(
            f"mixed.yaml:2:8: image: {image} serves {serves}, not {workload}; needed {needed}"
        )
    assert not place.state.exists() or not list(place.state.glob("sweeps/*"))


def test_image_that_names_no_workload_serves_any(place: Place) -> None:
    """So does one of a workload that no image claims; a name that no workload has is an error."""
    folder = place.folder / "images/mine"
    folder.mkdir(parents=True)
    path = place.folder / "playbooks/mixed.yaml"
    path.write_text(MISMATCHED.format(workload="reference_rn50", image="mine"))
    (folder / "image.yaml").write_text("name: mine\nbase: registry.example/mine:1\n")
    place.must("check", str(path))
    (folder / "image.yaml").write_text(
        "name: mine\nbase: registry.example/mine:1\nworkloads: [referenc_rn50]\n"
    )
    refused = place.must("check", str(folder / "image.yaml"), code=2)
    assert "workloads[0]: there is no workload 'referenc_rn50'; needed one of" in refused.stderr
    assert "did you mean 'reference_rn50'?" in refused.stderr
    (place.folder / "images/toy/image.yaml").write_text("name: toy\nbase: registry.example/toy:1\n")
    path.write_text(MISMATCHED.format(workload="toy", image="reference-rn50") + "device: cpu\n")
    place.must("check", str(path))
