"""Command lines to begin with, shown at the end of each command's help."""

from collections.abc import Mapping

OF: Mapping[str, tuple[str, ...]] = {
    "init": ("init bench@10.0.0.11 bench@10.0.0.12 -o inventory/mine.yaml",),
    "provision": ("provision mine --lock", "provision local --dry-run"),
    "sweep": (
        "sweep smoke --inventory local --dry-run",
        "sweep today --inventory mine --case '1x1,2x*' --repeats 1",
    ),
    "status": ("status --watch", "status smoke"),
    "logs": ("logs --follow", "logs 2n2g --rank 1 --grep NCCL"),
    "stop": ("stop", "stop smoke-20261123-144326-6b17db"),
    "collect": (
        "collect --lang zh --out report-zh",
        "collect --logs old --workload ngc_pytorch_rn50 --window 20:120",
    ),
    "archive": ("archive smoke --output smoke.tar.zst",),
    "verify": ("verify", "verify smoke.tar.zst"),
    "explain": ("explain 2x2", "explain 4n8g/amp/256 rn50-amp"),
    "compare": (
        "compare before.tar.zst after.tar.zst --fail-if-slower 3%",
        "compare today yesterday.tar.zst --bound 2%",
    ),
    "clean": ("clean --dry-run", "clean --inventory mine --images"),
    "trust": ("trust mine",),
    "bundle": ("bundle mine /media/stick/mine",),
    "data_check": ("data check imagenet --inventory mine",),
    "data_prepare": ("data prepare imagenet --dry-run",),
    "published": ("published --framework 'oneflow-*' --hardware 'V100*'",),
    "check": ("check inventory/mine.yaml playbooks/today.yaml",),
    "schema": ("schema playbook > playbook.schema.json",),
    "list_all": ("list playbooks", "list sweeps"),
    "topology": ("inspect topology topo.txt",),
    "ibstat": ("inspect ibstat ibstat.txt",),
    "gpu": ("inspect gpu nvidia-smi.xml",),
    "log": ("inspect log train.log --workload ngc_pytorch_rn50",),
}
"""By the name of a command's function."""


def epilog(function_name: str) -> str:
    """Return the end of a command's help, whose lines are not wrapped."""
    head, *lines = ("Examples:" if len(OF[function_name]) > 1 else "Example:", *OF[function_name])
    return "\n".join(("\b", head, *(f"  dlperf-orch {line}" for line in lines)))
