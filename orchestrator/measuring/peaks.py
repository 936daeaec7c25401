"""Peak rates of GPUs by precision, without sparsity, as their vendors publish them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.measuring import hardware

# What a program of a precision may compute in: libraries use TF32 for FP32 where a GPU has it.
_FORMATS = {
    "fp32": ("fp32", "tf32"),
    "amp": ("fp16", "bf16"),
    "fp16": ("fp16",),
    "bf16": ("bf16",),
    "fp8": ("fp8",),
}


@dataclass(frozen=True, slots=True)
class Peak:
    """One kind of GPU; a format that its source does not name is absent.

    Args:
        gpu: as ``hardware.kind`` reads it.
        tflops: by format, of all its matrix units.
        source: the vendor's document; figures that it gives with sparsity are halved.
    """

    gpu: str
    tflops: Mapping[str, float]
    source: str


def _peak(gpu: str, tflops: str, source: str) -> Peak:
    """Return the row of a GPU; ``-`` stands for a format that the source does not name."""
    values = zip(("fp32", "tf32", "fp16", "bf16", "fp8"), tflops.split(), strict=True)
    return Peak(gpu, {name: float(value) for name, value in values if value != "-"}, source)


# Each of the two dies of MI250 and MI250X is a GPU of its own to programs.
# A figure that was not read in print is absent: then nothing is called implausible by it.
PEAKS = (
    _peak("Tesla V100-SXM2", "15.7 - 125 - -", "NVIDIA V100 data sheet (1165301)"),
    _peak("Tesla V100-SXM3", "- - 125 - -", "NVIDIA DGX-2 data sheet: 2 petaFLOPS of 16 GPUs"),
    _peak("Tesla V100-PCIE", "14 - 112 - -", "NVIDIA V100 data sheet (1165301)"),
    _peak("Tesla V100S-PCIE", "16.4 - 130 - -", "NVIDIA V100 data sheet (1165301)"),
    _peak("Tesla T4", "8.1 - 65 - -", "NVIDIA T4 data sheet (951643)"),
    _peak("NVIDIA A10", "31.2 62.5 125 125 -", "NVIDIA A10 data sheet"),
    _peak("NVIDIA A30", "- - 165 165 -", "NVIDIA A30 data sheet"),
    _peak("NVIDIA A40", "37.4 74.8 149.7 149.7 -", "NVIDIA A40 data sheet"),
    _peak("NVIDIA A100", "19.5 156 312 312 -", "NVIDIA A100 data sheet (1758950)"),
    _peak("NVIDIA L4", "30.3 60 121 121 242", "NVIDIA L4 data sheet"),
    _peak("NVIDIA L40", "90.5 90.5 181.05 181.05 362", "NVIDIA L40 data sheet"),
    _peak("NVIDIA L40S", "91.6 183 362.05 362.05 733", "NVIDIA L40S data sheet"),
    _peak("NVIDIA GeForce RTX 3090", "- - 142 - -", "NVIDIA GA102 whitepaper, appendix A"),
    _peak("NVIDIA GeForce RTX 4090", "- - - - 660", "NVIDIA on Ada: 1.32 petaFLOPS with sparsity"),
    _peak("NVIDIA H100-PCIE", "51 378 756 756 1513", "NVIDIA H100 data sheet"),
    _peak("NVIDIA H100-SXM", "67 494.5 989.5 989.5 1979", "NVIDIA H100 data sheet"),
    _peak("NVIDIA H100 NVL", "60 417.5 835.5 835.5 1671", "NVIDIA H100 data sheet"),
    _peak("NVIDIA H200", "67 494.5 989.5 989.5 1979", "NVIDIA H200 data sheet"),
    _peak("NVIDIA B200", "75 1100 2250 2250 4500", "NVIDIA HGX B200 data sheet"),
    _peak("NVIDIA GB200", "80 1250 2500 2500 5000", "NVIDIA GB200 NVL72 data sheet"),
    _peak("AMD Instinct MI210", "45.3 - 181 181 -", "AMD Instinct MI210 data sheet"),
    _peak("AMD Instinct MI250", "45.25 - 181.05 181.05 -", "AMD Instinct MI250 data sheet, halved"),
    _peak("AMD Instinct MI250X", "47.85 - 191.5 191.5 -", "AMD Instinct MI250X data sheet, halved"),
    _peak(
        "AMD Instinct MI300X", "163.4 653.7 1307.4 1307.4 2614.9", "AMD Instinct MI300X data sheet"
    ),
)


def of_gpus(models: Sequence[str], precision: str) -> float | None:
    """Return the peak of each of these GPUs in TFLOP/s.

    None if a model or its peak is not known, or not all have the same one.
    """
    found = {_of_gpu(model, precision) for model in models}
    return found.pop() if len(found) == 1 else None


def _of_gpu(model: str, precision: str) -> float | None:
    own = hardware.kind(model)
    fitting = [row for row in PEAKS if own and _kind(row).fits(own)]
    if len(fitting) != 1:  # its name does not say which one it is: PCIe, SXM
        return None
    tflops = fitting[0].tflops
    known = [tflops[name] for name in _FORMATS.get(precision, ()) if name in tflops]
    return max(known, default=None)


def _kind(row: Peak) -> hardware.GpuKind:
    found = hardware.kind(row.gpu)
    assert found, row.gpu
    return found
