"""compare --interleave on the virtual cluster: one playbook in two images, in containers."""

import json
import subprocess

import pytest

from tests.events import events
from tests.virtual import QUICK, Desk

pytestmark = [pytest.mark.cluster, pytest.mark.daemons, pytest.mark.long]

BASE = "ngc-pytorch-20.03"


@pytest.fixture
def prepared(provisioned: tuple[Desk, "subprocess.CompletedProcess[str]"], desk: Desk) -> Desk:
    """A desk whose cluster has the usual image, and a copy of it under another name."""
    assert provisioned[1].returncode == 0, provisioned[1].stderr
    images = desk.folder / "images"
    (images / BASE).rename(images / "next")
    definition = images / "next" / "image.yaml"
    definition.write_text(definition.read_text().replace(f"name: {BASE}", "name: next"))
    said = desk.json("provision", str(desk.inventory()), "--image", "next", "--lock")
    assert {BASE, "next"} <= set(said["site"]["images"])
    return desk


def test_one_playbook_takes_turns_in_two_images(prepared: Desk) -> None:
    """Two trials of each side in the order A B B A, each in a container of its side's image."""
    playbook = prepared.playbook("quick", QUICK)
    words = ("compare", "--interleave", playbook, f"{playbook}=next", "--repeats", "2")
    said = prepared.json(*words, "--inventory", str(prepared.folder / "mine.yaml"))
    (case,) = said["cases"]
    assert [len(case[side]["throughputs"]) for side in ("first", "second")] == [2, 2]
    begun, ran = [], []
    for sweep in prepared.sweeps():
        image = json.loads((sweep / "sweep.json").read_text())["plan"]["image"]
        begun += [(event["at"], image) for event in events(sweep, "intent")]
        outcomes = [json.loads(path.read_text()) for path in sweep.glob("logs/*/*.json")]
        assert [outcome["state"] for outcome in outcomes] == ["valid", "valid"]
        ran.append({outcome["provenance"]["image"] for outcome in outcomes})
    assert [image for _, image in sorted(begun)] == [BASE, "next", "next", BASE]
    assert [len(images) for images in ran] == [1, 1]
    assert ran[0] != ran[1]
    assert not prepared.left()
