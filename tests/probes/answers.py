"""What a real engine answers, as the facts that are read from it."""

from orchestrator.model.site import DockerFacts

DEBIAN = DockerFacts(
    server_version="20.10.24+dfsg1",
    api_version="1.41",
    runtimes=("io.containerd.runc.v2", "io.containerd.runtime.v1.linux", "runc"),
    cdi=False,
    gpu_hook=True,
    toolkit="1.12.0",
    runc="1.1.5+ds1",
    storage_driver="overlay2",
    root_dir="/var/lib/docker",
    free_mib=102400,
    logging_driver="json-file",
    log_opts={"max-size": "100m"},
    live_restore=False,
    proxies=(),
)
