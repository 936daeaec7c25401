"""Parser of `nvidia-smi -q -x`: the driver of a node and the state of its GPUs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

from orchestrator import errors
from orchestrator.model.facts import DriverFacts, GpuFacts, GpuProcess
from orchestrator.model.problem import Problem
from orchestrator.probes import Probe

_ROOT = "nvidia_smi_log"
_UNREPORTED = frozenset(
    {"", "N/A", "[N/A]", "Not Supported", "[Not Supported]", "[Not Found]"}
    | {"Requested functionality has been deprecated"}
)
_FAULT = re.compile(
    r"\[?(ERR!|Unknown Error|GPU is lost|GPU requires reset|Insufficient Permissions)\]?"
)
_TEXT = re.compile(r"(.+)")
_VERSION = re.compile(r"([0-9]+(?:\.[0-9]+)+)")
_UUID = re.compile(r"(GPU-\S+)")
_BUS_ID = re.compile(r"([0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\.[0-9A-Fa-f])")
_COUNT = re.compile(r"([0-9]{1,15})")
_MIB = re.compile(r"([0-9]{1,12}) MiB")
_MHZ = re.compile(r"([0-9]{1,9}) MHz")
_WATTS = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?) W")
_LANES = re.compile(r"([0-9]{1,3})x")
_LINK = "pci/pci_gpu_link_info"
_SWITCH = re.compile(r"(Enabled|Disabled|Yes|No)")
_ACTIVITY = re.compile(r"(Active|Not Active)")
_VIRTUAL = ("Pass-Through", "VGPU")
_REASON_PREFIX = re.compile(r"^clocks_(?:throttle|event)_reason_")
_POWER_LIMITS = (
    "gpu_power_readings/current_power_limit",
    "gpu_power_readings/power_limit",
    "power_readings/current_power_limit",
    "power_readings/power_limit",
)
# The newest drivers count SRAM in two parts, those before by memory, old ones by severity.
_ECC_LAYOUTS = (
    ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable"),
    ("sram_uncorrectable", "dram_uncorrectable"),
    ("double_bit/total",),
)
_ECC_DRAM = ("double_bit/device_memory", "dram_uncorrectable")
# "WARNING: infoROM is corrupted at gpu 0000:67:00.0", before or behind the document.
_WARNING = re.compile(r"^\s*(WARNING: .*\S)", re.MULTILINE)
WARNED = 14
# Source: nvidia-smi(1), return value, and nvmlReturn_t, with which it ends.
EXITS: Mapping[int, str] = {
    4: "the user may not ask the driver",
    8: "a power cable of a GPU is not attached",
    9: "the NVIDIA driver is not loaded",
    10: "the kernel found an interrupt problem with a GPU",
    12: "the driver's library libnvidia-ml.so was not found",
    WARNED: "the infoROM of a GPU is corrupted",
    15: "the GPU is lost: it fell off the bus or cannot be reached",
    16: "a GPU must be reset before it can be used",
    18: "the driver's library and kernel module differ",
}
_FIX = "record it with `nvidia-smi -q -x > FILE`"


def parse(text: str) -> DriverFacts:
    """The driver and its GPUs, with a problem per value that is there but unreadable.

    Raises:
        LogError: the text is not one whole XML document of nvidia-smi.

    Source:
        ``nvsmi_device_v4.dtd`` to ``v12.dtd`` as drivers 418 to 58x print them.
    """
    root, around = _document(text)
    reader = _Element(root, "driver")
    elements = root.findall("gpu")
    attached = reader.number(_COUNT, "attached_gpus")
    read = [_gpu(index, element) for index, element in enumerate(elements)]
    return DriverFacts(
        driver=reader.text(_VERSION, "driver_version"),
        cuda=reader.text(_VERSION, "cuda_version"),
        gpus=tuple(gpu for gpu, _ in read),
        problems=(
            *reader.problems,
            *_count_problems(attached, len(elements)),
            *warnings(around),
            *(problem for _, problems in read for problem in problems),
        ),
    )


def warnings(text: str) -> Iterator[Problem]:
    """Return what nvidia-smi warns of beside its document, of which it may end with 14 or 0."""
    for warning in _WARNING.finditer(text):
        yield Problem("GPU-WARNING", warning[1])


PROBE = Probe(name="gpu", argv=("nvidia-smi", "-q", "-x"), parse=parse)


@dataclass(frozen=True, slots=True)
class _Element:
    """Reads the values of one element and keeps what was wrong with them."""

    element: ElementTree.Element
    where: str
    problems: list[Problem] = field(default_factory=list)

    def text(self, needed: re.Pattern[str], *paths: str) -> str | None:
        """Return what ``needed`` captures from the first of ``paths`` that the driver reports."""
        for path in paths:
            value = (self.element.findtext(path) or "").strip()
            if value in _UNREPORTED:
                continue
            match = needed.fullmatch(value)
            if not match or _FAULT.fullmatch(value):
                self.keep_problem(f"{path}: cannot read {value!r}")
                return None
            return match[1]
        return None

    def number(self, needed: re.Pattern[str], *paths: str) -> int | None:
        """Return the captured text as a whole number."""
        text = self.text(needed, *paths)
        return None if text is None else int(text)

    def switch(self, path: str) -> bool | None:
        """True for ``Enabled`` or ``Yes``; None if it is not reported or unreadable."""
        text = self.text(_SWITCH, path)
        return None if text is None else text in ("Enabled", "Yes")

    def keep_problem(self, message: str) -> None:
        """Keep a problem with this element."""
        self.problems.append(Problem("UNREADABLE", f"{self.where}: {message}"))


def _document(text: str) -> tuple[ElementTree.Element, str]:
    """Return the root, and the text before and behind the document."""
    if f"<{_ROOT}" not in text:
        if not text.strip():
            raise errors.LogError("the text is empty", code="EMPTY", fix=_FIX)
        begins = text.strip().splitlines()[0][:80]
        cause = f"no <{_ROOT}> as `nvidia-smi -q -x` prints it; the text begins with {begins!r}"
        raise errors.LogError(cause, code="NO-XML", fix=_FIX)
    if "<!entity" in text.lower():
        raise errors.LogError(
            "the XML defines entities, which nvidia-smi never does", code="ENTITY", fix=_FIX
        )
    start = max(text.find("<?xml"), 0)
    end = text.rfind(f"</{_ROOT}>")
    last = end + len(f"</{_ROOT}>") if end >= 0 else len(text)
    try:
        root = ElementTree.fromstring(text[start:last])
    except (ElementTree.ParseError, UnicodeEncodeError) as err:
        raise errors.LogError(f"not one whole XML document: {err}", code="XML", fix=_FIX) from err
    if root.tag != _ROOT:
        raise errors.LogError(f"the XML holds {root.tag}, not {_ROOT}", code="XML", fix=_FIX)
    return root, f"{text[:start]}\n{text[last:]}"


def _gpu(index: int, element: ElementTree.Element) -> tuple[GpuFacts, Sequence[Problem]]:
    reader = _Element(element, f"GPU {index}")
    watts = reader.text(_WATTS, *_POWER_LIMITS)
    aggregate = _uncorrected(reader, "aggregate")
    mode = reader.text(_TEXT, "gpu_virtualization_mode/virtualization_mode")
    gpu = GpuFacts(
        index=index,
        uuid=reader.text(_UUID, "uuid"),
        bus_id=reader.text(_BUS_ID, "pci/pci_bus_id") or _id(element),
        model=reader.text(_TEXT, "product_name"),
        memory_mib=reader.number(_MIB, "fb_memory_usage/total"),
        ecc_uncorrected=aggregate,
        persistence=reader.switch("persistence_mode"),
        mig=reader.switch("mig_mode/current_mig"),
        power_limit_w=None if watts is None else float(watts),
        sm_clock_mhz=reader.number(_MHZ, "clocks/sm_clock"),
        throttle_reasons=_throttle_reasons(reader),
        processes=_processes(reader),
        ecc_volatile_uncorrected=_uncorrected(reader, "volatile"),
        ecc_sram_uncorrected=_sram_uncorrected(reader, aggregate),
        row_remap_pending=reader.switch("remapped_rows/remapped_row_pending"),
        row_remap_failed=reader.switch("remapped_rows/remapped_row_failure"),
        page_retirement_pending=reader.switch("retired_pages/pending_retirement"),
        pcie_width=reader.number(_LANES, f"{_LINK}/link_widths/current_link_width"),
        pcie_width_max=reader.number(_LANES, f"{_LINK}/link_widths/max_link_width"),
        vbios=reader.text(_TEXT, "vbios_version"),
        rows_remapped=reader.number(_COUNT, "remapped_rows/remapped_row_unc"),
        pcie_generation=reader.number(_COUNT, f"{_LINK}/pcie_gen/current_link_gen"),
        pcie_generation_max=reader.number(_COUNT, f"{_LINK}/pcie_gen/max_link_gen"),
        pcie_generation_gpu=reader.number(_COUNT, f"{_LINK}/pcie_gen/max_device_link_gen"),
        pcie_generation_slot=reader.number(_COUNT, f"{_LINK}/pcie_gen/max_host_link_gen"),
        performance_state=reader.text(_TEXT, "performance_state"),
        virtual=None if mode is None else mode in _VIRTUAL,
        recovery_action=_recovery_action(reader),
        fabric=_fabric(element),
    )
    return gpu, reader.problems


def _id(element: ElementTree.Element) -> str | None:
    name = element.get("id", "")
    return name if _BUS_ID.fullmatch(name) else None


def _recovery_action(reader: _Element) -> str | None:
    """Return the word of drivers since 570; those before it say Yes or No of two recoveries."""
    if action := reader.text(_TEXT, "gpu_recovery_action"):
        return action
    if reader.switch("gpu_reset_status/reset_required"):
        return "Reset"
    recommended = reader.switch("gpu_reset_status/drain_and_reset_recommended")
    return "Drain and Reset" if recommended else None


def _fabric(element: ElementTree.Element) -> dict[str, str] | None:
    """Return the words as printed: ``Unknown Error`` is one of a status, and no lost GPU."""
    paths = ("fabric/state", "fabric/status", "fabric/health/*")
    said = {
        part.tag: (part.text or "").strip() for path in paths for part in element.iterfind(path)
    }
    return {name: word for name, word in said.items() if word not in _UNREPORTED} or None


def _uncorrected(reader: _Element, counter: str) -> int | None:
    """Return the total of uncorrected errors, if all of its parts can be read."""
    tags = {part.tag for part in reader.element.iterfind(f"ecc_errors/{counter}/*")}
    for layout in _ECC_LAYOUTS:
        if tags.issuperset(part.partition("/")[0] for part in layout):
            counts = [reader.number(_COUNT, f"ecc_errors/{counter}/{part}") for part in layout]
            known = [count for count in counts if count is not None]
            if 0 < len(known) < len(counts):
                some = f"only some of {', '.join(layout)} can be read"
                reader.keep_problem(f"ecc_errors/{counter}: {some}")
            return sum(known) if len(known) == len(counts) else None
    if any("uncorrect" in tag or tag == "double_bit" for tag in tags):
        reader.keep_problem(f"ecc_errors/{counter}: cannot add up {', '.join(sorted(tags))}")
    return None


def _sram_uncorrected(reader: _Element, total: int | None) -> int | None:
    """Return the aggregate errors without those that are reported as DRAM errors."""
    if total is None:
        return None
    dram = reader.number(_COUNT, *(f"ecc_errors/aggregate/{part}" for part in _ECC_DRAM)) or 0
    if dram > total:
        reader.keep_problem(f"ecc_errors/aggregate: {dram} errors of DRAM among {total}")
        return None
    return total - dram


def _throttle_reasons(reader: _Element) -> tuple[str, ...] | None:
    problems_before = len(reader.problems)
    states = {
        child.tag: reader.text(_ACTIVITY, f"{parent}/{child.tag}")
        for parent in ("clocks_event_reasons", "clocks_throttle_reasons")
        for child in reader.element.iterfind(f"{parent}/*")
    }
    if len(reader.problems) > problems_before or not any(states.values()):
        return None
    active = (tag for tag, state in states.items() if state == "Active")
    return tuple(_REASON_PREFIX.sub("", tag) for tag in active)


def _processes(reader: _Element) -> tuple[GpuProcess, ...] | None:
    element = reader.element.find("processes")
    if element is None:
        return None
    infos = element.findall("process_info")
    text = (element.text or "").strip()
    if text and not infos:
        if text not in _UNREPORTED:
            reader.keep_problem(f"processes: cannot read {text!r}")
        return None
    return tuple(
        _process(_Element(info, f"{reader.where} process {at}", reader.problems))
        for at, info in enumerate(infos)
    )


def _process(reader: _Element) -> GpuProcess:
    return GpuProcess(
        pid=reader.number(_COUNT, "pid"),
        name=reader.text(_TEXT, "process_name"),
        memory_mib=reader.number(_MIB, "used_memory"),
    )


def _count_problems(attached: int | None, shown: int) -> Iterator[Problem]:
    if attached is not None and attached != shown:
        message = f"the driver has {attached} GPUs attached; the text describes {shown}"
        yield Problem("ATTACHED-GPUS", message)
    elif not shown:
        yield Problem("NO-GPU", "the text describes no GPU")
