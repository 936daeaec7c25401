"""What happens while something else ends: a log that is printed, a sweep that cannot be opened."""

from pathlib import Path

import pytest

from orchestrator.model.attempt import Attempt
from orchestrator.model.experiment import Method
from orchestrator.model.plan import Plan, Task
from orchestrator.model.sweep import Ended, Intent
from orchestrator.schedulers.fanout import Fanout
from orchestrator.sweeping.observed_sweep import Running
from orchestrator.verbs import logs
from tests.conftest import Place
from tests.sweeping.elsewhere import CLUSTER, LOG, TASK, attempt, elsewhere, sweep_in

METHOD = Method(repeats=1, iterations=3, window=(1, 2))
AT = "2026-01-05T09:00:00.000+00:00"


class _EndsMeanwhile(Fanout):
    """A scheduler whose second look comes after the attempt has ended and its files are here."""

    looks = 0

    def read(self, attempt: Attempt, task: Task, name: str, offset: int = 0) -> bytes | None:
        self.looks += 1
        if self.looks == 1:
            return super().read(attempt, task, name, offset)
        sweep = sweep_in(Path(attempt.folder(task)).parents[1])
        folder = sweep.attempt_folder("t", 1)
        Path(attempt.folder(task), name).rename(folder / name)
        sweep.append(Ended(at=AT, trial="t", attempt=1, state="valid"))
        return None


@pytest.mark.parametrize("follow", [False, True])
def test_a_log_whose_attempt_ends_while_it_is_printed_is_whole(
    follow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first piece came from the node, the others from the copy here."""
    there = tmp_path / "node" / "a1"
    there.mkdir(parents=True)
    sweep = sweep_in(tmp_path)
    one = attempt(sweep, there)
    sweep.keep_attempt(one, {})
    sweep.append(Intent(at=AT, trial="t", attempt=1, port=20_000, log="t.log"))
    whole = LOG * 20  # more than a transport returns at once
    (there / "r0.log").write_bytes(whole)
    running = Running(sweep, CLUSTER, Plan("x", "toy", "", "", "far", METHOD, ()))
    plain = elsewhere()
    ending = _EndsMeanwhile(plain._fleet, tmp_path, lambda: False)
    monkeypatch.setattr(Running, "scheduler", lambda _: ending)
    assert b"".join(logs._read_pieces(running, one, TASK.node_rank, follow)) == whole


@pytest.mark.cluster
def test_a_sweep_that_cannot_be_opened_is_not_held(place: Place) -> None:
    """Its lock names nobody afterwards."""
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    lock = place.sweep() / "lock"
    assert lock.read_text() == ""
    events = place.sweep() / "events.jsonl"
    events.write_bytes(b"no event\n" + events.read_bytes())
    (place.sweep() / "ended.json").unlink()
    assert "STORE-DAMAGED" in place.must("sweep", "toy", code=6).stderr
    assert lock.read_text() == ""
