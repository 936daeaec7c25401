"""The facts in a real engine's answer, and the answer of a node to the host probe."""

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

HOST_LINES = Path(__file__).with_name("gpu01.txt").read_text()
