"""Errors as programs meet them: one JSON document, with code, place, cause and what to do."""

import json
from typing import Any

import pytest

from tests.conftest import Place


def refused(place: Place, *words: str, code: int = 2) -> Any:
    """The one error of a command that is refused with ``--json``."""
    document = place.json(*words, code=code)
    assert document["exit_code"] == code
    (error,) = document["errors"]
    return error


def test_errors_say_what_to_do(place: Place) -> None:
    """`fix` is a field of its own, and so is `where`, empty where no node has a part in it."""
    error = refused(place, "sweep", "smok")
    assert (error["code"], error["fix"], error["where"]) == ("NO-FILE", "did you mean 'smoke'?", {})


def test_errors_say_where(place: Place) -> None:
    """Node and phase as an object; the flat keys that were there stay."""
    path = place.folder / "inventory" / "two.yaml"
    path.write_text(path.read_text().replace("process}", "process, interface: ib77}"))
    place.run("provision", "two")
    error = refused(place, "sweep", "toy", code=5)
    assert error["code"] == "INTERFACE-MISSING"
    assert error["where"] == {"node": "left", "phase": "preflight"}
    assert (error["node"], error["phase"]) == ("left", "preflight")
    assert error["fix"] == "name an interface that the node has"


def test_mistakes_about_files_have_both_too(place: Place) -> None:
    """So that a program needs no second way of reading errors."""
    (place.folder / "bad.yaml").write_text("name: x\nnodes: []\n")
    done = place.run("check", "bad.yaml", "--json")
    for error in json.loads(done.stdout)["errors"]:
        assert error["fix"] == "correct the file"
        assert error["where"] == {"file": "bad.yaml", "line": error["line"]}


def test_nodes_that_gave_no_answer_are_in_provisions_document(place: Place) -> None:
    """Each with its reason, as provision says it in words."""
    path = place.folder / "inventory" / "two.yaml"
    path.write_text(path.read_text().replace("transport: local", "transport: ssh, user: nobody"))
    done = place.run("provision", "two", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["exit_code"]) == (6, 6), done.stderr
    assert [error["code"] for error in said["errors"]] == ["SSH-KEY", "SSH-KEY"]
    assert [error["where"] for error in said["errors"]] == [{"node": "left"}, {"node": "right"}]


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("nonsense",), "No such command 'nonsense'"),
        (("sweep",), "Missing argument"),
        (("sweep", "toy", "--repeats", "x"), "'--repeats': Input should be a valid integer"),
        (
            ("sweep", "toy", "--repeats", "0"),
            "'--repeats': Input should be greater than or equal to 1",
        ),
        (("sweep", "toy", "--max-fail", "-1"), "'--max-fail': Input should be greater than or"),
        (("logs", "--rank", "-1"), "'--rank': Input should be greater than or equal to 0"),
        (("init", "h", "--port", "65536"), "'--port': Input should be less than or equal to 65535"),
        (("status", "--every", "0.4"), "'--every': Input should be greater than or equal to 0.5"),
        (("collect", "--rule", "best"), "'--rule': 'best' is not one of 'clock'"),
        (("compare", "a", "b", "--bound", "x"), "'--bound': got 'x'; needed percent below 100"),
        (("collect", "--logs", "."), "--logs DIR and --workload NAME belong together"),
        (("compare", "a", "b", "--repeats", "2"), "--repeats means nothing without --interleave"),
        (("provision", "two", "--by", "speed"), "--by means nothing without --measure"),
        (("init", "localhost", "--force"), "--force means nothing without --out"),
        (("inspect", "log"), "Missing argument"),
        (("status", "--nope"), "No such option"),
    ],
)
def test_wrong_usage_is_json_where_that_was_asked_for(
    place: Place, words: tuple[str, ...], seen: str
) -> None:
    """The words on standard error stay; without `--json` standard output stays empty."""
    error = refused(place, *words)
    assert error["code"] == "USAGE"
    assert seen in error["message"]
    assert "--help" in error["fix"]
    plain = place.run(*words)
    assert (plain.returncode, plain.stdout) == (2, "")
    last = plain.stderr.splitlines()[-1]
    assert last == f"ERROR USAGE: {error['message'].removesuffix('.')}. Fix: {error['fix']}."
    assert place.run(*words, "--", "--json").stdout == ""


def test_a_group_without_a_command_shows_its_commands(place: Place) -> None:
    """And ends as wrong usage does."""
    done = place.run("data")
    assert (done.returncode, done.stdout) == (2, "")
    assert "\n  prepare " in done.stderr
    assert done.stderr.splitlines()[-1].startswith("ERROR USAGE: Missing command. Fix: see ")


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("swep", "toy"), "ERROR USAGE: No such command 'swep'. Fix: did you mean 'sweep'?"),
        (("data", "chek"), "ERROR USAGE: No such command 'chek'. Fix: did you mean 'check'?"),
        (
            ("sweep", "--repeat"),
            "ERROR USAGE: No such option: --repeat. Fix: possible options: --repeats.",
        ),
        (
            ("logs", "--sweep"),
            "ERROR USAGE: Option '--sweep' requires an argument. Fix: see dlperf-orch --help.",
        ),
        (
            ("--versoin",),
            "ERROR USAGE: No such option: --versoin. Fix: possible options: --version.",
        ),
    ],
)
def test_the_nearest_name_is_offered(place: Place, words: tuple[str, ...], last: str) -> None:
    """In the form of all errors, for commands as for options."""
    done = place.run(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{last}\n")


@pytest.mark.parametrize("kind", ["topology", "ibstat", "gpu", "log"])
def test_inspect_takes_json_too(place: Place, kind: str) -> None:
    """Every command takes `--json`; what inspect prints is the same with and without it."""
    words = ("inspect", kind, "gone", *(("--workload", "toy") if kind == "log" else ()))
    assert refused(place, *words)["code"] == "READ"
    assert place.run(*words).stdout == place.run(*words, "--json").stdout


def test_schema_takes_json_too(place: Place) -> None:
    """A schema is JSON; with `--json` its errors are too."""
    assert refused(place, "schema", "nothing")["code"] == "USAGE"
    plain = place.run("schema", "playbook").stdout
    assert place.run("schema", "playbook", "--json").stdout == plain
    assert json.loads(plain)["title"] == "dlperf-orch playbook"
