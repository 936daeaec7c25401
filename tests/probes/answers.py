"""Answers of nodes to probes, and the facts in the answer of a real engine."""

from pathlib import Path

from orchestrator.model.site import DockerFacts

DEBIAN = DockerFacts(
    server_version="20.10.24+dfsg1",
    api_version="1.41",
    runtimes=("io.containerd.runc.v2", "io.containerd.runtime.v1.linux", "runc"),
    cdi=False,
    gpu_hook=True,
    root_dir="/var/lib/docker",
    free_mib=102400,
    proxies=(),
)

FOLDER = Path(__file__).parent
HOST_LINES = (FOLDER / "gpu01.txt").read_text()
# With a second address, modules and a proxy
HOST_ANSWER = (
    HOST_LINES
    + """\
address ib0@if3 fe80::1
own_address 127.0.1.1
own_address 127.0.1.1
own_address 10.0.0.11
proxy https_proxy
module torch 1.5.0a0+8f84ded
missing_module nvidia.dali
"""
)
# A V100 as the driver 440 of the seeds prints it, cut down to what is read.
V100 = (FOLDER / "v100.xml").read_text()
# As drivers 5xx print it: tabs, two of them before the GPU NUMA ID, but one in the titles.
TABLE = (FOLDER / "topo_driver535.txt").read_text()
# The same node on a driver 4xx: no NUMA columns, the HCAs by name.
OLD_TABLE = (FOLDER / "topo_driver440.txt").read_text()
