"""Kinds of GPUs, by the names that drivers and publications give them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# H100 NVL and H200 NVL are cards of their own: for PCIe, with other memory and less power.
_CHIP = re.compile(r"\b(?:GB|GH|[A-Z])[0-9]{2,4}[A-Z]?(?: NVL)?\b")
_FORM = re.compile(r"\b(?:SXM[0-9]?|PCIE)\b")
_MEMORY = re.compile(r"\b([0-9]+) ?GB\b(?!\?)")
_OF_SXM = re.compile(r"HBM|\bDGX\b")  # of SXM sockets alone: NVIDIA H100 80GB HBM3, DGX-H100
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
    """The kind that a name tells, such as ``Tesla V100-SXM2-16GB`` or ``H100-80GB (DGX H100)``.

    None where no chip is named.
    """
    text = name.partition("(")[0].upper()
    chip = _CHIP.search(text)
    if chip is None:
        return None
    form, memory = _FORM.search(text), _MEMORY.search(text)
    built_in = form[0] if form else "SXM" if _OF_SXM.search(text) else ""
    has_own = memory is not None and not chip[0].startswith(_WITH_CPU)
    return GpuKind(chip[0], built_in, memory[1] if memory and has_own else "")


def comparable(hardware: str, interconnect: str, machines: Machines) -> bool:
    """Whether published hardware is of the kind that a case was measured on, as far as both say.

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
