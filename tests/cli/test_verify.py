"""verify: the command, of a sweep by its name, of an archive, and of one that runs."""

import hashlib
import json

from orchestrator.state import archives
from orchestrator.state.store import Store
from tests.conftest import Place
from tests.verifying import sweeps


def test_verify_says_what_differs_and_where(place: Place) -> None:
    """Nothing first; then a changed outcome, on a line and as JSON, with exit 3."""
    sweep = sweeps.collected(Store(place.state), sweeps.bert())
    archives.pack(sweep, place.folder / "bert.tar.zst")
    done = place.run("verify")
    assert (done.returncode, "no difference" in done.stdout) == (0, True), done.stdout
    name = "logs/1n1g/r50_b96_fp32_1.json"
    outcome = sweep.folder / name
    outcome.write_text(outcome.read_text().replace('"throughput": 150.5', '"throughput": 151.5'))
    done = place.must("verify", "oneflow_bert", code=3)
    digest = hashlib.sha256(outcome.read_bytes()).hexdigest()
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"DIFFERS {name}: sha256: written: {digest}; derived: ")
    done = place.run("verify", str(sweep.folder), "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], document["sweep"]) == (3, 3, sweep.id)
    shown = {(it["file"], it["place"]): it for it in document["differences"]}
    assert shown[name, "sha256"]["written"] == digest
    left_out = shown["results.json", "cases[0].trials_valid"]
    assert (left_out["written"], left_out["derived"]) == ("3", "2")
    assert document["not_derived"] == {}
    done = place.run("verify", "bert.tar.zst", "--json")
    assert (done.returncode, json.loads(done.stdout)["differences"]) == (0, [])


def test_a_running_sweep_is_not_verified(place: Place) -> None:
    """Its files still change; the message says who runs it."""
    sweep = sweeps.collected(Store(place.state), sweeps.gpt())
    with sweep.lock():
        done = place.run("verify")
    assert done.returncode == 6
    assert "ERROR LOCKED" in done.stderr
