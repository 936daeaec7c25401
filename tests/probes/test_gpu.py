"""The GPU parser: what it makes of real `nvidia-smi -q -x` outputs and of broken ones."""

import json
import re
from dataclasses import asdict, replace

import pytest

import tests
from orchestrator import errors
from orchestrator.model.facts import GpuFacts, GpuProcess
from orchestrator.probes import gpu
from tests.probes.smi import SILENT, V100, only_gpu

SAMPLES = tests.SAMPLES / "nvidia-smi"
A100_40GB = GpuFacts(
    index=0,
    uuid="GPU-27b94a00-ed54-5c24-b1fd-1054085de32a",
    bus_id="00000000:00:04.0",
    model="NVIDIA A100-SXM4-40GB",
    memory_mib=40960,
    ecc_uncorrected=0,
    ecc_volatile_uncorrected=None,
    ecc_sram_uncorrected=0,
    row_remap_pending=None,
    row_remap_failed=None,
    page_retirement_pending=None,
    persistence=False,
    mig=True,
    power_limit_w=400.0,
    sm_clock_mhz=1410,
    throttle_reasons=(),
    processes=(),
    pcie_width=16,
    pcie_width_max=16,
    vbios="92.00.45.00.03",
    pcie_generation=4,
    pcie_generation_max=4,
    performance_state="P0",
    virtual=True,
)
A100_80GB = GpuFacts(
    index=0,
    uuid="GPU-513536b6-7d19-9063-b049-1e69664bb298",
    bus_id="00000000:01:00.0",
    model="NVIDIA A100-SXM4-80GB",
    memory_mib=81920,
    ecc_uncorrected=0,
    ecc_volatile_uncorrected=0,
    ecc_sram_uncorrected=0,
    row_remap_pending=None,
    row_remap_failed=None,
    page_retirement_pending=None,
    persistence=False,
    mig=True,
    power_limit_w=500.0,
    sm_clock_mhz=1275,
    throttle_reasons=(),
    processes=(),
    pcie_width=16,
    pcie_width_max=16,
    vbios="92.00.36.00.02",
    pcie_generation=4,
    pcie_generation_max=4,
    pcie_generation_gpu=4,
    pcie_generation_slot=4,
    performance_state="P0",
    virtual=False,
)
T4 = GpuFacts(
    index=0,
    uuid="GPU-d37e67a5-91dd-3774-a5cb-99096249601a",
    bus_id="00000000:00:1E.0",
    model="Tesla T4",
    memory_mib=15360,
    ecc_uncorrected=0,
    ecc_volatile_uncorrected=0,
    ecc_sram_uncorrected=0,
    row_remap_pending=None,
    row_remap_failed=None,
    page_retirement_pending=False,
    persistence=False,
    mig=None,
    power_limit_w=70.0,
    sm_clock_mhz=585,
    throttle_reasons=(),
    processes=(
        GpuProcess(pid=675, name="/usr/lib/xorg/Xorg", memory_mib=22),
        GpuProcess(pid=5762, name="python", memory_mib=1005),
    ),
    pcie_width=8,
    pcie_width_max=16,
    vbios="90.04.84.00.06",
    pcie_generation=3,
    pcie_generation_max=3,
    performance_state="P0",
    virtual=True,
)
A10G = GpuFacts(
    index=0,
    uuid="GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94",
    bus_id="00000000:00:1E.0",
    model="NVIDIA A10G",
    memory_mib=23028,
    ecc_uncorrected=0,
    ecc_volatile_uncorrected=0,
    ecc_sram_uncorrected=0,
    row_remap_pending=False,
    row_remap_failed=False,
    rows_remapped=0,
    page_retirement_pending=None,
    persistence=False,
    mig=None,
    power_limit_w=300.0,
    sm_clock_mhz=210,
    throttle_reasons=("gpu_idle",),
    processes=(GpuProcess(725, "/usr/lib/xorg/Xorg", 22),),
    pcie_width=8,
    pcie_width_max=16,
    vbios="94.02.75.00.01",
    pcie_generation=1,
    pcie_generation_max=4,
    performance_state="P8",
    virtual=True,
)
H200 = GpuFacts(
    index=0,
    uuid="GPU-9c224d24-bcf2-33bd-e1ab-4b3ebe668d82",
    bus_id="00000000:00:06.0",
    model="NVIDIA H200",
    memory_mib=143771,
    ecc_uncorrected=0,
    ecc_volatile_uncorrected=0,
    ecc_sram_uncorrected=0,
    row_remap_pending=False,
    row_remap_failed=False,
    rows_remapped=0,
    page_retirement_pending=None,
    persistence=True,
    mig=False,
    power_limit_w=700.0,
    sm_clock_mhz=345,
    throttle_reasons=("gpu_idle",),
    processes=(),
    pcie_width=16,
    pcie_width_max=16,
    vbios="96.00.A5.00.1A",
    pcie_generation=5,
    pcie_generation_max=5,
    pcie_generation_gpu=5,
    performance_state="P0",
    virtual=True,
    recovery_action="None",
)
# By sample: driver, CUDA, its one GPU and the codes of its problems.
EXPECTED = {
    "h200_driver580.xml": ("580.159.04", "13.0", H200, []),
    "netdata_a100-sxm4-mig.xml": ("510.47.03", "11.6", A100_40GB, []),
    "telegraf_a100-sxm4-v12.xml": ("535.54.03", "12.2", A100_80GB, ["ATTACHED-GPUS"]),
    "telegraf_a10g.xml": ("515.105.01", "11.7", A10G, []),
    "telegraf_tesla-t4.xml": ("515.105.01", "11.7", T4, []),
}
# Other things that nvidia-smi prints, by the words of their first line.
REFUSED = {
    "netdata_tesla-p100.csv": "begins with 'name, uuid, fan.speed",
    "sysuest_v100_4gpu_plain.txt": "begins with 'Tue May 11 12:08:26 2021'",
}


