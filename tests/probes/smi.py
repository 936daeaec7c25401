"""What nvidia-smi prints as XML, and what is read of a GPU in it."""

from orchestrator.model.facts import GpuFacts
from orchestrator.probes import gpu

SILENT = GpuFacts(
    index=0,
    uuid=None,
    bus_id="00000000:1A:00.0",
    model=None,
    memory_mib=None,
    ecc_uncorrected=None,
    ecc_volatile_uncorrected=None,
    ecc_sram_uncorrected=None,
    row_remap_pending=None,
    row_remap_failed=None,
    page_retirement_pending=None,
    persistence=None,
    mig=None,
    power_limit_w=None,
    sm_clock_mhz=None,
    throttle_reasons=None,
    processes=None,
)
# A V100 as the driver 440 of the seeds prints it, cut down to what is read.
V100 = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v10.dtd">
<nvidia_smi_log>
\t<driver_version>440.33.01</driver_version>
\t<cuda_version>10.2</cuda_version>
\t<attached_gpus>1</attached_gpus>
\t<gpu id="00000000:1A:00.0">
\t\t<product_name>Tesla V100-SXM2-16GB</product_name>
\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<uuid>GPU-1</uuid>
\t\t<pci>
\t\t\t<pci_bus_id>00000000:1A:00.0</pci_bus_id>
\t\t</pci>
\t\t<clocks_throttle_reasons>
\t\t\t<clocks_throttle_reason_gpu_idle>Active</clocks_throttle_reason_gpu_idle>
\t\t\t<clocks_throttle_reason_sw_power_cap>Not Active</clocks_throttle_reason_sw_power_cap>
\t\t\t<clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>
\t\t</clocks_throttle_reasons>
\t\t<fb_memory_usage>
\t\t\t<total>16160 MiB</total>
\t\t</fb_memory_usage>
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<double_bit><device_memory>4</device_memory><total>4</total></double_bit>
\t\t\t</volatile>
\t\t\t<aggregate>
\t\t\t\t<single_bit><device_memory>9</device_memory><total>9</total></single_bit>
\t\t\t\t<double_bit><device_memory>2</device_memory><total>3</total></double_bit>
\t\t\t</aggregate>
\t\t</ecc_errors>
\t\t<retired_pages>
\t\t\t<pending_retirement>Yes</pending_retirement>
\t\t</retired_pages>
\t\t<power_readings>
\t\t\t<power_limit>300.00 W</power_limit>
\t\t\t<default_power_limit>250.00 W</default_power_limit>
\t\t</power_readings>
\t\t<clocks>
\t\t\t<sm_clock>135 MHz</sm_clock>
\t\t</clocks>
\t\t<processes>
\t\t\t<process_info>
\t\t\t\t<pid>1</pid>
\t\t\t\t<process_name>python3 &lt;train&gt;</process_name>
\t\t\t\t<used_memory>2 MiB</used_memory>
\t\t\t</process_info>
\t\t</processes>
\t</gpu>
</nvidia_smi_log>
"""


def only_gpu(text: str) -> tuple[GpuFacts, list[str]]:
    """The one GPU of ``text``, and all problems as `CODE message`."""
    fact = gpu.parse(text)
    (one,) = fact.gpus
    return one, [f"{problem.code} {problem.message}" for problem in fact.problems]
