"""What a person is told to do next, and that it is right."""

import pytest

from tests.conftest import PROGRAM, Place
from tests.terminal import on_terminal
from tests.waiting import wait_for

MINE = """\
name: mine
images: [{image}]
nodes: [{{name: gpu01, address: 10.0.0.1, gpus: {{count: 1}}}}]
"""
TODAY = """\
workload: reference_rn50
image: nvcr.io/nvidia/pytorch@25.09-py3
method: {repeats: 1, iterations: 31, window: [5, 25]}
cases: [{placement: 1x1, precision: fp32, micro_batch_size: 4}]
"""


@pytest.mark.parametrize(
    ("image", "is_said"), [("reference-rn50", True), ("nvcr.io/nvidia/pytorch@25.09-py3", False)]
)
def test_check_refuses_an_image_that_nobody_would_prepare(
    place: Place, image: str, *, is_said: bool
) -> None:
    """The sweep would refuse it after all nodes were provisioned."""
    (place.folder / "mine.yaml").write_text(MINE.format(image=image))
    (place.folder / "today.yaml").write_text(TODAY)
    done = place.must("check", "mine.yaml", "today.yaml", code=2 if is_said else 0)
    said = "today.yaml:2:8: image: its image is not prepared there; needed `images:` of mine.yaml"
    assert (said in done.stderr) is is_said
    assert "needed" not in place.run("check", "today.yaml").stderr


@pytest.mark.cluster
def test_who_looks_leaves_by_ctrl_c_and_a_sweep_goes_on_by_its_own_words(place: Place) -> None:
    """No error of a look that was left; cases and new repeats are as they were typed last."""
    place.rewrite(params="params: {step_s: 3}")
    sweep = place.start("sweep", "toy", "--case", "1x1", "--repeats", "1", "--new")
    wait_for(lambda: [*place.state.glob("sweeps/*/attempts/*/a1/r0.log")], "a gang runs")
    for look in (("status", "--watch", "--every", "1"), ("logs", "--follow")):
        seen = on_terminal(
            (*PROGRAM, *look),
            columns=100,
            cwd=place.folder,
            env=place.env(),
            ctrl_c_at=lambda text: bool(text.strip()),
        )
        assert seen.strip()
        assert "ERROR" not in seen
    assert sweep.poll() is None
    place.run("stop")
    status = place.run("status").stdout
    assert "continue with: dlperf-orch sweep toy --case 1x1 --repeats 1\n" in status


@pytest.mark.cluster
def test_logs_go_by_a_beginning(place: Place) -> None:
    """A whole name comes before those that begin with it."""
    place.must("sweep", "toy", "--repeats", "1")
    whole = place.run("logs", "2n2g").stdout
    assert whole
    assert whole != place.run("logs", "1n1g").stdout
    assert "ERROR NO-TRIAL" in place.run("logs", "9n").stderr
