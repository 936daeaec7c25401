"""Processes told apart by machine, boot, pid and start time."""

from dataclasses import replace

import pytest

from orchestrator.model.process import Holder, ProcessIdentity

BOOT = "0f4c8d3e-4a31-4a29-9a0f-0d6f3b2c1a55"
PROCESS = ProcessIdentity("vs001", 4242, "987654", BOOT)
# proc(5): the name may hold blanks and brackets; field 22 is the start time.
STAT = b"4242 (a b) c) S 1 4242 4242 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3\n"
HOLDER = Holder(PROCESS, "root", "2026-11-21T10:00:00.000+00:00", "/home/root/.dlperf")


def test_a_process_is_known_by_its_start_and_its_boot() -> None:
    """Another start, another boot, a zombie or no process at all is not it."""
    assert PROCESS.is_shown_by(STAT, BOOT)
    assert not replace(PROCESS, started="987655").is_shown_by(STAT, BOOT)
    assert not PROCESS.is_shown_by(STAT, BOOT.replace("0", "1"))
    assert not PROCESS.is_shown_by(STAT.replace(b") S ", b") Z "), BOOT)
    assert not PROCESS.is_shown_by(b"", BOOT)


def test_a_holder_comes_back_whole_and_names_itself() -> None:
    """What is written into a lock is read again, and shown to whoever is refused."""
    assert Holder.read(HOLDER.record()) == HOLDER
    assert str(HOLDER) == "pid 4242 of root on vs001 since 2026-11-21T10:00:00.000+00:00"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "{}", '{"process": 7}', '{"process": {}}', HOLDER.record()[:-9]]
)
def test_a_record_that_is_not_whole_names_nobody(text: str) -> None:
    """Such as one that is just being written, or of another version."""
    assert Holder.read(text) is None
