"""Peaks of GPUs by the names that nodes report, and results above them."""

from dataclasses import replace

import pytest

from orchestrator.measuring import hardware
from tests.measuring.test_surroundings import gpt
from tests.reported import results, sweep


@pytest.mark.parametrize(
    ("model", "fp32", "amp", "fp8"),
    [
        ("Tesla V100-SXM2-16GB", 15.7, 125, None),
        ("Tesla V100-SXM3-32GB", None, 125, None),
        ("Tesla V100-PCIE-16GB", 14, 112, None),
        ("Tesla V100S-PCIE-32GB", 16.4, 130, None),
        ("Tesla T4", 8.1, 65, None),
        ("NVIDIA A10", 62.5, 125, None),
        ("NVIDIA A30", None, 165, None),
        ("NVIDIA A40", 74.8, 149.7, None),
        ("NVIDIA A100-SXM4-40GB", 156, 312, None),
        ("NVIDIA A100 80GB PCIe", 156, 312, None),
        ("NVIDIA L4", 60, 121, 242),
        ("NVIDIA L40", 90.5, 181.05, 362),
        ("NVIDIA L40S", 183, 362.05, 733),
        ("NVIDIA GeForce RTX 3090", None, 142, None),
        ("NVIDIA GeForce RTX 4090", None, None, 660),
        ("NVIDIA H100 PCIe", 378, 756, 1513),
        ("NVIDIA H100 80GB HBM3", 494.5, 989.5, 1979),
        ("NVIDIA H100 NVL", 417.5, 835.5, 1671),
        ("NVIDIA H200", 494.5, 989.5, 1979),
        ("NVIDIA B200", 1100, 2250, 4500),
        ("NVIDIA GB200", 1250, 2500, 5000),
        ("AMD Instinct MI210", 45.3, 181, None),
        ("AMD INSTINCT MI250 (MCM) OAM AC MBA", 45.25, 181.05, None),
        ("AMD Instinct MI250X", 47.85, 191.5, None),
        ("AMD Instinct MI300X", 653.7, 1307.4, 2614.9),
    ],
)
def test_peaks_are_those_of_the_data_sheets(
    model: str, fp32: float | None, amp: float | None, fp8: float | None
) -> None:
    """Without sparsity; FP32 is TF32 where a GPU has it, and AMP the faster of FP16 and BF16."""
    found = [hardware.find_peak([model], precision) for precision in ("fp32", "amp", "fp8")]
    assert found == [fp32, amp, fp8]


def test_every_peak_has_a_kind_of_its_own_and_a_source() -> None:
    """No name fits two rows, and BF16 is never faster than FP16."""
    kinds = [hardware.parse_kind(gpu) for gpu, _, _ in hardware.PEAKS]
    for place, one in enumerate(kinds):
        assert one
        assert not any(other and one.fits(other) for other in kinds[place + 1 :])
    for _, tflops, source in hardware.PEAKS:
        assert source.startswith(("NVIDIA ", "AMD "))
        _, _, fp16, bf16, _ = tflops.split()
        assert bf16 in ("-", fp16)
    assert hardware.find_peak(["NVIDIA GeForce RTX 4090"], "bf16") is None


@pytest.mark.parametrize(
    "models",
    [
        (),
        ("a card",),
        ("NVIDIA GeForce RTX 4090 Laptop GPU",),
        ("NVIDIA GeForce RTX 3090 Ti",),
        ("NVIDIA RTX A6000",),
        ("Quadro RTX 6000",),
        ("NVIDIA A100X",),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb",),
        ("NVIDIA H100 80GB HBM2e",),
        ("Tesla V100-FHHL-16GB",),
        ("AMD Instinct MI250X / MI250",),
        ("Tesla V100-SXM2-16GB", "Tesla V100-PCIE-16GB"),
        ("Tesla V100-SXM2-16GB", "a card"),
    ],
)
def test_what_is_not_known_has_no_peak(models: tuple[str, ...]) -> None:
    """Another card, a name that may be two, several models: no figure is guessed."""
    assert hardware.find_peak(models, "amp") is None


def test_a_precision_that_is_not_known_has_no_peak() -> None:
    """V100 has no FP8, and nobody knows int4 here."""
    assert hardware.find_peak(["Tesla V100-SXM2-16GB"], "fp8") is None
    assert hardware.find_peak(["NVIDIA H200"], "int4") is None


@pytest.mark.parametrize(
    ("gpu", "peak"), [("Tesla T4", 65), ("NVIDIA L4", 121), ("AMD Instinct MI300X", 1307.4)]
)
def test_more_than_any_known_gpu_can_give_is_implausible(gpu: str, peak: float) -> None:
    """1 % above its peak is marked, 1 % below it is not; nor is a case of processors."""
    shape = (("hidden_size", 1536), ("num_attention_heads", 16), ("num_layers", 16))
    (one,) = results({"1x1": (4.92,)})
    case = replace(one.case, micro_batch_size=2, precision="amp", params=shape)
    (measured,) = gpt(sweep((replace(one, case=case),))).results
    reached = gpt(sweep((measured,))).tflops_per_gpu(measured)
    assert reached
    for device, factor, marked in (("cuda", 1.01, 1), ("cuda", 0.99, 0), ("cpu", 1.01, 0)):
        (fast,) = results({"1x1": (4.92 * factor * peak / reached,)})
        own = replace(fast, case=replace(case, device=device))
        found = gpt(replace(sweep((own,)), gpus=(gpu,)))
        assert [mark.code for mark in found.results[0].marks] == ["IMPLAUSIBLE"] * marked


@pytest.mark.parametrize(
    ("driver", "printed"),
    [
        ("NVIDIA L4", "L4-24GB"),
        ("Tesla T4", "T4-16GB (g4dn)"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090-24GB"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000Ada"),
        ("AMD Instinct MI300X VF", "MI300X-192GB"),
        ("NVIDIA H100 NVL", "H100-NVL"),
    ],
)
def test_published_names_of_further_gpus(driver: str, printed: str) -> None:
    """A published row of one of them would be set beside its cases."""
    assert hardware.is_comparable(printed, "", (driver,))


@pytest.mark.parametrize(
    ("driver", "printed"),
    [
        ("NVIDIA L40S", "L4"),
        ("NVIDIA L40S", "L40-48GB"),
        ("NVIDIA A100-SXM4-80GB", "A10-24GB"),
        ("NVIDIA A10G", "A10"),
        ("NVIDIA GeForce RTX 4090 D", "RTX 4090"),
        ("Quadro RTX 6000", "RTX 6000 Ada"),
        ("NVIDIA RTX A6000", "RTX 6000 Ada"),
        ("AMD Instinct MI300A", "MI300X"),
        ("NVIDIA GB200", "B200-192GB (Lambda OD)"),
    ],
)
def test_published_names_of_other_gpus(driver: str, printed: str) -> None:
    """A name that contains another one is not that GPU."""
    assert not hardware.is_comparable(printed, "", (driver,))
