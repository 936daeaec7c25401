"""Kinds of GPUs, by the names that drivers and publications give them, and their peak rates."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# As nvidia-smi, rocm-smi and publications print them: Tesla T4, NVIDIA L40S, A100-SXM4-80GB,
# H100 NVL (a card of its own, with other memory and less power), NVIDIA GeForce RTX 4090 Laptop
# GPU, NVIDIA RTX 6000 Ada Generation, AMD Instinct MI300X.
_CHIP = re.compile(
    r"\bRTX[ -]?(?:(?:A|PRO )?[0-9]{4})(?: ?(?:TI|SUPER|ADA|D|LAPTOP|MAX-Q)\b)*"
    r"|\b(?:GB|GH|MI|[ABHKLMPTV])[0-9]{1,4}[A-Z]?\b(?:[ -]NVL\b)?"
)
_FORM = re.compile(r"\b(?:SXM[0-9]?|PCIE)\b")
_MEMORY = re.compile(r"\b([0-9]+) ?GB\b(?!\?)")
_SXM = re.compile(r"HBM3|96GB-HBM2E|\bDGX\b")  # NVIDIA H100 80GB HBM3, DGX-H100


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A kind of GPU; what a name lacks is empty."""

    chip: str
    form: str = ""
    """SXM2, SXM or PCIE."""
    memory_gb: str = ""

    def fits(self, other: "GpuKind") -> bool:
        return (
            self.chip == other.chip
            and (self.form.startswith(other.form) or other.form.startswith(self.form))
            and (not self.memory_gb or not other.memory_gb or self.memory_gb == other.memory_gb)
        )


@lru_cache(maxsize=256)
def parse_kind(name: str) -> GpuKind | None:
    """Return the kind in a name such as ``Tesla V100-SXM2-16GB`` or ``H100-80GB (DGX H100)``.

    None without a chip, with several, as in ``MI250X/MI250``, and for a MIG part of one.
    """
    text = name.partition("(")[0].upper().replace(" GENERATION", "")
    chips = dict.fromkeys(_CHIP.findall(text))
    if len(chips) != 1 or " MIG " in text:
        return None
    chip = next(iter(chips)).replace("-NVL", " NVL")
    # Some print RTX4090, RTX-4090 or RTX 6000Ada.
    chip = re.sub("(?<=[0-9]{4})(?=[A-Z])", " ", re.sub("^RTX[ -]?", "RTX ", chip))
    form, memory = _FORM.search(text), _MEMORY.search(text)
    built_in = form[0] if form else "SXM" if _SXM.search(text) else ""
    # Drivers of GH200 and GB200 name the memory of the CPU.
    is_own = memory is not None and not chip.startswith("G")
    return GpuKind(chip, built_in, memory[1] if memory and is_own else "")


def is_comparable(
    hardware: str, interconnect: str, gpus: Sequence[str] = (), transport: str = "-"
) -> bool:
    """Return True if published hardware may be of the kind of a case's GPUs.

    Args:
        interconnect: of the publication, such as ``IB 100 Gb/s``; empty if unknown.
        gpus: models of all GPUs of the case, as the driver names them; empty if unknown.
        transport: of the case, such as ``IB mlx5_0``; ``-`` if unknown.
    """
    if interconnect and transport != "-" and interconnect.split()[0] not in transport.split():
        return False
    theirs = parse_kind(hardware)
    if theirs is None:
        return not gpus
    return all((own := parse_kind(model)) is not None and own.fits(theirs) for model in gpus)