def test_every_sample_has_an_expectation() -> None:
    """A sample that is added without its values fails here."""
    files = {path.name for path in SAMPLES.iterdir() if path.name != "SOURCES.md"}
    assert files == EXPECTED.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_sample_says_what_is_printed(name: str) -> None:
    """Every sample gives the values that a person reads in it."""
    fact = gpu.parse((SAMPLES / name).read_text())
    driver, cuda, one, problems = EXPECTED[name]
    assert (fact.driver, fact.cuda, fact.gpus) == (driver, cuda, (one,))
    assert [problem.code for problem in fact.problems] == problems


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_another_format_of_nvidia_smi_is_refused(name: str) -> None:
    """The plain table and CSV are not read, and the message says what to record instead."""
    with pytest.raises(errors.LogError, match=re.escape(REFUSED[name])) as caught:
        gpu.parse((SAMPLES / name).read_text())
    assert (caught.value.code, "nvidia-smi -q -x" in caught.value.fix) == ("UNREADABLE", True)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_cut_sample_is_refused(name: str) -> None:
    """XML that ends early is an error: nothing of it can be trusted to be the last word."""
    text = (SAMPLES / name).read_text().rstrip()
    for end in range(0, len(text), 97):
        with pytest.raises(errors.LogError):
            gpu.parse(text[:end])


