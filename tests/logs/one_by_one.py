"""Logs read line by line, as if no run ever kept to a course."""

import pytest

from orchestrator.logs import Format, engine
from orchestrator.logs.format import Step
from orchestrator.model.log import TrainingLog


def read(form: Format, raw: bytes, window: tuple[int, int] | None) -> TrainingLog:
    """What a log says if none of its steps is taken by the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.Reader, "_has_course", False)
        return engine.read(form, [raw], window)


def steps_read_singly(form: Format, raw: bytes, window: tuple[int, int] | None) -> int:
    """How many steps of a log were not taken by the block."""
    singly = 0
    step = engine.Reader.step

    def counted(reader: engine.Reader, taken: Step) -> None:
        nonlocal singly
        singly += 1
        step(reader, taken)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.Reader, "step", counted)
        engine.read(form, [raw], window)
    return singly