# Formats that a precision may compute in: libraries use TF32 for FP32 if a GPU has it.
_FORMATS = {
    "fp32": ("fp32", "tf32"),
    "amp": ("fp16", "bf16"),
    "fp16": ("fp16",),
    "bf16": ("bf16",),
    "fp8": ("fp8",),
}
_COLUMNS = ("fp32", "tf32", "fp16", "bf16", "fp8")
# GPU, its TFLOP/s without sparsity in these formats (`-` if the source lacks one), and the source:
# the vendor's document, whose figures with sparsity are halved. Programs see each of the two
# dies of MI250 and MI250X as a GPU. Without a figure in print, no result is called implausible.
PEAKS = (
    ("Tesla V100-SXM2", "15.7 - 125 - -", "NVIDIA V100 data sheet (1165301)"),
    ("Tesla V100-SXM3", "- - 125 - -", "NVIDIA DGX-2 data sheet: 2 petaFLOPS of 16 GPUs"),
    ("Tesla V100-PCIE", "14 - 112 - -", "NVIDIA V100 data sheet (1165301)"),
    ("Tesla V100S-PCIE", "16.4 - 130 - -", "NVIDIA V100 data sheet (1165301)"),
    ("Tesla T4", "8.1 - 65 - -", "NVIDIA T4 data sheet (951643)"),
    ("NVIDIA A10", "31.2 62.5 125 125 -", "NVIDIA A10 data sheet"),
    ("NVIDIA A30", "- - 165 165 -", "NVIDIA A30 data sheet"),
    ("NVIDIA A40", "37.4 74.8 149.7 149.7 -", "NVIDIA A40 data sheet"),
    ("NVIDIA A100", "19.5 156 312 312 -", "NVIDIA A100 data sheet (1758950)"),
    ("NVIDIA L4", "30.3 60 121 121 242", "NVIDIA L4 data sheet"),
    ("NVIDIA L40", "90.5 90.5 181.05 181.05 362", "NVIDIA L40 data sheet"),
    ("NVIDIA L40S", "91.6 183 362.05 362.05 733", "NVIDIA L40S data sheet"),
    ("NVIDIA GeForce RTX 3090", "- - 142 - -", "NVIDIA GA102 whitepaper, appendix A"),
    ("NVIDIA GeForce RTX 4090", "- - - - 660", "NVIDIA on Ada: 1.32 petaFLOPS with sparsity"),
    ("NVIDIA H100-PCIE", "51 378 756 756 1513", "NVIDIA H100 data sheet"),
    ("NVIDIA H100-SXM", "67 494.5 989.5 989.5 1979", "NVIDIA H100 data sheet"),
    ("NVIDIA H100 NVL", "60 417.5 835.5 835.5 1671", "NVIDIA H100 data sheet"),
    ("NVIDIA H200", "67 494.5 989.5 989.5 1979", "NVIDIA H200 data sheet"),
    ("NVIDIA B200", "75 1100 2250 2250 4500", "NVIDIA HGX B200 data sheet"),
    ("NVIDIA GB200", "80 1250 2500 2500 5000", "NVIDIA GB200 NVL72 data sheet"),
    ("AMD Instinct MI210", "45.3 - 181 181 -", "AMD Instinct MI210 data sheet"),
    ("AMD Instinct MI250", "45.25 - 181.05 181.05 -", "AMD Instinct MI250 data sheet, halved"),
    ("AMD Instinct MI250X", "47.85 - 191.5 191.5 -", "AMD Instinct MI250X data sheet, halved"),
    ("AMD Instinct MI300X", "163.4 653.7 1307.4 1307.4 2614.9", "AMD Instinct MI300X data sheet"),
)


def find_peak(models: Sequence[str], precision: str) -> float | None:
    """Return the common peak of these GPUs in TFLOP/s, None if one is unknown or they differ."""
    found: set[float | None] = set()
    for model in {*models}:
        own = parse_kind(model)
        fitting = [row for gpu, row, _ in PEAKS if own and (it := parse_kind(gpu)) and own.fits(it)]
        if len(fitting) != 1:  # the name lacks the form: PCIe, SXM
            return None
        tflops = dict(zip(_COLUMNS, fitting[0].split(), strict=True))
        known = [tflops[name] for name in _FORMATS.get(precision, ()) if tflops[name] != "-"]
        found.add(max(map(float, known), default=None))
    return found.pop() if len(found) == 1 else None