def test_the_document_has_the_promised_keys() -> None:
    """`inspect gpu` prints these keys in this order, as JSON."""
    expected = {
        "driver": "440.33.01",
        "cuda": "10.2",
        "gpus": [
            {
                "index": 0,
                "uuid": "GPU-1",
                "bus_id": "00000000:1A:00.0",
                "model": "Tesla V100-SXM2-16GB",
                "memory_mib": 16160,
                "ecc_uncorrected": 3,
                "persistence": True,
                "mig": None,
                "power_limit_w": 300.0,
                "sm_clock_mhz": 135,
                "throttle_reasons": ["gpu_idle", "hw_slowdown"],
                "processes": [{"pid": 1, "name": "python3 <train>", "memory_mib": 2}],
                "ecc_volatile_uncorrected": 4,
                "ecc_sram_uncorrected": 1,
                "row_remap_pending": None,
                "row_remap_failed": None,
                "page_retirement_pending": True,
                "pcie_width": None,
                "pcie_width_max": None,
                "vbios": None,
                "rows_remapped": None,
                "pcie_generation": None,
                "pcie_generation_max": None,
                "pcie_generation_gpu": None,
                "pcie_generation_slot": None,
                "performance_state": None,
                "virtual": None,
                "recovery_action": None,
                "fabric": None,
            }
        ],
        "problems": [
            {
                "code": "ATTACHED-GPUS",
                "message": "the driver has 2 GPUs attached; the text describes 1",
            }
        ],
    }
    text = V100.replace("<attached_gpus>1", "<attached_gpus>2")
    assert json.dumps(asdict(gpu.parse(text))) == json.dumps(expected)


def test_words_around_the_xml_do_not_matter() -> None:
    """A prompt before and after the document is no part of it."""
    assert gpu.parse(f"\ufeffroot@a:~# nvidia-smi -q -x\n{V100}\nroot@a:~# ") == gpu.parse(V100)
    bare = V100[V100.index("<nvidia_smi_log>") :]
    assert gpu.parse(bare) == gpu.parse(V100)


@pytest.mark.parametrize(
    "word", ["N/A", "[N/A]", "", "Requested functionality has been deprecated"]
)
def test_a_value_that_is_not_reported_is_null(word: str) -> None:
    """A word of the driver for "not known" is null, without a problem."""
    silent = re.sub(r">[^<>\s][^<>]*<", f">{word}<", V100)
    one, problems = only_gpu(silent)
    process = GpuProcess(pid=None, name=None, memory_mib=None)
    assert one == replace(SILENT, processes=(process,))
    assert problems == []


def test_a_gpu_that_says_nothing_is_all_null() -> None:
    """Elements that are absent are null, the bus id is that of the element, if it is one."""
    text = '<nvidia_smi_log><gpu id="{}"></gpu></nvidia_smi_log>'
    assert only_gpu(text.format("00000000:1A:00.0")) == (SILENT, [])
    assert only_gpu(text.format("first"))[0].bus_id is None


@pytest.mark.parametrize(
    ("found", "becomes", "key", "says"),
    [
        (
            "<device_memory>2<",
            "<device_memory>9<",
            "ecc_sram_uncorrected",
            "ecc_errors/aggregate: 9 errors of DRAM among 3",
        ),
        ("16160 MiB", "16160", "memory_mib", "fb_memory_usage/total: cannot read '16160'"),
        ("16160 MiB", "16 GiB", "memory_mib", "fb_memory_usage/total: cannot read '16 GiB'"),
        ("135 MHz", "ERR!", "sm_clock_mhz", "clocks/sm_clock: cannot read 'ERR!'"),
        ("300.00 W", "nan W", "power_limit_w", "power_readings/power_limit: cannot read 'nan W'"),
        ("<uuid>GPU-1", "<uuid>1", "uuid", "uuid: cannot read '1'"),
        (
            "Tesla V100-SXM2-16GB",
            "[GPU requires reset]",
            "model",
            "product_name: cannot read '[GPU requires reset]'",
        ),
        (
            "<pending_retirement>Yes<",
            "<pending_retirement>1<",
            "page_retirement_pending",
            "retired_pages/pending_retirement: cannot read '1'",
        ),
        (
            "<double_bit><device_memory>4</device_memory><total>4<",
            "<double_bit><total>?<",
            "ecc_volatile_uncorrected",
            "ecc_errors/volatile/double_bit/total: cannot read '?'",
        ),
        (">Enabled<", ">On<", "persistence", "persistence_mode: cannot read 'On'"),
        (">Not Active<", ">Maybe<", "throttle_reasons", "sw_power_cap: cannot read 'Maybe'"),
    ],
)
def test_a_value_that_is_unreadable_is_null(found: str, becomes: str, key: str, says: str) -> None:
    """A value that is there but cannot be read is null, and a problem says what stood there."""
    one, problems = only_gpu(V100.replace(found, becomes, 1))
    whole, _ = only_gpu(V100)
    changed = [name for name in GpuFacts.__slots__ if getattr(one, name) != getattr(whole, name)]
    assert (changed, getattr(one, key)) == ([key], None)
    (problem,) = problems
    assert problem.startswith("UNREADABLE nvidia-smi -q -x, GPU 0: ")
    assert problem.endswith(says)


