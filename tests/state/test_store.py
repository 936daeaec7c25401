"""The state folder: whole files, and events that outlive a crash."""

import hashlib
import json
import multiprocessing
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import __version__, errors
from orchestrator.model.attempt import Attempt, Outcome, TaskEnd
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Method
from orchestrator.model.node import NodeEntry
from orchestrator.model.plan import Plan, Task
from orchestrator.model.problem import Problem
from orchestrator.model.site import Site
from orchestrator.model.sweep import Adopted, Ended, Intent, SweepRecord
from orchestrator.state import records
from orchestrator.state.files import write
from orchestrator.state.store import Store
from orchestrator.state.sweep import Sweep
from tests.state.damage import damages

AT = "2026-01-05T09:00:00.000+00:00"
INTENT = Intent(at=AT, trial="t", attempt=1, port=23333, log="t.log")
ADOPTED = Adopted(at=AT, trial="t", attempt=1)
ENDED = Ended(at=AT, trial="t", attempt=1, state="valid", sha256="aa", outcome="bb")
OUTCOME = Outcome(
    trial="t",
    attempt=1,
    state="valid",
    problems=(Problem("GAP", "a pause"),),
    throughput=748.5,
    sha256="aa",
    lines=(3, 9),
    transport="-",
    provenance={"image": "sha256:00"},
    port=23333,
    start_skew_s=0.25,
    tasks=(TaskEnd("left", 0, 0, "exited", 1162, "aa", 1795328928.7),),
)
KEYS = ("r0.id", "r0.ssh_config")
TASK = Task("left", 0, ("true",), {}, (), (), files=KEYS)
ATTEMPT = Attempt("", "t", 1, {"left": "/x"}, 23333, (TASK,))
METHOD = Method(repeats=1, iterations=3, window=(1, 2))
RECORD = SweepRecord(
    experiment="x",
    cluster="two",
    identity="",
    inputs={"image_digest": ""},
    inventory=Cluster(name="two", nodes=(NodeEntry(name="left", address="127.0.0.1"),)),
    plan=Plan("x", "toy", "toy", "", "two", METHOD, ()),
    site=Site(2, "two", "", "two.yaml", "", {}, ()),
)


def test_events_come_back_in_order_and_a_torn_one_is_cut(tmp_path: Path) -> None:
    """Half a line at the end makes room for the next."""
    sweep = Store(tmp_path).new_sweep(RECORD)
    sweep.append(INTENT)
    with open(sweep.folder / "events.jsonl", "ab") as file:
        file.write(b'{"at": "2026')
    sweep.append(ENDED)
    assert sweep.events() == (INTENT, ENDED)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        # One changed digit can make an offset of 70 hours, which no reader could compute with.
        ("at", "2026-01-05T09:00:00+70:00"),
        # Nothing is converted: we write no text or boolean in place of a number.
        *(("attempt", value) for value in ("1", True, 1.0, None, 0, 1_000_001)),
    ],
)
def test_an_event_that_we_never_write_is_damaged(tmp_path: Path, field: str, value: object) -> None:
    sweep = Store(tmp_path).new_sweep(RECORD)
    sweep.append(INTENT)
    path = sweep.folder / "events.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}) + "\n")
    with pytest.raises(errors.StoreError, match=field) as raised:
        sweep.events()
    assert raised.value.code == "STORE-DAMAGED"


