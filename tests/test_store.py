"""The state folder: whole files, and events that outlive a crash."""

import os
from pathlib import Path

import pytest

from orchestrator import errors, records
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Plan
from orchestrator.model.site import Site
from orchestrator.store import Store, write


def test_events_come_back_in_order_and_a_torn_one_is_cut(tmp_path: Path) -> None:
    """What append returned from is there; half a line at the end makes room for the next."""
    sweep = Store(tmp_path).new_sweep("x", {})
    sweep.append("intent", trial="t", attempt=1)
    with open(sweep.folder / "events.jsonl", "ab") as file:
        file.write(b'{"at": "2026')
    sweep.append("outcome", trial="t", attempt=1)
    assert [event["event"] for event in sweep.events()] == ["intent", "outcome"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A file is replaced in one step or not at all; nothing half-written is ever at its name."""
    path = tmp_path / "results.json"
    write(path, b"old")
    (tmp_path / f"results.json.{os.getpid()}.new").mkdir()
    with pytest.raises(errors.LocalError, match=r"results\.json"):
        write(path, b"new")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"version": 99}'])
def test_a_damaged_record_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    """Exit 6 with a word for scripts; the bytes stay for whoever mends them."""
    sweep = Store(tmp_path).new_sweep("x", {})
    (sweep.folder / "sweep.json").write_bytes(content)
    with pytest.raises(errors.StoreError) as raised:
        sweep.record()
    assert raised.value.code in ("STORE-DAMAGED", "STORE-VERSION")
    assert raised.value.exit_code == 6
    assert (sweep.folder / "sweep.json").read_bytes() == content


def test_sweeps_are_named_apart_and_newest_comes_first(tmp_path: Path) -> None:
    """Two sweeps of one second have names of their own, since tasks carry them."""
    store = Store(tmp_path)
    method = Method(repeats=1, iterations=3, window=(1, 2))
    plan = Plan("x", "toy", "toy", "", "two", method, ())
    site = Site(2, "two", "", "two.yaml", "", {}, ())
    document = {
        **{"experiment": "x", "cluster": "two", "identity": "", "inputs": {}},
        "plan": records.PLAN.dump_python(plan, mode="json"),
        "site": records.SITE.dump_python(site, mode="json"),
    }
    made = [store.new_sweep("x", document).id for _ in range(3)]
    assert len(set(made)) == 3
    assert {sweep.id for sweep in store.sweeps()} == set(made)
    created = [str(sweep.record()["created"]) for sweep in store.sweeps()]
    assert created == sorted(created, reverse=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted as root")
def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """STORE-FULL, exit 6; what was acknowledged before is still there."""
    import subprocess

    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    subprocess.run(mount, check=True)
    try:
        sweep = Store(small).new_sweep("x", {})
        sweep.append("intent", trial="t", attempt=1)
        with pytest.raises(errors.StoreError) as raised:
            write(small / "big", b"x" * 1_000_000)
        assert (raised.value.code, raised.value.exit_code) == ("STORE-FULL", 6)
        assert [path.name for path in small.iterdir()] == ["sweeps"]  # no half of it takes room
        assert [event["event"] for event in sweep.events()] == ["intent"]
    finally:
        subprocess.run(["umount", str(small)], check=True)