def test_an_unreadable_process_names_itself() -> None:
    """A problem of a process says which one of which GPU."""
    one, problems = only_gpu(V100.replace("<pid>1<", "<pid>one<"))
    assert one.processes == (GpuProcess(pid=None, name="python3 <train>", memory_mib=2),)
    assert problems == ["UNREADABLE nvidia-smi -q -x, GPU 0 process 0: pid: cannot read 'one'"]


@pytest.mark.parametrize(
    ("element", "processes", "problems"),
    [
        ("<processes/>", (), []),
        ("<processes>N/A</processes>", None, []),
        ("", None, []),
        (
            "<processes>GPU is lost</processes>",
            None,
            ["UNREADABLE nvidia-smi -q -x, GPU 0: processes: cannot read 'GPU is lost'"],
        ),
    ],
)
def test_no_processes_and_no_answer_differ(
    element: str, processes: tuple[()] | None, problems: list[str]
) -> None:
    """An empty list is a fact; where the driver does not say, there is no list."""
    text = re.sub(r"(?s)<processes>.*</processes>", element, V100)
    one, seen = only_gpu(text)
    assert (one.processes, seen) == (processes, problems)


def test_gpus_are_numbered_in_the_order_of_the_document() -> None:
    """The index counts the elements, whatever their bus ids."""
    element = V100[V100.index("\t<gpu ") : V100.index("</nvidia_smi_log>")]
    second = element.replace("1A:00.0", "05:00.0").replace("GPU-1", "GPU-2")
    text = V100.replace(element, element + second).replace("<attached_gpus>1", "<attached_gpus>2")
    fact = gpu.parse(text)
    assert [(one.index, one.uuid) for one in fact.gpus] == [(0, "GPU-1"), (1, "GPU-2")]
    assert fact.problems == ()


def test_a_driver_without_gpus_is_a_problem() -> None:
    """A document without a GPU is read, and says that it has none."""
    fact = gpu.parse("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>")
    assert (fact.driver, fact.cuda, fact.gpus) == (None, None, ())
    assert [problem.code for problem in fact.problems] == ["NO-GPU"]
    lost = gpu.parse("<nvidia_smi_log><driver_version>?</driver_version></nvidia_smi_log>")
    assert [problem.message for problem in lost.problems] == [
        "nvidia-smi -q -x, the driver: driver_version: cannot read '?'",
        "the text describes no GPU",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVIDIA-SMI has failed because it couldn't communicate with the driver.\n",
        "<html></html>",
        V100.replace("</gpu>", ""),
        V100 + V100,
        V100.replace("GPU-1", "GPU-\x00"),
        V100.replace("GPU-1", "GPU-\udcff"),
        "<?xml version='1.0'?><nvidia_smi_log_2></nvidia_smi_log_2>",
    ],
)
def test_a_text_that_is_not_one_whole_document_is_refused(text: str) -> None:
    """Anything but one whole document of nvidia-smi is an error."""
    with pytest.raises(errors.LogError, match="not one whole XML document") as caught:
        gpu.parse(text)
    assert caught.value.code == "UNREADABLE"