@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_as_it_was(data: st.DataObject) -> None:
    """A reader raises STORE-DAMAGED or STORE-VERSION, exit 6, and the bytes stay."""
    with tempfile.TemporaryDirectory() as folder:
        sweep = Store(Path(folder)).new_sweep(RECORD)
        sweep.append(INTENT)
        sweep.append(ENDED)
        sweep.keep_attempt(replace(ATTEMPT, sweep=sweep.id), {})
        seal = sweep.keep_outcome("t.log", OUTCOME)
        readers: dict[str, Callable[[], object]] = {
            "sweep.json": sweep.record,
            "attempts/t/a1/attempt.json": lambda: sweep.attempt("t", 1),
            "logs/t.json": lambda: sweep.outcome("t.log"),
            "events.jsonl": lambda: len(sweep.events()) <= 3,
        }
        name = data.draw(st.sampled_from(sorted(readers)))
        path, before = sweep.folder / name, readers[name]()
        content = data.draw(damages(path.read_bytes()) | st.none())
        path.unlink() if content is None else path.write_bytes(content)
        after, code = before, "STORE-DAMAGED"
        try:
            after = readers[name]()
        except errors.StoreError as error:
            code = error.code
            assert content is None or path.read_bytes() == content
        assert code in ("STORE-DAMAGED", "STORE-VERSION")
        if name == "logs/t.json" and isinstance(after, tuple):
            assert after == before or after[1] != seal
        elif name != "logs/t.json" or content is not None:
            assert after == before


def test_threads_append_beside_each_other(tmp_path: Path) -> None:
    """Eight threads with a store of their own each lose no event and tear none."""
    sweep = Store(tmp_path).new_sweep(RECORD)

    def append(thread: int) -> None:
        for number in range(1, 76):
            Sweep(sweep.folder).append(replace(INTENT, trial=f"t{thread}", attempt=number))

    together(append, 8)
    found = [(event.trial, event.attempt) for event in sweep.events()]
    assert len(found) == 600
    assert set(found) == {(f"t{thread}", number) for thread in range(8) for number in range(1, 76)}


def test_threads_write_one_file_beside_each_other(tmp_path: Path) -> None:
    """The file is always one thread's from end to end, and nothing lies beside it afterwards."""
    path = tmp_path / "attempt.json"

    def put(thread: int) -> None:
        for _ in range(50):
            write(path, bytes([thread]) * 100_000)
            assert len(set(path.read_bytes())) == 1

    together(put, 4)
    assert list(tmp_path.iterdir()) == [path]


def test_a_frozen_sweep_is_not_written_to(tmp_path: Path) -> None:
    """Whoever of this process would write there waits for ever; another process goes on."""
    sweep = Store(tmp_path).new_sweep(RECORD)
    sweep.append(INTENT)
    (tmp_path / "log").write_bytes(b"Iteration: 1\n")
    before = {path: path.read_bytes() for path in sweep.folder.rglob("*") if path.is_file()}
    sweep.freeze()
    writes: tuple[Callable[[], object], ...] = (
        lambda: sweep.append(ENDED),
        lambda: Sweep(sweep.folder).append(ENDED),
        lambda: sweep.keep_log("t.log", tmp_path / "log"),
        lambda: sweep.keep_outcome("t.log", OUTCOME),
        lambda: sweep.keep_record(RECORD),
    )
    waiting = [threading.Thread(target=write_one, daemon=True) for write_one in writes]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(0.2)
    assert all(thread.is_alive() for thread in waiting)
    assert {path: path.read_bytes() for path in before} == before
    assert sweep.outcome("t.log") is None
    assert not sweep.log("t.log").exists()
    other = multiprocessing.get_context("spawn").Process(target=append_ended, args=(sweep.folder,))
    other.start()
    other.join()
    assert sweep.events() == (INTENT, ENDED)


def test_a_log_is_stored_once(tmp_path: Path) -> None:
    """A later attempt's log takes the place of the one that counted, not its bytes."""
    sweep = Store(tmp_path).new_sweep(RECORD)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"Iteration: 1\n")
    second.write_bytes(b"Iteration: 2\n")
    for source in (first, first, second):
        sweep.keep_log("1n1g/t.log", source)
        assert sweep.log("1n1g/t.log").samefile(source)
    assert first.read_bytes() == b"Iteration: 1\n"


def append_ended(folder: Path) -> None:
    Sweep(folder).append(ENDED)


