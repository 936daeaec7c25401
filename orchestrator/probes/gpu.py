"""Parser of `nvidia-smi -q -x`: the driver of a node and the state of its GPUs."""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from orchestrator import errors
from orchestrator.model.facts import DriverFacts, GpuFacts, GpuProcess
from orchestrator.model.problem import Problem

_UNREPORTED = frozenset(
    {"", "N/A", "[N/A]", "Not Supported", "[Not Supported]", "[Not Found]"}
    | {"Requested functionality has been deprecated"}
)
# Any text, but not the placeholders that nvidia-smi prints after the driver has failed.
_TEXT = re.compile(
    r"(?!\[?(?:ERR!|Unknown Error|GPU is lost|GPU requires reset|Insufficient Permissions)\]?$)(.+)"
)
_VERSION = re.compile(r"([0-9]+(?:\.[0-9]+)+)")
_BUS_ID = re.compile(r"([0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\.[0-9A-Fa-f])")
_COUNT = re.compile(r"([0-9]{1,15})")
_MIB = re.compile(r"([0-9]{1,12}) MiB")
_MHZ = re.compile(r"([0-9]{1,9}) MHz")
_WATTS = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?) W")
_LANES = re.compile(r"([0-9]{1,3})x")
_LINK = "pci/pci_gpu_link_info"
_SWITCH = re.compile(r"(Enabled|Disabled|Yes|No)")
_ACTIVITY = re.compile(r"(Active|Not Active)")
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
# Prompts and warnings may stand before and behind the document.
_DOCUMENT = re.compile(r"(?:<\?xml.*)?<nvidia_smi_log>.*</nvidia_smi_log>", re.DOTALL)
# "WARNING: infoROM is corrupted at gpu 0000:67:00.0"
_WARNING = re.compile(r"^\s*(WARNING: .*\S)", re.MULTILINE)
WARNED = 14  # the exit status after a warning beside a whole answer


def parse(text: str) -> DriverFacts:
    """Return the driver and its GPUs, with a problem per value that is there but unreadable.

    Raises:
        LogError: UNREADABLE; the text is not one whole XML document of nvidia-smi.

    Source:
        ``nvsmi_device_v4.dtd`` to ``v12.dtd`` as drivers 418 to 58x print them.
    """
    found = _DOCUMENT.search(text)
    try:
        root = ElementTree.fromstring(found[0] if found else "")
    except (ElementTree.ParseError, UnicodeEncodeError) as err:
        begins = (text.strip().splitlines() or [""])[0][:80]
        raise errors.LogError(
            f"nvidia-smi -q -x: not one whole XML document ({err}); it begins with {begins!r}",
            code="UNREADABLE",
            fix="record it with `nvidia-smi -q -x > FILE`",
        ) from err
    problems: list[Problem] = []
    reader = _Element(root, "the driver", problems)
    elements = root.findall("gpu")
    attached = reader.number(_COUNT, "attached_gpus")
    driver = reader.text(_VERSION, "driver_version")
    cuda = reader.text(_VERSION, "cuda_version")
    if attached not in (None, len(elements)):
        seen = f"the driver has {attached} GPUs attached; the text describes {len(elements)}"
        problems.append(Problem("ATTACHED-GPUS", seen))
    elif not elements:
        problems.append(Problem("NO-GPU", "the text describes no GPU"))
    for warning in _WARNING.finditer(_DOCUMENT.sub("\n", text)):
        problems.append(Problem("GPU-WARNING", warning[1]))
    gpus = tuple(_gpu(index, element, problems) for index, element in enumerate(elements))
    return DriverFacts(driver, cuda, gpus, tuple(problems))


@dataclass(frozen=True, slots=True)
class _Element:
    """Reads the values of one element and keeps what was wrong with them."""

    element: ElementTree.Element
    where: str
    problems: list[Problem]

    def text(self, needed: re.Pattern[str], *paths: str) -> str | None:
        """Return what ``needed`` captures from the first of ``paths`` that the driver reports."""
        for path in paths:
            value = (self.element.findtext(path) or "").strip()
            if value not in _UNREPORTED:
                match = needed.fullmatch(value)
                if not match:
                    self.keep_problem(f"{path}: cannot read {value!r}")
                return match[1] if match else None
        return None

    def number(self, needed: re.Pattern[str], *paths: str) -> int | None:
        text = self.text(needed, *paths)
        return None if text is None else int(text)

    def switch(self, path: str) -> bool | None:
        """Return True for ``Enabled`` or ``Yes``; None if it is not reported or unreadable."""
        text = self.text(_SWITCH, path)
        return None if text is None else text in ("Enabled", "Yes")

    def keep_problem(self, message: str) -> None:
        self.problems.append(Problem("UNREADABLE", f"nvidia-smi -q -x, {self.where}: {message}"))


def _gpu(index: int, element: ElementTree.Element, problems: list[Problem]) -> GpuFacts:
    reader = _Element(element, f"GPU {index}", problems)
    watts = reader.text(_WATTS, *_POWER_LIMITS)
    mode = reader.text(_TEXT, "gpu_virtualization_mode/virtualization_mode")
    name = element.get("id", "")
    aggregate = _uncorrected(reader, "aggregate")
    sram = None
    if aggregate is not None:
        dram = reader.number(_COUNT, *(f"ecc_errors/aggregate/{part}" for part in _ECC_DRAM)) or 0
        sram = aggregate - dram if dram <= aggregate else None
        if sram is None:
            reader.keep_problem(f"ecc_errors/aggregate: {dram} errors of DRAM among {aggregate}")
    # Drivers since 570 have a word; those before it say Yes or No of two recoveries.
    action = reader.text(_TEXT, "gpu_recovery_action")
    if not action and reader.switch("gpu_reset_status/reset_required"):
        action = "Reset"
    if not action and reader.switch("gpu_reset_status/drain_and_reset_recommended"):
        action = "Drain and Reset"
    return GpuFacts(
        index=index,
        uuid=reader.text(re.compile(r"(GPU-\S+)"), "uuid"),
        bus_id=reader.text(_BUS_ID, "pci/pci_bus_id")
        or (name if _BUS_ID.fullmatch(name) else None),
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
        ecc_sram_uncorrected=sram,
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
        virtual=None if mode is None else mode in ("Pass-Through", "VGPU"),
        recovery_action=action,
        fabric=_fabric(element),
    )


def _fabric(element: ElementTree.Element) -> dict[str, str] | None:
    """Return the words as printed: ``Unknown Error`` is one of a status, and no lost GPU."""
    paths = ("fabric/state", "fabric/status", "fabric/health/*")
    parts = (part for path in paths for part in element.iterfind(path))
    said = {part.tag: (part.text or "").strip() for part in parts}
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
    text = "N/A" if element is None else (element.text or "").strip()
    if element is None or (text and not len(element)):
        if text not in _UNREPORTED:
            reader.keep_problem(f"processes: cannot read {text!r}")
        return None
    infos = (
        _Element(info, f"{reader.where} process {at}", reader.problems)
        for at, info in enumerate(element.findall("process_info"))
    )
    return tuple(
        GpuProcess(
            pid=info.number(_COUNT, "pid"),
            name=info.text(_TEXT, "process_name"),
            memory_mib=info.number(_MIB, "used_memory"),
        )
        for info in infos
    )
