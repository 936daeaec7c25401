"""What a real engine answers, as the facts that are read from it."""

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

HOST_LINES = """\
clock 1763800000.5
hostname gpu01
kernel Linux 5.15.0-91-generic
boot_id 5b6c0a3e
system Ubuntu 22.04.3 LTS
cpu_model AMD EPYC 7742 64-Core Processor
cpus 256
memory_kib 2113000000
free_disk_kib 900000000
shm_kib 1056500000
open_files 1048576
load 0.5
interfaces eno1 ib0 lo
memlock unlimited
told_addresses yes
address lo 127.0.0.1
address eno1 10.0.0.11
address ib0 192.168.0.11
"""