def test_an_outcome_comes_back_as_it_was(tmp_path: Path) -> None:
    """With the sha256 that the event beside it names."""
    sweep = Store(tmp_path).new_sweep(RECORD)
    sha256 = sweep.keep_outcome("t.log", OUTCOME)
    assert sweep.outcome("t.log") == (OUTCOME, sha256)
    assert sweep.outcome("other.log") is None
    path = sweep.log("t.log").with_suffix(".json")
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def together(act: Callable[[int], None], count: int) -> None:
    """Act in threads at the same time, each with its number; the first failure is raised."""
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(act, number) for number in range(count)]:
            done.result()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A file is replaced in one step or not at all; nothing half-written is ever at its name."""
    path = tmp_path / "results.json"
    write(path, b"old")
    (tmp_path / f"results.json.{threading.get_native_id()}.{os.getpid()}.new").mkdir()
    with pytest.raises(errors.LocalError, match=r"results\.json"):
        write(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    """With its name and the time that the store gave it; the file says which version wrote it."""
    sweep = Store(tmp_path).new_sweep(RECORD)
    record = sweep.record()
    names = {"id": sweep.id, "created": record.created, "written_by": __version__}
    assert record == replace(RECORD, **names)  # type: ignore[arg-type] # all of them are text
    document = json.loads((sweep.folder / "sweep.json").read_bytes())
    assert (document["version"], document["written_by"]) == (2, __version__)


def test_a_record_of_another_version_names_its_writer(tmp_path: Path) -> None:
    """It is not damaged: whoever wrote it can read it, and other sweeps are not concerned."""
    store = Store(tmp_path)
    later, ours = store.new_sweep(RECORD), store.new_sweep(RECORD)
    (later.folder / "sweep.json").write_text('{"version": 3, "written_by": "0.3.0"}')
    with pytest.raises(errors.StoreError, match=r"by dlperf-orch 0\.3\.0 and has version 3") as e:
        later.record()
    assert (e.value.code, e.value.exit_code) == ("STORE-VERSION", 6)
    assert [sweep.id for sweep in store.sweeps()] == [ours.id]
    assert store.unreadable().keys() == {later.id}


@pytest.mark.parametrize("key", ["id", "inputs", "inventory", "plan", "site"])
def test_a_record_without_a_part_is_damaged(tmp_path: Path, key: str) -> None:
    """Even one whose sha256 fits the rest; the message names the part."""
    sweep = Store(tmp_path).new_sweep(RECORD)
    path = sweep.folder / "sweep.json"
    bare = json.loads(path.read_bytes())
    del bare[key], bare["sha256"]
    seal = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**bare, "sha256": seal}))
    with pytest.raises(errors.StoreError, match=key) as raised:
        sweep.record()
    assert raised.value.code == "STORE-DAMAGED"


def test_sweeps_are_named_apart_and_newest_comes_first(tmp_path: Path) -> None:
    """Two sweeps of one second have names of their own, since tasks carry them."""
    store = Store(tmp_path)
    made = [store.new_sweep(RECORD).id for _ in range(3)]
    assert len(set(made)) == 3
    assert {sweep.id for sweep in store.sweeps()} == set(made)
    created = [sweep.record().created for sweep in store.sweeps()]
    assert created == sorted(created, reverse=True)
    assert store.sweep("x.yaml").id == store.sweep(None).id == store.sweeps()[0].id


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted as root")
def test_a_full_disk_is_reported_and_no_event_is_lost(tmp_path: Path) -> None:
    """STORE-FULL, exit 6; what was acknowledged before is still there."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    subprocess.run(mount, check=True)
    try:
        sweep = Store(small).new_sweep(RECORD)
        sweep.append(INTENT)
        with pytest.raises(errors.StoreError) as raised:
            write(small / "big", b"x" * 1_000_000)
        assert (raised.value.code, raised.value.exit_code) == ("STORE-FULL", 6)
        assert [path.name for path in small.iterdir()] == ["sweeps"]  # no half of it takes room
        assert sweep.events() == (INTENT,)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_each_record_is_read_once_however_many_sweeps_there_are(tmp_path: Path) -> None:
    """A command lists them several times."""
    store = Store(tmp_path)
    for _ in range(70):
        store.new_sweep(RECORD)
    before = records.sweep.cache_info().misses
    for _ in range(3):
        assert len(store.sweeps()) == 70
        assert store.unreadable() == {}
    assert records.sweep.cache_info().misses - before <= 70
