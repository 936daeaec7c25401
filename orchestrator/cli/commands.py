"""Every command: the sentence that help shows of it, and example command lines."""

from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "init": (
        "Ask machines what they have, and write an inventory of them.",
        "init bench@10.0.0.11 bench@10.0.0.12 -o inventory/mine.yaml",
    ),
    "provision": (
        "Prepare images on nodes, and check that they are fit.",
        "provision mine --lock",
        "provision local --dry-run",
    ),
    "sweep": (
        "Run every trial that has no valid outcome yet, then collect.",
        "sweep smoke --inventory local --dry-run",
        "sweep today --inventory mine --case '1x1,2x*' --repeats 1",
    ),
    "status": (
        "Show what a sweep has done and what of it runs where.",
        "status --watch",
        "status smoke",
    ),
    "logs": (
        "Print a trial's raw log. Default: the trial that runs, else the last one.",
        "logs --follow",
        "logs 2n2g --rank 1 --grep NCCL",
    ),
    "stop": (
        "End a sweep and everything that it started. Nothing else is ended.",
        "stop",
        "stop smoke-20261123-144326-6b17db",
    ),
    "collect": (
        "Turn logs into medians, speedups, tables and reports.",
        "collect --lang zh --out report-zh",
        "collect --logs old --workload ngc_pytorch_rn50 --window 20:120",
    ),
    "archive": (
        "Write a sweep with all its logs and records into one file.",
        "archive smoke --output smoke.tar.zst",
    ),
    "verify": (
        "Derive every number again from raw logs. Every sha256 is checked, what differs is named.",
        "verify",
        "verify smoke.tar.zst",
    ),
    "explain": (
        "Show how a case's number came to be. Trials, log lines, formula, nodes, command.",
        "explain 2x2",
        "explain 4n8g/amp/256 rn50-amp",
    ),
    "compare": (
        "Compare two sweeps. Different, the same, or too few trials to tell.",
        "compare before.tar.zst after.tar.zst --fail-if-slower 3%",
        "compare today published:ngc-pytorch",
    ),
    "clean": (
        "Remove what finished sweeps left on nodes. Only those of this state folder.",
        "clean --dry-run",
        "clean --inventory mine --images",
    ),
    "trust": (
        "Show nodes' host keys, and trust them after a yes. They are added to known_hosts.",
        "trust mine",
    ),
    "bundle": (
        "Write images and downloads into a folder. `provision --bundle` takes them from there.",
        "bundle mine /media/stick/mine",
    ),
    "published": (
        "List published results of these benchmarks, with their sources.",
        "published --framework 'oneflow-*' --hardware 'V100*'",
    ),
    "check": (
        "Check inventories, playbooks and image files. Nothing is reached or changed.",
        "check inventory/mine.yaml playbooks/today.yaml",
    ),
    "schema": (
        "Print the JSON Schema of a kind of file, for editors.",
        "schema playbook > playbook.schema.json",
    ),
    "list": ("List what is here and what is shipped.", "list playbooks", "list sweeps"),
    "data check": (
        "Check that a data set is complete and the same on every node.",
        "data check imagenet --inventory mine",
    ),
    "data prepare": (
        "Prepare a data set on nodes that lack it. Nothing is overwritten.",
        "data prepare imagenet --dry-run",
    ),
    "inspect topology": ("Read `nvidia-smi topo -m`.", "inspect topology topo.txt"),
    "inspect ibstat": ("Read `ibstat`.", "inspect ibstat ibstat.txt"),
    "inspect gpu": ("Read `nvidia-smi -q -x`.", "inspect gpu nvidia-smi.xml"),
    "inspect log": (
        "Read a training log.",
        "inspect log train.log --workload ngc_pytorch_rn50",
    ),
}
GROUPS: Mapping[str, str] = {
    "data": "Check data sets on the nodes, and prepare them there.",
    "inspect": "Parse a recorded output, and print it as JSON.",
}
