"""Kinds of GPUs, by the names that drivers and publications give them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# As nvidia-smi, rocm-smi and publications print them: Tesla T4, NVIDIA L40S, A100-SXM4-80GB,
# H100 NVL (a card of its own, with other memory and less power), NVIDIA GeForce RTX 4090 Laptop
# GPU, NVIDIA RTX 6000 Ada Generation, AMD Instinct MI300X.
_CHIP = re.compile(
    r"\bRTX[ -]?(?:(?:A|PRO )?[0-9]{4})(?: ?(?:TI|SUPER|ADA|D|LAPTOP|MAX-Q)\b)*"
    r"|\b(?:GB|GH|MI|[ABHKLMPTV])[0-9]{1,4}[A-Z]?\b(?:[ -]NVL\b)?"
)
_FORM = re.compile(r"\b(?:SXM[0-9]?|PCIE)\b")
_MEMORY = re.compile(r"\b([0-9]+) ?GB\b(?!\?)")
_OF_SXM = re.compile(r"HBM3|96GB-HBM2E|\bDGX\b")  # NVIDIA H100 80GB HBM3, DGX-H100
_WITH_CPU = ("GH", "GB")  # whose drivers name the memory of the CPU


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A kind of GPU; empty is what a name does not say.

    Args:
        chip: such as ``A100``.
        form: how it is built in: SXM2, SXM or PCIE.
        memory_gb: such as ``80``.
    """

    chip: str
    form: str = ""
    memory_gb: str = ""

    def fits(self, other: "GpuKind") -> bool:
        """Whether both are of one kind, as far as both say."""
        return (
            self.chip == other.chip
            and (self.form.startswith(other.form) or other.form.startswith(self.form))
            and (not self.memory_gb or not other.memory_gb or self.memory_gb == other.memory_gb)
        )


@dataclass(frozen=True, slots=True)
class Machines:
    """What a case was measured on, as far as that is known.

    Args:
        gpus: models of all GPUs, as the driver names them; empty where they are not known.
        transport: between its nodes, such as ``IB mlx5_0``; ``-`` where it is not known.
    """

    gpus: Sequence[str] = ()
    transport: str = "-"


def kind(name: str) -> GpuKind | None:
    """Return the kind in a name such as ``Tesla V100-SXM2-16GB`` or ``H100-80GB (DGX H100)``.

    None where no chip is named, or several, as in ``MI250X/MI250``, or a MIG part of one.
    """
    text = name.partition("(")[0].upper().replace(" GENERATION", "")
    chips = dict.fromkeys(_CHIP.findall(text))
    if len(chips) != 1 or " MIG " in text:
        return None
    chip = next(iter(chips)).replace("-NVL", " NVL")
    # RTX4090, RTX-4090 and RTX 6000Ada are printed too.
    chip = re.sub("(?<=[0-9]{4})(?=[A-Z])", " ", re.sub("^RTX[ -]?", "RTX ", chip))
    form, memory = _FORM.search(text), _MEMORY.search(text)
    built_in = form[0] if form else "SXM" if _OF_SXM.search(text) else ""
    has_own = memory is not None and not chip.startswith(_WITH_CPU)
    return GpuKind(chip, built_in, memory[1] if memory and has_own else "")


def comparable(hardware: str, interconnect: str, machines: Machines) -> bool:
    """Return whether published hardware is of the kind of a case's GPUs, as far as both say.

    Args:
        hardware: as it was published.
        interconnect: between nodes, such as ``IB 100 Gb/s``; empty where it is not known.
    """
    if interconnect and machines.transport != "-":
        medium = interconnect.split()[0]
        if medium not in machines.transport.split():
            return False
    theirs = kind(hardware)
    if theirs is None:
        return not machines.gpus
    return all((own := kind(model)) is not None and own.fits(theirs) for model in machines.gpus)
