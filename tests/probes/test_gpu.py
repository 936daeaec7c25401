"""The parser of `nvidia-smi -q -x`: which value follows from which words of the document."""

import json
import re
from dataclasses import asdict

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.model.facts import GpuFacts, GpuProcess
from orchestrator.probes import gpu
from tests import SAMPLES
from tests.probes.answers import V100


def only_gpu(text: str) -> tuple[GpuFacts, list[str]]:
    """Return the only GPU of the document, and all problems as `CODE message`."""
    fact = gpu.parse(text)
    (one,) = fact.gpus
    return one, [f"{problem.code} {problem.message}" for problem in fact.problems]


def test_the_document_has_the_promised_keys(snapshot: SnapshotAssertion) -> None:
    """`inspect gpu` prints these keys in this order, as JSON."""
    text = V100.replace("<attached_gpus>1", "<attached_gpus>2")
    assert json.dumps(asdict(gpu.parse(text)), indent=1) == snapshot


def test_words_around_the_document_and_newer_names_change_nothing() -> None:
    whole = gpu.parse(V100)
    assert gpu.parse(f"\ufeffroot@a:~# nvidia-smi -q -x\n{V100}\nroot@a:~# ") == whole
    assert gpu.parse(V100[V100.index("<nvidia_smi_log>") :]) == whole
    assert gpu.parse(V100.replace("clocks_throttle_reason", "clocks_event_reason")) == whole


@pytest.mark.parametrize(
    "word", ["N/A", "[N/A]", "", "Requested functionality has been deprecated"]
)
def test_a_value_that_is_not_reported_is_null_without_a_problem(word: str) -> None:
    one, problems = only_gpu(re.sub(r">[^<>\s][^<>]*<", f">{word}<", V100))
    assert problems == []
    assert one.processes == (GpuProcess(pid=None, name=None, memory_mib=None),)
    said = {name for name in GpuFacts.__slots__ if getattr(one, name) is not None}
    assert said == {"index", "bus_id", "processes"}
    assert one.bus_id == "00000000:1A:00.0", "the element itself has it"


def test_a_gpu_that_reports_nothing_is_all_null() -> None:
    for name, bus_id in (("00000000:1A:00.0", "00000000:1A:00.0"), ("first", None)):
        one, problems = only_gpu(f'<nvidia_smi_log><gpu id="{name}"></gpu></nvidia_smi_log>')
        assert (one.bus_id, problems) == (bus_id, [])
        assert {getattr(one, slot) for slot in GpuFacts.__slots__} == {0, bus_id, None}


def test_gpus_are_numbered_in_the_order_of_the_document() -> None:
    element = V100[V100.index("\t<gpu ") : V100.index("</nvidia_smi_log>")]
    second = element.replace("1A:00.0", "05:00.0").replace("GPU-1", "GPU-2")
    text = V100.replace(element, element + second).replace("<attached_gpus>1", "<attached_gpus>2")
    fact = gpu.parse(text)
    assert [(one.index, one.uuid) for one in fact.gpus] == [(0, "GPU-1"), (1, "GPU-2")]
    assert fact.problems == ()


def test_a_driver_without_gpus_is_a_problem() -> None:
    fact = gpu.parse("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>")
    assert (fact.driver, fact.cuda, fact.gpus) == (None, None, ())
    assert [problem.code for problem in fact.problems] == ["NO-GPU"]
    lost = gpu.parse("<nvidia_smi_log><driver_version>?</driver_version></nvidia_smi_log>")
    assert [problem.message for problem in lost.problems] == [
        "nvidia-smi -q -x, the driver: driver_version: cannot read '?'",
        "the text describes no GPU",
    ]


INFOROM = "WARNING: infoROM is corrupted at gpu 0000:67:00.0"


@pytest.mark.parametrize("text", [f"{V100}{INFOROM}  \n", f"{INFOROM}\n{V100}"])
def test_a_warning_beside_the_document_is_a_problem(text: str) -> None:
    assert only_gpu(text) == (only_gpu(V100)[0], [f"GPU-WARNING {INFOROM}"])


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("", ""),
        ("NVIDIA-SMI has failed because it couldn't communicate.\n", "NVIDIA-SMI has failed"),
        ("<html></html>", "<html>"),
        (V100.replace("</gpu>", ""), "<?xml"),
        (V100 + V100, "<?xml"),
        (V100.replace("GPU-1", "GPU-\x00"), "<?xml"),
        (V100.replace("GPU-1", "GPU-\udcff"), "<?xml"),
        ("<?xml version='1.0'?><nvidia_smi_log_2></nvidia_smi_log_2>", "<?xml"),
        ((SAMPLES / "nvidia-smi/netdata_tesla-p100.csv").read_text(), "name, uuid, fan.speed"),
        ((SAMPLES / "nvidia-smi/sysuest_v100_4gpu_plain.txt").read_text(), "Tue May 11 12:08:26"),
    ],
)
def test_a_text_that_is_not_one_whole_document_is_refused(text: str, begins: str) -> None:
    """The message shows how the text begins, and the fix says what to record instead."""
    with pytest.raises(errors.LogError, match="not one whole XML document") as caught:
        gpu.parse(text)
    assert re.search(f"begins with ['\"]{re.escape(begins)}", caught.value.cause)
    assert (caught.value.code, "nvidia-smi -q -x" in caught.value.fix) == ("UNREADABLE", True)
